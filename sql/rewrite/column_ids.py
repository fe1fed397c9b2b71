"""Reserve a range of column ids for each module that adds columns to a plan.

INVARIANTS
  C1  every such module has a range of its own, behind the ids of all bound columns. It runs once
      over the plan of a statement and takes its ids from one iterator, so that ids never collide.
      The keys of windows are numbered apart (`emit/windows.py`).
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import count
from typing import Final

_RANGE: Final = 10**15


class IdRange(IntEnum):
    """The modules that add columns."""

    HOIST_SUBQUERY_CONDITIONS = 1
    LAZY_INIT_PLANS = 2
    COUNT_BUG = 3
    NEGATIVE_ZERO = 4
    HOIST_WINDOW_SUBQUERIES = 5
    CARRY_OUTER_COLUMNS = 6
    JOIN_CONDITION_SUBQUERIES = 7
    RECURSION_ROUNDS = 8
    GUARD_LAG_LEAD_DEFAULTS = 9
    SCALAR_SUBQUERY_AGGREGATES = 10
    HOIST_UNCORRELATED_VALUES = 11
    GUARD_FILTERED_AGGREGATES = 12
    HOIST_JOIN_KEY_SUBQUERIES = 13


def range_of_column_ids(made_by: IdRange) -> Iterator[int]:
    """The column ids of a range, from its first (C1)."""
    return count(made_by * _RANGE)
