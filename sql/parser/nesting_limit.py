"""Refuse chains of operators, joins or set operations that are too long for pglast's recursion.

PostgreSQL's grammar bounds nesting to the right (10,000 open symbols). But `1 + 1 + ..`, `a UNION b
UNION ..`, `t JOIN u JOIN ..` and `x::int::int ..` make trees as deep as the chain is long, without
a bound. pglast builds them by recursion in C: about 15,000 links end the process. AND and OR do not
nest; the parser keeps them flat.

INVARIANTS
  D1  if a text passes, no path of its tree has `LINKS_MAX` links, besides the nesting to the right
      that the grammar bounds.
"""

import re
from dataclasses import dataclass
from typing import Final

from sql.parser.read_text import scan_text

LINKS_MAX: Final = 6_000
"""Less than half of what was seen to crash in a stack of 8 MiB."""

_LINK: Final = re.compile(
    r"[-+*/%^<>=~!@#&|?`]|::|\b(?:union|intersect|except|join|is|isnull|notnull|collate|like|ilike|at)\b",
    re.IGNORECASE,
)
_SLICE: Final = 1 << 16
"""Characters that are looked at in one call, which keeps the GIL; a word may be cut at its end."""

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
    slices = range(0, len(text), _SLICE)
    if len(slices) + sum(len(_LINK.findall(text, at, at + _SLICE)) for at in slices) < LINKS_MAX:
        return False
    return _longest_chain(text) >= LINKS_MAX


@dataclass(slots=True)
class _Level:
    """Counts inside one pair of parentheses; `peak` is the deepest nesting in it."""

    operators: int = 0
    joins: int = 0
    sets: int = 0
    peak: int = 0

    def count(self, name: str) -> None:
        """Count a token, or begin anew at one that starts another operand of a flat list."""
        if name in _SET_WORDS:
            self.sets += 1
            self.operators = self.joins = 0
        elif name == "JOIN":
            self.joins += 1
        elif name in _OPERATORS:
            self.operators += 1
        elif name in _RESTARTS:
            self.operators = 0
            if name in _JOIN_RESTARTS:
                self.joins = 0
        self.peak = max(self.peak, self.operators + self.joins + self.sets)


def _longest_chain(text: str) -> int:
    """The most links that may stand on one path of the tree; what is in parentheses adds up."""
    levels = [_Level()]
    longest = 0
    for token in scan_text(text):
        name = token.name
        if name == "ASCII_40":
            levels.append(_Level())
        elif name == "ASCII_41" and len(levels) > 1:
            inner = levels.pop()
            levels[-1].operators += inner.peak
            levels[-1].count(name)
        elif name == "ASCII_59":
            longest = max(longest, levels[0].peak)
            levels = [_Level()]
        else:
            levels[-1].count(name)
    return max(longest, *(level.peak for level in levels))
