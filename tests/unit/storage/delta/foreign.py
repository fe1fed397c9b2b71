"""A table with everything in it, written by flushes, for foreign readers to read.

Not the memory store's secrets but plain files are what they get: `write_out` copies them.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import Deletes, WriteBatch
from storage.clock import SystemClock
from storage.cuts import flush
from storage.delta.checksum import Checksums
from storage.delta.compaction import rewrite_files
from storage.delta.compaction_plan import CompactionLimits
from storage.delta.files import decode_parquet, encode_file
from storage.delta.layout import data_path
from storage.delta.maintenance import write_checkpoint
from storage.delta.vacuum import vacuum_shard
from storage.delta.vacuum_plan import Vacuuming, names_in_use
from storage.live_files import LiveFile
from storage.memory import MemoryObjectStore
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp, inline_source

SHARD = ShardId("tfeedfacecafebeef")
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False, metadata={"meridian.type": "int8"}),
        pa.field("b", pa.bool_()),
        pa.field("i2", pa.int16()),
        pa.field("i4", pa.int32()),
        pa.field("f4", pa.float32()),
        pa.field("f8", pa.float64()),
        pa.field("n9", pa.decimal128(9, 2), metadata={"meridian.type": "numeric(9,2)"}),
        pa.field("n18", pa.decimal128(18, 3)),
        pa.field("n38", pa.decimal128(38, 18)),
        pa.field("s", pa.string()),
        pa.field("x", pa.binary()),
        pa.field("d", pa.date32()),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tz", pa.timestamp("us", "UTC")),
    ]
)
Row = dict[str, Any]

LONG = "Ünïcödé — " * 5 + "\U0010ffff" * 3 + "🜁"
EARLY = datetime(1, 1, 1)
EPOCH = datetime(1970, 1, 1)
DECIMAL = re.compile(r"-?\d+(\.\d+)?(E-?\d+)?")
LATE = datetime(9999, 12, 31, 23, 59, 59, 999_999)


def row(k: int) -> Row:
    """An ordinary row; some columns are null in some rows."""
    moment = datetime(2020, 1, 1) + timedelta(seconds=k, microseconds=k % 1_000)
    whole = {
        "k": k,
        "b": k % 2 == 0,
        "i2": k % 30_000,
        "i4": -k,
        "f4": k / 4,
        "f8": k / 3,
        "n9": Decimal(k).scaleb(-2),
        "n18": Decimal(-k).scaleb(-3),
        "n38": Decimal(k) + Decimal(1).scaleb(-18),
        "s": f"row {k}",
        "x": k.to_bytes(4, "big"),
        "d": date(2020, 1, 1) + timedelta(days=k % 1_000),
        "ts": moment,
        "tz": moment.replace(tzinfo=UTC),
    }
    return whole if k % 5 else {**whole, **dict.fromkeys(list(whole)[1 + k % 13 :])}


EXTREMES: list[Row] = [
    {
        "k": -(2**63),
        "b": False,
        "i2": -(2**15),
        "i4": -(2**31),
        "f4": -math.inf,
        "f8": math.nan,
        "n9": Decimal("-9999999.99"),
        "n18": Decimal("-999999999999999.999"),
        "n38": Decimal("-99999999999999999999.999999999999999999"),
        "s": "",
        "x": b"",
        "d": EARLY.date(),
        "ts": EARLY,
        "tz": EARLY.replace(tzinfo=UTC),
    },
    {
        "k": 2**63 - 1,
        "b": True,
        "i2": 2**15 - 1,
        "i4": 2**31 - 1,
        "f4": math.inf,
        "f8": 5e-324,
        "n9": Decimal("9999999.99"),
        "n18": Decimal("999999999999999.999"),
        "n38": Decimal("99999999999999999999.999999999999999999"),
        "s": LONG,
        "x": bytes(range(256)),
        "d": LATE.date(),
        "ts": LATE,
        "tz": LATE.replace(tzinfo=UTC),
    },
    {**dict.fromkeys(SCHEMA.names), "k": -1, "d": date(1582, 10, 10), "ts": datetime(1500, 2, 28)},
]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def plain(row: Row) -> list[object]:
    """A row of ours as the readers' queries spell it (`COLUMNS`)."""
    return [_plain(row[name]) for name in SCHEMA.names]


def normal(rows: Iterable[Sequence[object]]) -> list[str]:
    """Rows as text, in order: NaN is equal to itself, and 0E-18 to 0.000000000000000000."""
    return sorted(repr([_number(value) for value in row]) for row in rows)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return (value.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - EPOCH.date()).days
        case bytes():
            return value.hex().upper()
        case _:
            return value


def _number(value: object) -> object:
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = Decimal(value)
    return format(value, "f") if isinstance(value, Decimal) else value


