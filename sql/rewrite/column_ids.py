"""Reserve a range of column ids for each pass that adds columns to a plan.

INVARIANTS
  C1  every pass has a range of its own, behind the ids of all bound columns. It runs once over the
      plan of a statement and takes its ids from one iterator, so that ids never collide. The keys
      of windows are numbered apart (`emit/windows.py`).
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import count
from typing import Final

_RANGE: Final = 10**15


class Pass(IntEnum):
    """The passes that add columns."""

    CONDITION_COLUMNS = 1
    ASKED_SUBQUERIES = 2
    MADE_ROWS = 3
    OUTER_ZEROS = 4
    ASKED_WINDOWS = 5
    CARRIED_COLUMNS = 6
    JOINED_SUBQUERIES = 7
    ROUNDS = 8
    ASKED_DEFAULTS = 9
    ONLY_ROWS = 10
    OWN_VALUES = 11
    FILTERED_ARGUMENTS = 12
    KEY_COLUMNS = 13


def numbers_of(made_by: Pass) -> Iterator[int]:
    """The column ids of a pass, from its first (C1)."""
    return count(made_by * _RANGE)
