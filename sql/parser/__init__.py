"""SQL text to syntax trees: pglast, which is PostgreSQL's own parser, plus Meridian's statements.

    text ─ nesting_limit ─▶ parse ─┬─ pglast ────────────────────▶ Statement with pglast's tree
                                   └─ refused: as_of, meridian_grammar ─▶ tree, meridian_nodes

Meridian's grammar is tried only where PostgreSQL's refuses, so valid PostgreSQL keeps its meaning.
Positions are offsets in the client's text throughout.

  `syntax`                                     reading pglast's nodes: positions, names of columns
  `nesting_limit`                              refuses chains that would overflow pglast's stack
  `as_of`, `meridian_nodes`                    AS OF; the nodes of Meridian's statements
  `meridian_grammar`, `parse`                  their parser; the entry point
  `constant_positions`                         where constants stand in the text
  `type_names`, `qualified_names`              names of types; qualified names in literals
  `named_arguments`, `option_values`           arguments by name; options in parentheses
  `statement_names`                            statements and objects named in SQL's words

Imports `sql.catalog` and below. The binder, `sql.statements` and the reference evaluator import it;
`coordinator` calls `parse`.
"""
