"""Dataclasses that only the type checkers freeze, for values that are made all the time.

A frozen dataclass sets each field by `object.__setattr__`, which takes seven times as long as an
assignment. A short statement makes dozens of values, and paid a tenth of its time for this. Whoever
assigns to a field is told by mypy and pyright, as with any frozen dataclass.

INVARIANTS
  F1  equality and hash are those of a frozen dataclass.
  F2  a hierarchy is of one kind: Python does not let a frozen class inherit from one that is not.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as fast_dataclass
else:

    def fast_dataclass(*, frozen, slots, eq=True):
        """As `dataclass`, but for what happens to who assigns to a field."""
        assert frozen, "what may be assigned to is a plain dataclass"
        return dataclass(slots=slots, eq=eq, unsafe_hash=eq)


__all__ = ["fast_dataclass"]
