"""PostgreSQL's patterns: regular expressions, LIKE and SIMILAR TO, parsed and analysed.

    SIMILAR TO ── like ──▶ regular expression ── parser ──▶ syntax tree ─┬─ backtracking ─▶ cost
                                                                         └─ unambiguous ──▶ yes/no

Engines get a pattern in their own dialect only if they match it as PostgreSQL does and in bounded
time. The two analyses decide that; `sql/emit/patterns.py` acts on them.

  `characters`                   classes and case of characters, and sets of them (C.UTF-8)
  `syntax`, `parser`             the nodes of a syntax tree, and the parser that makes them
  `like`                         LIKE and SIMILAR TO patterns, and their regular expressions
  `backtracking`, `unambiguous`  the cost of matching with backtracking; whether one match exists

  `searched_text`                sets of positions of a text, carried through a syntax tree

Matching itself is `compute/reference/functions/regex_match.py`. Imports `sql.errors` only; any
package from `sql.types` upwards may import it.
"""
