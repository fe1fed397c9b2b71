"""A source that makes its own rows: row n is a function of the kind, the seed and n.

    COUNTER   n ─▶ counter(id = n, at)
    AUCTION   n ─▶ one row of persons, auctions or bids, in the proportions 1 : 3 : 46

The position is the next n. The clock says how many rows are due since the reader was started, and
decides nothing else (F6). `at` is made of n and the rate, too: the moment at which row n would
come if the first one had come at the beginning of the year 2000.

The three relations of AUCTION and their proportions are those of the NEXMark benchmark.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.reader import (
    ChangeKind,
    Position,
    ReaderFailure,
    ReadLimits,
    SnapshotPart,
    SourceBatch,
    SourceProgress,
    Upstream,
    UpstreamChange,
    UpstreamColumn,
    UpstreamIdentity,
    UpstreamTable,
)
from sql.catalog.sources import GENERATOR_TABLES
from sql.types.sql_type import Value

OFFSET: Final = "offset"
ROWS_MAX: Final = 5_000
"""Of one batch. Larger: the loop stands still longer while they are made."""

_BEGINNING_US: Final = 946_684_800_000_000
_ROW_BYTES: Final = 64
_ROUND: Final = 50
_PERSONS: Final = 1
_AUCTIONS: Final = 3
_CITIES: Final = ("Cairo", "Kyoto", "Lagos", "Lima", "Oslo", "Pune", "Quito", "Riga")
_FIRST: Final = ("Ada", "Bo", "Chi", "Dara", "Eli", "Fay", "Gil", "Hana")
_LAST: Final = ("Adler", "Brook", "Costa", "Dorn", "Evans", "Falk", "Garcia", "Hale")
_ITEMS: Final = ("clock", "lamp", "map", "mirror", "radio", "stamp", "table", "vase")
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """`kind`: a key of GENERATOR_TABLES. `rows_max` None: without end."""

    kind: str
    rate: int = 1
    rows_max: int | None = None
    seed: int = 0

    @staticmethod
    def of(given: Mapping[str, str]) -> "GeneratorOptions":
        """The options as a source's definition has them."""
        most = given.get("max rows")
        return GeneratorOptions(
            given["kind"],
            int(given.get("rows per second", "1")),
            None if most is None else int(most),
            int(given.get("seed", "0")),
        )


class GeneratorReader:
    """Implements SourceReader."""

    def __init__(self, options: GeneratorOptions) -> None:
        self._options = options
        self._next = 0
        self._first = 0
        self._started: float | None = None
        self._closed = asyncio.Event()

    async def inspect(self) -> Upstream:
        """See SourceReader."""
        tables = tuple(
            UpstreamTable(
                name, tuple([UpstreamColumn(c.name, c.type, c.not_null) for c in columns])
            )
            for name, columns in GENERATOR_TABLES[self._options.kind].items()
        )
        return Upstream(self._identity(), tables)

    def _identity(self) -> UpstreamIdentity:
        options = self._options
        return {"kind": options.kind, "seed": str(options.seed), "rate": str(options.rate)}

    async def prepare(self, _tables: Sequence[UpstreamTable]) -> SourceProgress:
        """See SourceReader."""
        return SourceProgress({OFFSET: 0}, self._identity())

    async def snapshot(self) -> AsyncIterator[SnapshotPart]:
        """Nothing is there before the first row."""
        nothing: tuple[SnapshotPart, ...] = ()
        for each in nothing:
            yield each

    async def start(
        self, progress: SourceProgress, _tables: Sequence[UpstreamTable]
    ) -> UpstreamIdentity:
        """See SourceReader."""
        if progress.identity != self._identity():
            raise ReaderFailure("55000", "the generator makes other rows than before", broken=True)
        self._next = self._first = progress.position[OFFSET]
        self._started = asyncio.get_running_loop().time()
        return progress.identity

    async def read(self, limits: ReadLimits) -> SourceBatch:
        """See SourceReader; waits until a row is due."""
        most = max(1, min(ROWS_MAX, limits.size // _ROW_BYTES))
        end = min(self._due(), self._next + most)
        if end <= self._next:
            await self._wait(limits.wait_ms / 1_000)
            end = min(self._due(), self._next + most)
        changes: dict[str, list[UpstreamChange]] = {}
        for n in range(self._next, end):
            reference, row = generated_row(self._options, n)
            change = UpstreamChange(ChangeKind.INSERT, new=row)
            changes.setdefault(reference, []).append(change)
        size = (end - self._next) * _ROW_BYTES
        self._next = max(self._next, end)
        return SourceBatch({OFFSET: self._next}, changes, size=size)

    def _due(self) -> int:
        """Up to which row the clock lets it come."""
        assert self._started is not None, "a reader is started before it reads"
        passed = asyncio.get_running_loop().time() - self._started
        due = self._first + int(passed * self._options.rate) + 1
        most = self._options.rows_max
        return due if most is None else min(due, most)

    async def _wait(self, longest: float) -> None:
        """Until the next row is due, or the reader is closed."""
        assert self._started is not None, "a reader is started before it reads"
        at = self._started + (self._next - self._first) / self._options.rate
        wait = min(longest, at - asyncio.get_running_loop().time())
        most = self._options.rows_max
        wait = longest if most is not None and self._next >= most else wait
        try:
            async with asyncio.timeout(max(wait, 0.001)):
                await self._closed.wait()
        except TimeoutError:
            pass

    async def acknowledge(self, upto: Position) -> None:
        """Nobody remembers anything."""

    async def newest(self) -> Position:
        """See SourceReader: what is due now."""
        return {OFFSET: max(self._next, self._due())}

    async def close(self) -> None:
        """See SourceReader."""
        self._closed.set()

    async def release(self) -> None:
        """There is nothing upstream."""


def generated_row(options: GeneratorOptions, n: int) -> tuple[str, tuple[Value, ...]]:
    """The n-th row, and the table that it is of."""
    at = _BEGINNING_US + n * 1_000_000 // options.rate
    if options.kind == "counter":
        return "counter", (n, at)
    return _auction_row(options.seed, n, at)


def _auction_row(seed: int, n: int, at: int) -> tuple[str, tuple[Value, ...]]:
    turn, place = divmod(n, _ROUND)
    drawn = _mixed(seed, n)
    if place < _PERSONS:
        name = f"{_FIRST[drawn % 8]} {_LAST[(drawn >> 8) % 8]}"
        return "persons", (turn, name, _CITIES[(drawn >> 16) % 8], at)
    persons, auctions = turn + 1, turn * _AUCTIONS + place - _PERSONS
    if place < _PERSONS + _AUCTIONS:
        item, category = _ITEMS[(drawn >> 8) % 8], (drawn >> 16) % 10
        return "auctions", (
            auctions,
            drawn % persons,
            item,
            category,
            1 + (drawn >> 24) % 1_000,
            at,
        )
    there = (turn + 1) * _AUCTIONS
    price = 1 + (drawn >> 40) % 10_000
    return "bids", (drawn % there, (drawn >> 20) % persons, price, at)


def _mixed(seed: int, n: int) -> int:
    """64 bits that look random (splitmix64)."""
    z = (seed * 0x9E3779B97F4A7C15 + (n + 1) * 0xD1B54A32D192ED03) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