@dataclass
class Story:
    """Commits, flushes and checkpoints; `answers` are our own rows at each version."""

    now: int
    store: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    state: ShardState = field(init=False)
    answers: dict[int, list[str]] = field(default_factory=dict)
    cuts: dict[int, int] = field(default_factory=dict)
    rewritten: tuple[LiveFile, ...] = ()
    checksums: Checksums = field(default_factory=Checksums)

    def __post_init__(self) -> None:
        self.now -= self.now % 1_000
        self.state = ShardState(SHARD, SCHEMA, Timestamp(self.now))

    def commit(
        self, rows: list[Row], deletes: Deletes | None = None, staged: list[Row] | None = None
    ) -> Source:
        self.now += 700
        files = ()
        if staged:
            encoded = encode_file(table_of(staged), f"staged-{self.now}")
            files = (encoded.file,)
            path = data_path(SHARD, encoded.file.name)
            asyncio.run(self.store.create(path, encoded.content))
        batch = WriteBatch(table_of(rows) if rows else None, files, deletes or {})
        self.state = self.state.committed(Timestamp(self.now), batch)
        return files[0].name if files else inline_source(Timestamp(self.now))

    def flush(self) -> None:
        self.now += 1_000_000 - self.now % 1_000
        version = asyncio.run(
            flush(self.store, self.state, Timestamp(self.now), rewritten=self.rewritten)
        )
        self.rewritten = ()
        asyncio.run(self.checksums.write(self.store, SHARD, version.number))
        self.state = self.state.flushed(version)
        self.cuts[version.number] = self.now
        self.answers[version.number] = normal(map(plain, self.rows_at(self.now)))

    def compact(self) -> None:
        """Rewrite all files but the largest; they come with the next flush."""
        assert self.state.versions
        files = [live for live in self.state.versions[-1].files.live_files() if not live.dead]
        sources = sorted(files, key=lambda live: live.file.rows)[:-1]
        limits = CompactionLimits()
        self.rewritten = asyncio.run(rewrite_files(self.store, self.state, sources, limits))

    def vacuum(self) -> tuple[str, ...]:
        """Nobody reads before now, as far as Meridian knows. Returns what was deleted."""
        state = self.state.pruned(Timestamp(self.now))
        version = state.versions[-1]
        done = asyncio.run(
            vacuum_shard(
                self.store,
                Vacuuming(
                    SHARD,
                    number=version.number,
                    cut=version.cut,
                    since=Timestamp(self.now),
                    frontier=Timestamp(self.now),
                    ticks_per_ms=1_000,
                    in_use=names_in_use(state, (), ()),
                    suspects=frozenset(),
                ),
            )
        )
        return done.deleted

    def checkpoint(self) -> None:
        asyncio.run(write_checkpoint(self.store, SHARD, self.state.versions[-1].number))

    def rows_at(self, as_of: int) -> list[Row]:
        view = self.state.view(Timestamp(as_of))
        assert not view.inline
        rows: list[Row] = []
        for part in view.files:
            content = asyncio.run(self.store.read(data_path(SHARD, part.file.name)))
            all_rows = decode_parquet(content, SCHEMA).to_pylist()[: part.row_limit]
            rows += [row for i, row in enumerate(all_rows) if i not in part.deleted]
        return rows

    def write_out(self, directory: Path) -> Path:
        for name in asyncio.run(self.store.list(SHARD)):
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(asyncio.run(self.store.read(name)))
        return directory / SHARD


def tell_story() -> Story:
    """Every kind of write. Foreign time travel has a horizon, so the story ends about now."""
    story = Story(SystemClock().now() - 60_000_000)
    first = story.commit([row(k) for k in range(40)] + EXTREMES)
    story.commit([], {first: BitMap64([3])})
    story.flush()
    story.commit([], {first: BitMap64([5, 7])})
    story.flush()
    for k in range(100, 110):
        story.commit([row(k)])
    staged = story.commit(
        [row(k) for k in range(200, 210)], staged=[row(k) for k in range(1_000, 9_000)]
    )
    story.flush()
    story.commit([row(300)], {staged: BitMap64(range(0, 8_000, 3)), first: BitMap64([39])})
    story.flush()
    story.checkpoint()
    last = story.commit([row(400), row(401)])
    story.commit([row(402)], {last: BitMap64([0, 1]), staged: BitMap64(range(1, 8_000, 7))})
    story.flush()
    story.commit([row(500)], {last: BitMap64()})
    story.flush()
    (oldest, *_) = story.state.versions[-1].files.live_files()
    story.commit([], {oldest.file.name: BitMap64(range(43)) - oldest.deleted})
    story.flush()
    story.checkpoint()
    story.commit([row(600)])
    story.flush()
    story.compact()
    newest = [live for live in story.state.versions[-1].files.live_files() if not live.dead][-1]
    story.commit([row(700)], {newest.file.name: BitMap64([0])})
    story.flush()
    story.commit([row(800)])
    story.flush()
    # The table has promised foreign readers more history than that.
    assert story.vacuum() == ()
    return story
