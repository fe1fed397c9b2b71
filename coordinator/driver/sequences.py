"""Hand out sequence values outside of transactions: each only once, durable by ranges.

    nextval ─▶ a value of the range in memory ──empty──▶ the next range, durable, then its values

INVARIANTS
  S1  a value is handed out only after a state beyond it is durable, so no later coordinator hands
      it out again. The rest of a range is a gap when the server ends.
  S2  a range belongs to one definition of a sequence: ALTER SEQUENCE begins another.
  S3  one range of a sequence is allocated at a time.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from coordinator.failures import storage_failure
from sql.catalog.catalog import Catalog
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from storage.errors import StorageError
from storage.stash import Put, Stash
from storage.types import Epoch

COLLECTION: Final = "sequences"

RANGE_VALUES: Final = 32
"""Values made durable ahead, as in PostgreSQL. Larger: larger gaps after a crash."""


@dataclass(frozen=True, slots=True)
class SequenceState:
    """What PostgreSQL shows of a sequence. `left`: values that are durable and not handed out."""

    last: int
    left: int
    called: bool


@dataclass(slots=True)
class _Range:
    """Values that may be handed out, and what is durable."""

    version: int
    values: list[int] = field(default_factory=list[int])
    last: int | None = None
    """The value handed out last, if it was of this range or one before of this server."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class SequenceValues:
    """See the module. One for a server."""

    def __init__(self, stash: Stash, epoch: Epoch) -> None:
        self._stash = stash
        self._epoch = epoch
        self._ranges: dict[str, _Range] = {}

    async def take(self, sequence: SequenceDefinition, count: int) -> Sequence[int]:
        """The next values (S1). Raises 2200H at the end of a sequence that does not cycle."""
        known = self._range(sequence)
        async with known.lock:
            if len(known.values) < count:
                await self._grow(sequence, known, count)
            taken, known.values = known.values[:count], known.values[count:]
            known.last = taken[-1]
        return taken

    def at_hand(self, sequence: SequenceDefinition, count: int) -> Sequence[int] | None:
        """The next values, not taken yet; None if `take` would have to wait for them."""
        known = self._ranges.get(sequence.state)
        if known is None or known.version != sequence.version or known.lock.locked():
            return None
        return known.values[:count] if len(known.values) >= count else None

    def take_at_hand(self, sequence: SequenceDefinition, count: int) -> None:
        """Take what `at_hand` has said, before anybody may wait (S1)."""
        known = self._ranges[sequence.state]
        known.last = known.values[count - 1]
        del known.values[:count]

    async def state(self, sequence: SequenceDefinition) -> SequenceState:
        """Where it stands now."""
        known = self._range(sequence)
        async with known.lock:
            if known.last is not None:
                return SequenceState(known.last, len(known.values), True)
            stored = await self._stored(sequence)
        if stored is None:
            first = sequence.start if sequence.first is None else sequence.first
            return SequenceState(first, 0, False)
        return SequenceState(stored[0], 0, stored[1])

    async def set(self, sequence: SequenceDefinition, value: int, *, called: bool) -> None:
        """Let the sequence stand at a value. `called`: it was handed out."""
        if not sequence.least <= value <= sequence.greatest:
            raise SqlError(
                "22003",
                f'setval: value {value} is out of bounds for sequence "{sequence.name}" '
                f"({sequence.least}..{sequence.greatest})",
            )
        known = self._range(sequence)
        async with known.lock:
            known.values, known.last = [], None
            await self._persist(sequence, value, called=called)

    def _range(self, sequence: SequenceDefinition) -> _Range:
        known = self._ranges.get(sequence.state)
        if known is None:
            known = self._ranges[sequence.state] = _Range(sequence.version)
        elif known.version != sequence.version:
            # What was not handed out was nobody's: the new definition goes on from there.
            known.version, known.values = sequence.version, []
        return known

    async def _grow(self, sequence: SequenceDefinition, known: _Range, count: int) -> None:
        last = known.values[-1] if known.values else known.last
        if last is None:
            last = await self._last(sequence)
        wanted = count - len(known.values) + RANGE_VALUES
        values = _following(sequence, last, wanted)
        if len(known.values) + len(values) < count:
            raise _at_the_end(sequence)
        await self._persist(sequence, values[-1], called=True)
        known.values = [*known.values, *values]

    async def _last(self, sequence: SequenceDefinition) -> int | None:
        """The value before the next one; None: the next one is the first."""
        stored = await self._stored(sequence)
        if stored is None:
            return None
        value, called = stored
        return value if called else value - sequence.increment

    async def _stored(self, sequence: SequenceDefinition) -> tuple[int, bool] | None:
        """What is durable: a value, and whether it was handed out, or may have been."""
        try:
            stored = await self._stash.read(COLLECTION, sequence.state)
        except StorageError as error:
            raise storage_failure(error) from error
        if stored is None:
            return None
        state = json.loads(stored)
        return int(state["value"]), bool(state["called"])

    async def _persist(self, sequence: SequenceDefinition, value: int, *, called: bool) -> None:
        state = json.dumps({"value": value, "called": called}).encode()
        try:
            await self._stash.transact(self._epoch, [Put(COLLECTION, sequence.state, state)])
        except StorageError as error:
            raise storage_failure(error) from error


def _following(sequence: SequenceDefinition, last: int | None, count: int) -> list[int]:
    """So many values after `last`, or as many as there are."""
    values: list[int] = []
    first = sequence.start if sequence.first is None else sequence.first
    value = first if last is None else last + sequence.increment
    while len(values) < count:
        if not sequence.least <= value <= sequence.greatest:
            if not sequence.cycle:
                break
            value = sequence.least if sequence.increment > 0 else sequence.greatest
        values.append(value)
        value += sequence.increment
    return values


def _at_the_end(sequence: SequenceDefinition) -> SqlError:
    word, bound = "maximum", sequence.greatest
    if sequence.increment < 0:
        word, bound = "minimum", sequence.least
    message = f'nextval: reached {word} value of sequence "{sequence.name}" ({bound})'
    return SqlError("2200H", message)


@dataclass(slots=True)
class SessionSequences:
    """What currval() and lastval() answer: values that this session was given."""

    values: dict[int, int] = field(default_factory=dict[int, int])
    last: int | None = None

    def took(self, sequence: SequenceDefinition, value: int) -> None:
        """A value was handed out to the session."""
        self.values[sequence.oid] = value
        self.last = sequence.oid

    def current(self, sequence: SequenceDefinition) -> int:
        """currval(): 55000 before the first nextval() of the session."""
        if sequence.oid not in self.values:
            message = f'currval of sequence "{sequence.name}" is not yet defined in this session'
            raise SqlError("55000", message)
        return self.values[sequence.oid]

    def was_set(self, sequence: SequenceDefinition, value: int) -> None:
        """setval() of the session; lastval() is of the sequence that gave the last value."""
        self.values[sequence.oid] = value

    def newest(self, catalog: Catalog) -> int:
        """lastval()."""
        if self.last is None or catalog.sequence_by_oid(self.last) is None:
            raise SqlError("55000", "lastval is not yet defined in this session")
        return self.values[self.last]

    def discard(self) -> None:
        """DISCARD SEQUENCES."""
        self.values.clear()
        self.last = None
