"""The catalog as the binder sees it: an immutable value, true at one timestamp.

    coordinator/core ── Catalog at a timestamp ──▶ binder ── names ──▶ tables, views, types ..

The coordinator stores and versions it; this package only says what its objects are and how names
are found.

  `acl`, `objects`                              privileges; sequences, indexes, views, types
  `catalog`                                     Catalog, Table, Column, keys; look-ups of names
  `constraint_names`, `foreign_keys`            names of constraints; which tables refer to which
  `system_catalogs`, `meridian_schema`          relations that the server itself provides
  `sequence_relation`, `temporary`, `oids`      sequences as relations; temporary schemas; oids
  `roles`, `ownership`                          roles and memberships; who owns and may do what

Rows of system catalogs are computed in `coordinator/pgcatalog`. Imports `sql.plan` and below;
the parser, the binder, `compute` and `coordinator` import it.
"""
