"""Bound statements: the values that the binder hands to a session, one dataclass for each kind.

    syntax tree ─ sql/binder ─▶ ParameterizedStatement ─▶ coordinator/session, execution
                                (BoundStatement, parameter types)

  `runtime_parameters`, `literals`   values found at run time; literals that depend on settings
  `explain_options`, `view_checks`   options of EXPLAIN; WITH CHECK OPTION
  `session`                          transaction control, SET, SHOW, DISCARD
  `ddl`                              parts of DDL: changed definitions, checks of existing rows
  `bound`                            queries, data modification, COPY, DDL; `BoundStatement`,
                                     `ParameterizedStatement`

They hold plans and catalog values, and no behaviour beyond look-ups. Imports `sql.parser` and
below. The binder, `sql.explain` and `coordinator` import it; `sql.rewrite` stands beside it and
neither imports the other.
"""
