"""Recognise unambiguous regular expressions: there is one way to match, the same in every engine.

PostgreSQL takes the longest match; Perl-like engines take the first one that they come across. They
agree, also about groups, if the next character always decides which part of the pattern it belongs
to, and no quantifier is lazy.

INVARIANTS
  O1  a pattern is not `is_unambiguous` unless it is known to be.
"""

from dataclasses import dataclass, field

from sql.regex.characters import Ranges, overlap
from sql.regex.syntax import (
    Anchor,
    BackReference,
    CapturingGroup,
    Chain,
    Characters,
    Either,
    Lookaround,
    RegexNode,
    Repeat,
    child_nodes,
)

_POSITIONS_MAX = 60


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where a part of a pattern can begin and end (positions), and whether it may be nothing."""

    empty: bool
    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Graph:
    """Positions are the sets of characters of the pattern; `follow`: what may come next."""

    sets: list[Ranges] = field(default_factory=list[Ranges])
    follow: list[set[int]] = field(default_factory=list[set[int]])

    def shape(self, node: RegexNode) -> _Shape | None:
        """The shape of a node; None if it may be ambiguous."""
        match node:
            case Characters(ranges):
                self.sets.append(ranges)
                self.follow.append(set())
                here = frozenset({len(self.sets) - 1})
                return _Shape(False, here, here)
            case Anchor():
                return _Shape(True)
            case CapturingGroup(inner):
                return self.shape(inner)
            case Chain(items):
                return self._chain(items)
            case Either(items):
                return self._either(items)
            case Repeat():
                return self._repeat(node)
            case Lookaround() | BackReference():
                return None

    def _chain(self, items: tuple[RegexNode, ...]) -> _Shape | None:
        found = _Shape(True)
        for item in items:
            shape = self.shape(item)
            if shape is None:
                return None
            self._link(found.last, shape.first)
            found = _Shape(
                found.empty and shape.empty,
                found.first | shape.first if found.empty else found.first,
                found.last | shape.last if shape.empty else shape.last,
            )
        return found

    def _either(self, items: tuple[RegexNode, ...]) -> _Shape | None:
        found = _Shape(False)
        for item in items:
            shape = self.shape(item)
            if shape is None or (shape.empty and found.empty):
                return None
            found = _Shape(
                found.empty or shape.empty, found.first | shape.first, found.last | shape.last
            )
        return found

    def _repeat(self, node: Repeat) -> _Shape | None:
        several = node.most is None or node.most > 1
        if node.lazy or (several and _remembers(node.node)) or node.most == 0:
            return None
        shape = self.shape(node.node)
        # If several ways match nothing, engines take different ones.
        if shape is None or shape.empty:
            return None
        if several:
            self._link(shape.last, shape.first)
        return _Shape(node.least == 0, shape.first, shape.last)

    def _link(self, last: frozenset[int], first: frozenset[int]) -> None:
        for position in last:
            self.follow[position] |= first

    def decided(self, choices: "set[int] | frozenset[int]") -> bool:
        """Whether the next character decides which of the positions is meant."""
        listed = sorted(choices)
        return not any(
            overlap(self.sets[a], self.sets[b])
            for index, a in enumerate(listed)
            for b in listed[index + 1 :]
        )


def _remembers(node: RegexNode) -> bool:
    return isinstance(node, CapturingGroup) or any(map(_remembers, child_nodes(node)))


def is_unambiguous(node: RegexNode) -> bool:
    """Whether a match has only one way to come about, and is never empty."""
    graph = _Graph()
    shape = graph.shape(node)
    if shape is None or shape.empty or len(graph.sets) > _POSITIONS_MAX:
        return False
    return graph.decided(shape.first) and all(map(graph.decided, graph.follow))


def optional_groups(node: RegexNode, *, optional: bool = False) -> frozenset[int]:
    """The groups that need not take part in a match."""
    match node:
        case CapturingGroup(inner, number):
            own = frozenset({number}) if optional else frozenset[int]()
            return own | optional_groups(inner, optional=optional)
        case Either(items):
            return frozenset[int]().union(*(optional_groups(i, optional=True) for i in items))
        case Repeat(inner, least):
            return optional_groups(inner, optional=optional or least == 0)
        case _:
            found = (optional_groups(part, optional=optional) for part in child_nodes(node))
            return frozenset[int]().union(*found)
