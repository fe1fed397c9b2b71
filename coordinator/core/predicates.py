"""What a transaction has read, as predicates: the read set that validation tests (DESIGN §6).

    Scan ─▶ predicate ─▶ ReadSet of the shard ──▶ validation: does an interim row match?

INVARIANTS
  P1  a row that no predicate of a read set matches cannot have changed what the transaction was
      told: `matches` is True whenever it is unsure.
  P2  a read set is bounded: beyond the bound it is the whole table.
  P3  a predicate is pure and never raises.

Not here: how predicates are found (`sql/read_conditions.py`) and tested
(`compute/row_predicates.py`).
"""

from collections.abc import Hashable, Mapping
from typing import Final, Protocol

from storage.batch import DataFile
from storage.known_rows import KnownRows, Points

PREDICATES_MAX: Final = 1_000
"""Of one transaction and table. Larger: more work to validate it. Smaller: long transactions that
read by key conflict with every write to the table."""

PREDICATE_BYTES_MAX: Final = 1 << 18
"""Of one transaction and table."""


class ReadPredicate(Hashable, Protocol):
    """Which rows of one table a scan depends on. Equal ones read the same."""

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        ...

    @property
    def points(self) -> Points | None:
        """The keys that it asks for, if it asks by key: validation then looks them up."""
        ...

    def matches(self, rows: KnownRows) -> bool:
        """Whether some row may match (P1, P3)."""
        ...

    def may_match_file(self, file: DataFile) -> bool:
        """Whether some row of a file may match, by the file's statistics (P1, P3)."""
        ...

    def describe(self) -> str:
        """For EXPLAIN and logs."""
        ...


class ReadSet:
    """What one transaction has read of one shard (P2)."""

    __slots__ = ("_bytes", "_predicates", "_whole")

    def __init__(self) -> None:
        self._predicates: dict[ReadPredicate, None] = {}
        self._bytes = 0
        self._whole = False

    @property
    def predicates(self) -> Mapping[ReadPredicate, None] | None:
        """The predicates, each once; None: the whole table was read."""
        return None if self._whole else self._predicates

    def add(self, predicate: ReadPredicate | None) -> None:
        """Read more; None: the whole table."""
        if self._whole or (predicate is not None and predicate in self._predicates):
            return
        if predicate is not None:
            self._predicates[predicate] = None
            self._bytes += predicate.nbytes
        if (
            predicate is None
            or len(self._predicates) > PREDICATES_MAX
            or self._bytes > PREDICATE_BYTES_MAX
        ):
            self._whole = True
            self._predicates = {}
