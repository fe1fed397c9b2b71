"""Chains that would nest too deep for the parser's tree: refused before it is built.

PostgreSQL's grammar bounds what nests to the right (10,000 open symbols), but `1 + 1 + ..`, `a UNION b UNION ..`,
`t JOIN u JOIN ..` and `x::int::int ..` make trees as deep as the chain is long, without a bound, and pglast
builds them by recursion in C: about 15,000 links end the process. AND and OR do not nest; the parser
keeps them flat.

INVARIANTS
  D1  a text that passes makes a tree of less than `LINKS_MAX` links along any chain, times the nesting that
      the grammar bounds.
"""

import re
from typing import Final

from pglast import parser

LINKS_MAX: Final = 6_000
"""Less than half of what was seen to crash in a stack of 8 MiB."""

_LINK: Final = re.compile(
    r"[-+*/%^<>=~!@#&|?`]|::|\b(?:union|intersect|except|join|is|isnull|notnull|collate|like|ilike|at)\b",
    re.IGNORECASE,
)
_SET_WORDS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT"})
_OPERATORS: Final = frozenset(
    {
        "Op", "TYPECAST", "NOT_EQUALS", "LESS_EQUALS", "GREATER_EQUALS", "EQUALS_GREATER", "IS",
        "ISNULL", "NOTNULL", "COLLATE", "LIKE", "ILIKE", "AT", "OPERATOR", "SIMILAR", "IN_P",
        *(f"ASCII_{ord(character)}" for character in "+-*/%^<>="),
    }
)  # fmt: skip
_RESTARTS: Final = frozenset(
    {
        "ASCII_44", "AND", "OR", "WHEN", "THEN", "ELSE", "SELECT", "FROM", "WHERE", "HAVING", "ON",
        "VALUES", "SET", "RETURNING",
    }
)  # fmt: skip
_JOIN_RESTARTS: Final = frozenset({"ASCII_44", "SELECT", "FROM", "WHERE"})


def is_too_deep(text: str) -> bool:
    """Whether a chain in the text is longer than the parser's tree can take (D1)."""
    if len(text) < 2 * LINKS_MAX:
        return False
    # Counting is cheap and almost always enough; the scanner costs as much as the parser.
    if sum(1 for _ in _LINK.finditer(text)) < LINKS_MAX:
        return False
    return _longest_chain(text) >= LINKS_MAX


def _longest_chain(text: str) -> int:
    """The longest run of links of one kind in one pair of parentheses."""
    longest = 0
    operators = joins = sets = 0
    outer: list[tuple[int, int, int]] = []
    for token in parser.scan(text):
        name = token.name
        if name == "ASCII_40":
            outer.append((operators, joins, sets))
            operators = joins = sets = 0
        elif name == "ASCII_41" and outer:
            operators, joins, sets = outer.pop()
        elif name == "ASCII_59":
            operators = joins = sets = 0
        elif name in _SET_WORDS:
            sets += 1
            operators = joins = 0
        elif name == "JOIN":
            joins += 1
        elif name in _OPERATORS:
            operators += 1
        else:
            operators = 0 if name in _RESTARTS else operators
            joins = 0 if name in _JOIN_RESTARTS else joins
        longest = max(longest, operators, joins, sets)
    return longest
