"""Read sets: what a transaction has read, as predicates that validation tests.

    Scan ─▶ predicate ─▶ ReadSet of the shard ──▶ validation: does an interim row match?

INVARIANTS
  P1  a row that no predicate of a read set matches cannot have changed what the transaction was
      told: `matches` is True whenever it is unsure.
  P2  a read set is bounded: beyond the bound it is the whole table.
  P3  a predicate is pure and never raises.

Not here: how predicates are found (`sql/plan/read_conditions.py`) and tested
(`compute/access/row_predicates.py`).
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final, Protocol

from storage.batch import DataFile
from storage.known_rows import KnownRows, Points

PREDICATES_MAX: Final = 1_000
"""Of one transaction and table. Larger: more work to validate it. Smaller: long transactions that
read by key conflict with every write to the table."""

PREDICATE_BYTES_MAX: Final = 1 << 20
"""Of one transaction and table."""

KEYS_MAX: Final = 200_000
"""Keys of one transaction and table that it gives to rows, statement by statement."""

BULKS_MAX: Final = 32
"""Statements of one transaction and table that give many keys at once."""


class ReadPredicate(Hashable, Protocol):
    """Which rows of one table a scan depends on. Equal ones read the same."""

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        ...

    @property
    def look_up(self) -> "KeyLookUp | None":
        """The same as a look-up of keys, if it is one: that is validated at every level."""
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


class KeyLookUp(ReadPredicate, Protocol):
    """Which rows have one of the keys that a transaction gives to rows of its own."""

    decides: bool
    """ON CONFLICT has asked: the key may be there, and if that has changed it is no duplicate but
    another outcome, a conflict of reads.
    """

    @property
    def constraint(self) -> str:
        """The name of the primary key or unique constraint."""
        ...

    @property
    def keys(self) -> Collection[tuple[Hashable, ...]] | None:
        """The keys, if they are held as values."""
        ...

    def present(self, rows: KnownRows) -> Sequence[tuple[Hashable, ...]]:
        """The keys that these rows have; an empty tuple stands for one that is not known (P3)."""
        ...

    def merged(self, keys: Collection[tuple[Hashable, ...]]) -> "KeyLookUp":
        """The same look-up, of these keys."""
        ...

    def key_text(self, values: tuple[Hashable, ...]) -> str:
        """`(a, b)=(1, x)`, for the detail of 23505."""
        ...


class KeyLookUps:
    """The keys that one transaction has looked up in one shard at one timestamp.

    INVARIANT  P4  look-ups of one constraint are one predicate, however many statements they are.
    """

    __slots__ = ("_bulk", "_by_constraint", "_count", "_whole", "moved_back")

    def __init__(self) -> None:
        self.moved_back = False
        """Whether some were looked up later than they count from: what was there then is not what
        they have found.
        """
        self._by_constraint: dict[str, tuple[KeyLookUp, set[tuple[Hashable, ...]]]] = {}
        self._bulk: list[KeyLookUp] = []
        self._count = 0
        self._whole = False

    def add(self, look_up: KeyLookUp) -> None:
        """More keys."""
        keys = look_up.keys
        if keys is None:
            self._bulk.append(look_up)
        else:
            self._add_keys(look_up, keys)
        self._bound()

    def _add_keys(self, look_up: KeyLookUp, keys: Collection[tuple[Hashable, ...]]) -> None:
        name = look_up.constraint
        first, known = self._by_constraint.setdefault(name, (look_up, set()))
        if look_up.decides and not first.decides:
            self._by_constraint[name] = (look_up, known)
        known.update(keys)
        self._count += len(keys)

    def _bound(self) -> None:
        if self._count > KEYS_MAX or len(self._bulk) > BULKS_MAX:
            self._whole = True
            self._by_constraint, self._bulk = {}, []

    def merge(self, other: "KeyLookUps") -> None:
        """All that the other holds, too."""
        for look_up, keys in other._by_constraint.values():
            self._add_keys(look_up, keys)
        self._bulk += other._bulk
        self._whole = self._whole or other._whole
        self.moved_back = self.moved_back or other.moved_back
        self._bound()

    @property
    def predicates(self) -> Sequence[KeyLookUp] | None:
        """One per constraint, and the bulks; None: too many, as if the whole table were read."""
        if self._whole:
            return None
        return [first.merged(keys) for first, keys in self._by_constraint.values()] + self._bulk


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

    def merge(self, other: "ReadSet") -> None:
        """All that the other holds, too."""
        predicates = other.predicates
        for predicate in (None,) if predicates is None else predicates:
            self.add(predicate)

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
