"""Remember what was found out about plans and statements, by their identity.

They are immutable and large: comparing two of them costs more than most of what is asked. Those
that run again come from the plan cache, so they are the same objects.

INVARIANTS
  I1  what is remembered is kept together with its object, whose identity is given to no other
      meanwhile.
  I2  memory is bounded: when there are ENTRIES_MAX objects, all are forgotten.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

ENTRIES_MAX: Final = 2_000

REMEMBERED_NODES_MAX: Final = 1_000
"""Longer plans are full of literals: seldom run twice, and large."""


class IdentityCache(Generic[K, V]):
    """See the module."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._known: dict[int, tuple[K, V]] = {}

    def get(self, key: K) -> V | None:
        """What is remembered of an object."""
        known = self._known.get(id(key))
        return known[1] if known is not None and known[0] is key else None

    def put(self, key: K, value: V) -> None:
        """Remember it."""
        if len(self._known) >= self._entries_max:
            self._known.clear()
        self._known[id(key)] = key, value

    def found(self, key: K, find: Callable[[], V]) -> V:
        """What is remembered, or is found now and remembered; None counts as found."""
        known = self._known.get(id(key))
        if known is not None and known[0] is key:
            return known[1]
        value = find()
        self.put(key, value)
        return value
