"""Texts of definitions as PostgreSQL prints them (ruleutils.c), from the texts that were stored.

    stored text ─ pglast ─▶ tree ─ `queries`, `from_clause`, `expressions`, .. ─▶
    typed `nodes` ─ `entry_names`, `write_queries`, `write_from`, .. ─▶ text

What goes in: the stored text of a view's query, or of an expression of a table, index or domain,
and the catalog with the present names. What comes out: the text of pg_get_viewdef() and its kin.
PostgreSQL prints the tree that its analyzer made. So literals have their casts, operators their
parentheses, columns their tables, IN is `= ANY (ARRAY[..])`, and BETWEEN is two comparisons.

The binder's plans have lost that shape, so this package analyzes the tree a second time. It makes
types and conversions only, checks nothing, and chooses functions and operators among the rows of
`pg_proc` and `pg_operator`.

INVARIANTS
  Z1  a text that is printed binds to the same definition. Printed once more it is what PostgreSQL
      prints then, which is not always the same text.
  Z2  a shape that the package does not know raises `UnknownShape`; the caller then shows what was
      stored.

Entry point: `definitions`. It imports `binder.resolve` and `binder.stored`; nobody in `sql` imports
it.
"""
