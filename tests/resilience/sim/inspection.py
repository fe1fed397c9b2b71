"""What lies on the disk at the end of a run, looked at without the server.

    stash, store ──▶ `meridian check` of every shard ──▶ no error
    Delta logs ──▶ every complete cut as a foreign reader sees it, all tables AS OF one timestamp

INVARIANTS
  S1  a cut that every table of a timeline has reached is one state of them all: the judge replays
      the history at its timestamp and finds nothing else.
"""

from collections.abc import Mapping, Sequence

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.server.recovery import KnownShard, known_shards, ticks_per_ms, timeline_stash
from sql.catalog.catalog import SYSTEM_TIMELINE, Timeline
from storage.check import ShardRecord, check_shard
from storage.delta.recovery import load_shard
from storage.shard import ShardState, Version
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp
from tests.resilience.history.events import Finding, History
from tests.resilience.history.replay import Answer, check_answers
from tests.resilience.sim.memory import read_of
from tests.resilience.sim.rows import by_timeline, number_of, schema_of, table_of
from tests.resilience.sim.world import World


async def inspect(world: World, history: History) -> list[Finding]:
    """All findings."""
    changes = decode_changes(await world.stash.scan(COLLECTION))
    versions = VersionedCatalog(changes)
    present = {s: known for s, known in known_shards(changes).items() if known.dropped is None}
    findings: list[Finding] = []
    histories = by_timeline(history)
    for timeline in versions.current.timelines.values():
        mine = {s: found for s, found in present.items() if found.table.timeline == timeline.name}
        if world.is_checked:
            findings += await _check(world, timeline, mine)
        told = histories.get(timeline.name, History(()))
        findings += await _read_cuts(world, timeline, told, mine, versions)
    return findings


async def _check(
    world: World, timeline: Timeline, known: Mapping[ShardId, KnownShard]
) -> list[Finding]:
    found = await TxnsShard(timeline_stash(world.stash, timeline), Epoch(0)).load()
    findings: list[Finding] = []
    for shard, entry in known.items():
        # DDL has the times of another timeline.
        created = entry.created if timeline == SYSTEM_TIMELINE else Timestamp(found.applied + 1)
        record = ShardRecord(
            shard=shard,
            schema=schema_of(entry.table),
            definitions=entry.definitions(schema_of),
            registered=found.shards.get(shard, created),
            applied=found.applied,
            batches=[(ts, batch) for ts, owner, batch in found.batches if owner == shard],
            flushed=found.flushed.get(shard),
            ticks_per_ms=ticks_per_ms(timeline),
        )
        findings += [
            Finding("check", f"{problem.place}: {problem.problem}")
            for problem in await check_shard(world.store, record)
            if problem.severity == "error"
        ]
    return findings


async def _read_cuts(
    world: World,
    timeline: Timeline,
    history: History,
    known: Mapping[ShardId, KnownShard],
    catalog: VersionedCatalog,
) -> list[Finding]:
    """S1, at every cut of a timeline that is complete; in a calm run all of them are."""
    since = world.since.get(timeline.name, Timestamp(0))
    shards: dict[ShardId, ShardState] = {}
    keys = sorted({op.key for event in history.events for op in event.operations})
    cuts = set()
    nil = Timestamp(0)
    for shard, entry in known.items():
        definitions = entry.definitions(schema_of)
        schema = schema_of(entry.table)
        empty = ShardState(shard, schema, nil, definitions=definitions)
        state = await load_shard(world.store, empty, nil)
        shards[shard] = state
        cuts |= {version.cut for version in state.versions}
    answers: list[Answer] = []
    findings: list[Finding] = []
    for cut in sorted(cut for cut in cuts if cut >= since):
        if not all(_is_complete(state, cut) for state in shards.values()):
            if world.is_calm:
                findings.append(Finding("cut", f"not every table has been flushed at {cut}"))
            continue
        there = catalog.at(cut) if timeline == SYSTEM_TIMELINE else catalog.current
        tables = {t.name: t for t in there.tables.values() if t.timeline == timeline.name}
        if any(ShardId(table.shard) not in shards for table in tables.values()):
            continue  # a table of that time has been dropped since
        for key in keys:
            table = tables.get(table_of(key))
            if table is not None:
                values = _values(world, shards[ShardId(table.shard)], cut, number_of(key))
                answers.append(Answer(cut, read_of(key, values), "foreign"))
    return findings + check_answers(history, answers)


def _version_at(state: ShardState, cut: Timestamp) -> Version | None:
    return next((v for v in reversed(state.versions) if v.cut <= cut), None)


def _is_complete(state: ShardState, cut: Timestamp) -> bool:
    """True if no later version brings anything that was committed by then."""
    return not any(
        version.cut > cut and version.wrote_between(Timestamp(0), cut) for version in state.versions
    )


def _values(world: World, state: ShardState, cut: Timestamp, number: int) -> Sequence[int]:
    version = _version_at(state, cut)
    if version is None:
        return ()
    rows = [
        (position, value)
        for live in version.files.live_files()
        for index, (key, position, value, _) in enumerate(
            world.reader.content(f"{state.shard}/{live.file.name}", world.store)
        )
        if key == number and index not in live.deleted
    ]
    return tuple(value for _, value in sorted(rows))
