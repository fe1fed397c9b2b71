"""A source that feeds three tables, beside clients who write to a fourth (`upstream.py`).

    produce   a transaction upstream, over several tables or one: new rows of sets, which have no
              key; changes of all kinds of the rows of registers, which have one
    read      strict reads of fed tables and our own, in one transaction
    define    the source is paused, and goes on; another one is made and dropped

INVARIANTS
  L1  the fed tables show a prefix of upstream's transactions at every timestamp (F2).
  L2  in calm weather everything comes, however often the server has died before, and nothing is
      left upstream of a source that was dropped (F8).
  L3  a transaction that has waited for upstream sees all that was there when it asked.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from coordinator.core.messages.catalog_changes import (
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from ingest.reader import ChangeRow, UpstreamChange
from sql.catalog.catalog import Table
from sql.catalog.objects import Feed, SourceDefinition
from sql.catalog.sources import sources_of, tables_of_source
from tests.resilience.history.events import Add, Finding, History, Key, Operation, Read, ReadSet
from tests.resilience.sim.odds import CALM
from tests.resilience.sim.server import Server
from tests.resilience.sim.session import Session
from tests.resilience.sim.upstream import MAIN, SCRIPTED, ScriptedUpstream, generation_of
from tests.resilience.sim.upstream_changes import many_changes, register_changes, set_changes
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

SETS = ("s1", "s2")
LATER = "s2"
"""Not fed at first, in some runs: whoever finds it empty is told nothing of upstream."""
CHANGED = "r9"
FED = (*SETS, CHANGED)
OWN = "s0"
REGISTERS: Sequence[Key] = ("r9_1", "r9_2")
KEYS: Sequence[Key] = ("s0_1", "s1_1", "s2_1", *REGISTERS)
DRAINED_S = 8.0
RECENCY_US = 1_000_000
"""A query waits so long for upstream; a storm may be longer."""
SOURCE = ("source", "public", "feed")
OTHER = ("source", "public", "other")
UNREAD = "s8"


class Sources(Usual):
    """See the module."""

    tables = (OWN,)
    refusals = ("55000",)
    """What is not loaded yet is not read."""

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._upstream: ScriptedUpstream | None = None
        self._shown: list[Mapping[Key, frozenset[int]]] = [{}]
        """What each prefix of upstream comes to."""

    def first(self) -> Sequence[Plan]:
        """The source, and the tables that it feeds."""
        return (Plan((), self._create),)

    async def _create(self, session: Session) -> tuple[Operation, ...]:
        bare = await session.new_table("feed")
        source = SourceDefinition(bare.oid, "public", "feed", connector=SCRIPTED, feed_id=MAIN)
        tables = [await session.new_table(name) for name in FED]
        # In some runs one of them joins the others later.
        alone = {LATER} if self._draw.random.random() < 0.5 else set[str]()
        fed = [
            replace(t, feed=None if t.name in alone else _feed(source, t.name), keys=())
            for t in tables
        ]
        for _ in range(self._draw.random.randrange(4)):
            # What is there already comes with the snapshot.
            self._produce(session)
        await session.define(PutObject(source), *map(PutTable, fed))
        return ()

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(15):
            case 13:
                return Plan((), self._join)
            case 14 if rng.random() < 0.3:
                return Plan((), self._resnapshot)
            case 0:
                return Plan((), self._pause_or_resume)
            case 12:
                return Plan((), self._make_or_drop)
            case 1 | 2:
                return one_by_one([Add("s0_1", self._draw.values.next())])
            case 3 | 4 | 5 | 6:
                return self._reading(produces=True)
            case _:
                return self._reading(produces=False)

    def _reading(self, *, produces: bool) -> Plan:
        """Reads, and perhaps a write of our own; upstream goes on meanwhile."""
        rng = self._draw.random
        reads: list[Operation] = [_read(key) for key in rng.sample(KEYS, rng.choice((1, 2, 3)))]
        if rng.random() < 0.3:
            reads.append(Add("s0_1", self._draw.values.next()))
        asked, recent = tuple(reads), rng.random() < 0.3

        async def body(session: Session) -> tuple[Operation, ...]:
            least = len(session.world.upstream.log)
            if recent:
                await session.read_after([_source(session).oid], RECENCY_US)
            if produces:
                self._produce(session)
            told: list[Operation] = []
            for operation in asked:
                told.append(await perform(session, operation))
                await session.think()
            if recent:
                session.world.tally.recent += 1
                for finding in self._prefix(_told_of(told), least):
                    session.world.found("recency", f"{finding.explanation}, from {least} on")
            return tuple(told)

        return Plan(asked, body, refusals=("57014",) if recent else ())

    def _produce(self, session: Session) -> None:
        rng, values = self._draw.random, self._draw.values
        upstream = self._upstream = session.world.upstream
        fed = [name for name in FED if name != LATER or self._feeds_later(session)]
        names = fed if rng.random() < 0.4 else (rng.choice(fed),)
        changes: dict[str, Sequence[UpstreamChange]] = {}
        operations: list[Operation] = []
        large = rng.random() < 0.2
        for name in names:
            rows = upstream.rows.get(name, [])
            make = register_changes if name == CHANGED else set_changes
            if large:
                make = many_changes(make, rng.randint(2, 5))
            changes[name], written = make(name, rows, rng, values.next)
            operations += written
        upstream.produce(changes, operations, values.process())
        self._shown.append(_shown(upstream.rows))
        session.world.tally.fed += 1

    def _feeds_later(self, session: Session) -> bool:
        """What nobody could be told of is not in the history: upstream has no such rows either."""
        found = session.snapshot.catalog.tables.get(("public", LATER))
        return found is not None and found.feed is not None

    async def _pause_or_resume(self, session: Session) -> tuple[Operation, ...]:
        source = _source(session)
        paused = not source.paused
        await session.define(PutObject(replace(source, paused=paused, version=source.version + 1)))
        return ()

    async def _join(self, session: Session) -> tuple[Operation, ...]:
        """Another table of upstream's is fed from now on."""
        table = _table(session, LATER)
        if table.feed is None:
            version = table.version + 1
            feed = _feed(_source(session), LATER)
            await session.define(PutTable(replace(table, feed=feed, version=version)))
        return ()

    async def _resnapshot(self, session: Session) -> tuple[Operation, ...]:
        """All rows are taken in anew."""
        source = _source(session)
        again, version = source.generation + 1, source.version + 1
        await session.define(PutObject(replace(source, generation=again, version=version)))
        return ()

    async def _make_or_drop(self, session: Session) -> tuple[Operation, ...]:
        """Another source of the same upstream comes, or goes: its table is read by nobody."""
        catalog = session.snapshot.catalog
        there = catalog.objects.get(OTHER)
        if isinstance(there, SourceDefinition):
            tables = tables_of_source(catalog, there.oid)
            await session.define(RemoveObject(there), *map(RemoveTable, tables))
            return ()
        bare = await session.new_table("other")
        name = f"other{bare.oid}"
        source = SourceDefinition(bare.oid, "public", "other", connector=SCRIPTED, feed_id=name)
        table = await session.new_table(UNREAD)
        fed = replace(table, feed=Feed(source.oid, SETS[0]), keys=())
        await session.define(PutObject(source), PutTable(fed))
        return ()

    def read_all(self) -> Plan:
        """In calm weather everything has come before (L2)."""
        asked = tuple(map(_read, KEYS))

        async def body(session: Session) -> tuple[Operation, ...]:
            source = _source(session)
            if session.world.odds == CALM and source.paused:
                await session.define(
                    PutObject(replace(source, paused=False, version=source.version + 1))
                )
            told = [await perform(session, operation) for operation in asked]
            return tuple(told)

        return Plan(asked, body)

    async def settle(self, leader: Server) -> str | None:
        """L2."""
        source = leader.driver.newest_catalog.objects[SOURCE]
        assert isinstance(source, SourceDefinition), "it is one"
        if source.paused or self._upstream is None:
            return None
        if await self._upstream.is_drained(DRAINED_S):
            return await self._what_is_left(leader)
        return f"{self._upstream.forgotten} of {len(self._upstream.log)} are acknowledged"

    async def _what_is_left(self, leader: Server) -> str | None:
        """F8."""
        assert self._upstream is not None, "it is drained"
        await asyncio.sleep(DRAINED_S)
        sources = sources_of(leader.driver.newest_catalog)
        there = set(map(generation_of, sources))
        slots = sorted(self._upstream.slots)
        left = [slot for slot in slots if slot.rpartition(".")[0] not in there]
        left += [a for a, b in pairwise(slots) if a.rpartition(".")[0] == b.rpartition(".")[0]]
        return f"{sorted(left)} are left upstream" if left else None

    def judge(self, history: History) -> Sequence[Finding]:
        """L1."""
        return [
            finding
            for transaction in history.transactions()
            if transaction.is_ok
            for finding in self._prefix(_told_of(transaction.operations))
        ]

    def _prefix(self, told: Mapping[Key, frozenset[int]], least: int = 0) -> Sequence[Finding]:
        """What one transaction was told of fed tables is what some prefix comes to, which has so
        many transactions at least.
        """
        told = {key: values for key, values in told.items() if values or key[:2] != LATER}
        for shown in self._shown[least:]:
            if all(shown.get(key, frozenset()) == values for key, values in told.items()):
                return ()
        return [Finding("prefix", f"{told} is no prefix of upstream")]


