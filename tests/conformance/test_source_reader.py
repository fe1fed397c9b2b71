"""The contract of `ingest/reader.py`: the same for every reader, the simulation's twin among them.

Each reader brings an upstream in which something is there to be read. Readers of upstreams that
commit while they are read, and that keep a slot, have `test_slot_reader.py`, too.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps

import pytest

from ingest.generator import GeneratorOptions, GeneratorReader
from ingest.reader import (
    ChangeRow,
    Position,
    ReadLimits,
    SourceProgress,
    SourceReader,
    UpstreamChange,
    UpstreamColumn,
    UpstreamTable,
)
from sql.types.sql_type import INT8
from tests.resilience.history.events import Recorder
from tests.resilience.sim.upstream import MAIN, ScriptedReader, ScriptedUpstream
from tests.resilience.sim.upstream_changes import inserted

Rows = list[tuple[str, ChangeRow]]


@dataclass
class Place:
    """An upstream with `rows` rows in some order; `make` gives readers of it."""

    make: Callable[[], SourceReader]
    rows: int
    tables: Sequence[UpstreamTable]
    fill: Callable[[], None] = lambda: None
    """What upstream commits behind its beginning."""
    identity: dict[str, str] = field(default_factory=dict[str, str])
    """What `prepare` has added to that of the upstream."""


def generator(kind: str) -> Place:
    options = GeneratorOptions(kind, rate=1_000_000, rows_max=300, seed=7)
    return Place(lambda: GeneratorReader(options), 300, ())


def scripted() -> Place:
    upstream = ScriptedUpstream(random.Random(1), lambda *found: pytest.fail(str(found)))
    upstream.recorder = Recorder()
    made: list[Mapping[str, Sequence[UpstreamChange]]] = []
    for number in range(60):
        some = [inserted((1, 0, 10 * number + at)) for at in range(1 + number % 3)]
        made.append({"a": some, "b": some})

    def fill() -> None:
        for number, changes in enumerate(made[len(upstream.log) :]):
            upstream.produce(changes, (), number)

    async def fault(_: str) -> None:
        return

    column = UpstreamColumn("a", INT8)
    tables = [UpstreamTable(name, (column, column, column)) for name in ("a", "b")]
    rows = sum(len(some) for changes in made for some in changes.values())
    slot = f"{MAIN}.1"
    make = lambda: ScriptedReader(upstream, fault, lambda: True, slot, 1)  # noqa: E731
    return Place(make, rows, tables, fill)


PLACES = {
    "counter": lambda: generator("counter"),
    "auction": lambda: generator("auction"),
    "scripted": scripted,
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]()


def on_a_loop(test: Callable[[Place], Awaitable[None]]) -> Callable[[Place], None]:
    @wraps(test)
    def run(place: Place) -> None:
        async def within() -> None:
            async with asyncio.timeout(30):
                await test(place)

        asyncio.run(within())

    return run


async def read_from(
    place: Place, after: Position, limits: ReadLimits
) -> tuple[Rows, list[Position]]:
    """Everything behind a position, by table, and the positions of the batches."""
    reader = place.make()
    await start(reader, place, after)
    rows: Rows = []
    positions: list[Position] = []
    idle = 0
    while idle < 3:
        batch = await reader.read(limits)
        idle = 0 if batch.changes or not batch.ends else idle + 1
        for name, changes in batch.changes.items():
            rows += [(name, change.new) for change in changes if change.new is not None]
        positions.append(batch.upto)
    await reader.close()
    return rows, positions


async def beginning(place: Place) -> Position:
    reader = place.make()
    progress = await reader.prepare(place.tables)
    async for found in reader.snapshot():
        pytest.fail(f"{found} is there before the first change")
    await reader.close()
    place.fill()
    place.identity |= progress.identity
    return progress.position


async def start(reader: SourceReader, place: Place, after: Position) -> None:
    """As a source does that was read up to there."""
    identity = {**(await reader.inspect()).identity, **place.identity}
    assert await reader.start(SourceProgress(after, identity), place.tables) == identity


def by_table(rows: Rows) -> Mapping[str, list[ChangeRow]]:
    found: dict[str, list[ChangeRow]] = {}
    for name, row in rows:
        found.setdefault(name, []).append(row)
    return found


SMALL, LARGE = ReadLimits(64 * 7, 5), ReadLimits(8 << 20, 5)


@on_a_loop
async def test_it_gives_the_same_however_it_is_cut(place: Place) -> None:
    first = await beginning(place)
    few, _ = await read_from(place, first, SMALL)
    many, _ = await read_from(place, first, LARGE)
    assert len(few) == len(many) == place.rows
    assert by_table(few) == by_table(many)


@on_a_loop
async def test_it_resumes_at_every_position(place: Place) -> None:
    first = await beginning(place)
    everything, positions = await read_from(place, first, SMALL)
    whole = by_table(everything)
    for position in {tuple(p.items()): p for p in positions}.values():
        rest, _ = await read_from(place, position, LARGE)
        left = by_table(rest)
        for name, rows in whole.items():
            behind = left.get(name, [])
            assert rows[len(rows) - len(behind) :] == behind


@on_a_loop
async def test_positions_only_advance(place: Place) -> None:
    _, positions = await read_from(place, await beginning(place), SMALL)
    reached = [position["offset"] for position in positions]
    assert reached == sorted(reached)


@on_a_loop
async def test_the_newest_position_covers_what_is_there(place: Place) -> None:
    first = await beginning(place)
    _, positions = await read_from(place, first, LARGE)
    reader = place.make()
    await start(reader, place, first)
    await asyncio.sleep(0.01)
    assert (await reader.newest())["offset"] >= positions[-1]["offset"]


@on_a_loop
async def test_to_inspect_and_to_release_does_no_harm(place: Place) -> None:
    reader = place.make()
    assert (await reader.inspect()).identity == (await reader.inspect()).identity
    await reader.release()
    await reader.release()
    await reader.close()
    rows, _ = await read_from(place, await beginning(place), LARGE)
    assert len(rows) == place.rows
