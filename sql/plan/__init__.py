"""Logical plans and bound expressions, and the tools that walk, rewrite and analyse them.

    binder ─▶ Plan, Expr ─┬─ sql/rewrite, sql/emit ─▶ engine SQL
                          ├─ compute/reference ─────▶ rows
                          └─ read_conditions ───────▶ which rows the result depends on

  `nodes`                                  the plan nodes and expressions, as frozen values
  `traverse`, `renumbering`                walking and rewriting; fresh column ids
  `projections`, `conditions`              small plans and conditions, built and taken apart
  `depth`                                  the limit of nesting
  `read_conditions`                        predicates on the rows that a plan reads
  `array_calls`, `bpchar_calls`            calls on arrays by element; the blanks of char(n)

Plans are values: hashable and comparable, so they serve as keys of caches. Imports `sql.functions`
and below. The binder, the rewriting passes, emitters, `compute` and `coordinator` import it.
"""