def _feed(source: SourceDefinition, name: str) -> Feed:
    return Feed(source.oid, name, key=("key",) if name == CHANGED else ())


def _read(key: Key) -> ReadSet | Read:
    return Read(key) if key in REGISTERS else ReadSet(key)


def _told_of(operations: Sequence[Operation]) -> Mapping[Key, frozenset[int]]:
    """Of fed tables."""
    return {
        operation.key: _told(operation)
        for operation in operations
        if isinstance(operation, ReadSet | Read) and operation.key[:2] in FED
    }


def _told(operation: ReadSet | Read) -> frozenset[int]:
    if isinstance(operation, Read):
        return frozenset(() if operation.value is None else (operation.value,))
    return frozenset(operation.values or ())


def _shown(rows: Mapping[str, Sequence[ChangeRow]]) -> Mapping[Key, frozenset[int]]:
    found: dict[Key, frozenset[int]] = {}
    for name, some in rows.items():
        for key, _, value in some:
            assert isinstance(value, int), "values are numbers"
            place = f"{name}_{key}"
            found[place] = found.get(place, frozenset()) | {value}
    return found


def _table(session: Session, name: str) -> Table:
    return session.snapshot.catalog.tables["public", name]


def _source(session: Session) -> SourceDefinition:
    found = session.snapshot.catalog.objects[SOURCE]
    assert isinstance(found, SourceDefinition), "it is one"
    return found
