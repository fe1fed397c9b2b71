"""Estimate the cost of backtracking, to give Java's regex engine only patterns of bounded cost.

Java's matcher backtracks and cannot be interrupted. A catastrophic pattern would occupy its thread
for ever, whatever statement_timeout says; after a few of them nobody is served. PostgreSQL's,
DuckDB's and our own matcher (`compute/reference/functions/regex_match.py`) follow all alternatives
at once.

    foo.*bar          at most quadratic in the text's length     ─▶ Java
    (a+)+$, a*a*a*c   more than that                             ─▶ ours

INVARIANTS
  C1  a pattern counts as too expensive unless it is known not to be.
  C2  only a single set of characters repeats without an upper bound: Java needs no stack for it.
"""

from dataclasses import dataclass
from typing import Final

from sql.regex.characters import ALL_CHARACTERS, Ranges, overlap
from sql.regex.syntax import (
    Anchor,
    AnchorKind,
    BackReference,
    CapturingGroup,
    Chain,
    Characters,
    Either,
    Lookaround,
    RegexNode,
    Repeat,
)

_EXPONENT_MAX: Final = 2
_WAYS_MAX: Final = 256
"""More: slower searches that are Java's own. Fewer: more patterns that leave Spark for Python."""
_BRANCHES_MAX: Final = 32
"""Branches whose first characters are compared pairwise; more are assumed to overlap."""

_Sets = frozenset[Ranges]


@dataclass(frozen=True, slots=True)
class _Cost:
    """`ways` times the length to the power of `exponent`, from one position on."""

    exponent: int = 0
    """How many parts have as many alternatives as there are characters."""
    ways: int = 1
    runs: bool = False
    """A part of any length has only one way to match."""

    def then(self, other: "_Cost") -> "_Cost":
        """Of one after the other."""
        return _Cost(
            self.exponent + other.exponent, self.ways * other.ways, self.runs or other.runs
        )


class _Unknown(Exception):
    """The cost has no known bound (C1)."""


def has_bounded_backtracking(node: RegexNode) -> bool:
    """Whether a search takes no longer than the square of the text's length (C1)."""
    try:
        cost = _cost(node, frozenset())
    except _Unknown:
        return False
    exponent = cost.exponent + cost.runs + (not _is_anchored(node))
    return exponent <= _EXPONENT_MAX and cost.ways <= _WAYS_MAX


def _is_anchored(node: RegexNode) -> bool:
    """Whether it is found at the beginning of the text only."""
    match node:
        case Anchor(kind):
            return kind is AnchorKind.START
        case Chain(items):
            return bool(items) and _is_anchored(items[0])
        case Either(items):
            return all(map(_is_anchored, items))
        case CapturingGroup(inner):
            return _is_anchored(inner)
        case _:
            return False


def _cost(node: RegexNode, following: _Sets) -> _Cost:
    """Before something that begins with `following`."""
    match node:
        case Characters() | Anchor() | BackReference():
            return _Cost()
        case CapturingGroup(inner):
            return _cost(inner, following)
        case Chain(items):
            return _chain(items, following)
        case Either(items):
            return _either(items, following)
        case Repeat():
            return _repeat(node, following)
        case Lookaround(inner):
            # It is asked on every way that comes to it.
            found = _cost(inner, frozenset())
            return _Cost(found.exponent + found.runs, found.ways)


def _chain(items: tuple[RegexNode, ...], following: _Sets) -> _Cost:
    found = _Cost()
    for item in reversed(items):
        found = _cost(item, following).then(found)
        _check(found)
        first, empty = _first(item)
        following = first | following if empty else first
    return found


def _either(items: tuple[RegexNode, ...], following: _Sets) -> _Cost:
    costs = [_cost(item, following) for item in items]
    beginnings = [_first(item) for item in items]
    firsts = [first | following if empty else first for first, empty in beginnings]
    alike = len(items) > _BRANCHES_MAX or any(
        _overlap(first, other) for at, first in enumerate(firsts) for other in firsts[at + 1 :]
    )
    ways = [cost.ways for cost in costs]
    return _Cost(
        max(cost.exponent for cost in costs),
        sum(ways) if alike else max(ways),
        any(cost.runs for cost in costs),
    )


def _repeat(node: Repeat, following: _Sets) -> _Cost:
    first, _ = _first(node.node)
    chosen = node.least != node.most and _overlap(first, following)
    if node.most is None:
        if not _is_one_set(node.node):
            raise _Unknown
        return _Cost(exponent=1) if chosen else _Cost(runs=True)
    inside = _cost(node.node, following | first if node.most > 1 else following)
    found = _Cost(ways=node.most - node.least + 1 if chosen else 1)
    if inside == _Cost():
        return found
    for _ in range(node.most):
        found = found.then(inside)
        _check(found)
    return found


def _check(cost: _Cost) -> None:
    if cost.exponent > _EXPONENT_MAX or cost.ways > _WAYS_MAX:
        raise _Unknown


def _is_one_set(node: RegexNode) -> bool:
    if isinstance(node, CapturingGroup):
        return _is_one_set(node.node)
    if isinstance(node, Chain) and len(node.items) == 1:
        return _is_one_set(node.items[0])
    return isinstance(node, Characters)


def _first(node: RegexNode) -> tuple[_Sets, bool]:
    """With what it can begin, and whether it can be nothing."""
    match node:
        case Characters(ranges):
            return frozenset([ranges]), False
        case Anchor() | Lookaround():
            return frozenset(), True
        case BackReference():
            return frozenset([ALL_CHARACTERS]), True
        case CapturingGroup(inner):
            return _first(inner)
        case Chain(items):
            found: _Sets = frozenset()
            for item in items:
                first, empty = _first(item)
                found |= first
                if not empty:
                    return found, False
            return found, True
        case Either(items):
            both = [_first(item) for item in items]
            return frozenset[Ranges]().union(*(first for first, _ in both)), any(e for _, e in both)
        case Repeat(inner, least):
            first, empty = _first(inner)
            return first, empty or least == 0


def _overlap(some: _Sets, others: _Sets) -> bool:
    return any(overlap(a, b) for a in some for b in others)
