"""A source that feeds two tables, beside clients who write to a third (`upstream.py`).

    produce   a transaction upstream, over both tables or one
    read      strict reads of fed tables and our own, in one transaction
    define    the source is paused, and goes on

INVARIANTS
  L1  the fed tables show a prefix of upstream's transactions at every timestamp (F2).
  L2  in calm weather everything comes, however often the server has died before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import PutObject, PutTable
from sql.catalog.objects import Feed, SourceDefinition
from tests.resilience.history.events import Add, Finding, History, Key, Operation, ReadSet
from tests.resilience.sim.odds import CALM
from tests.resilience.sim.server import Server
from tests.resilience.sim.session import Session
from tests.resilience.sim.upstream import SCRIPTED, ScriptedUpstream
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

FED = ("s1", "s2")
OWN = "s0"
KEYS: Sequence[Key] = ("s0_1", "s1_1", "s2_1")
DRAINED_S = 8.0
SOURCE = ("source", "public", "feed")


class Sources(Usual):
    """See the module."""

    tables = (OWN,)

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._upstream: ScriptedUpstream | None = None
        self._produced: list[Mapping[str, Sequence[int]]] = []

    def first(self) -> Sequence[Plan]:
        """The source, and the tables that it feeds."""
        return (Plan((), self._create),)

    async def _create(self, session: Session) -> tuple[Operation, ...]:
        bare = await session.new_table("feed")
        source = SourceDefinition(bare.oid, "public", "feed", connector=SCRIPTED, feed_id="f")
        tables = [await session.new_table(name) for name in FED]
        fed = [replace(t, feed=Feed(source.oid, t.name), keys=()) for t in tables]
        await session.define(PutObject(source), *map(PutTable, fed))
        return ()

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(12):
            case 0:
                return Plan((), self._pause_or_resume)
            case 1 | 2:
                return one_by_one([Add("s0_1", self._draw.values.next())])
            case 3 | 4 | 5 | 6:
                return self._reading(produces=True)
            case _:
                return self._reading(produces=False)

    def _reading(self, *, produces: bool) -> Plan:
        """Reads, and perhaps a write of our own; upstream goes on meanwhile."""
        rng = self._draw.random
        reads: list[Operation] = [ReadSet(key) for key in rng.sample(KEYS, rng.choice((1, 2, 3)))]
        if rng.random() < 0.3:
            reads.append(Add("s0_1", self._draw.values.next()))
        asked = tuple(reads)

        async def body(session: Session) -> tuple[Operation, ...]:
            if produces:
                self._produce(session)
            told: list[Operation] = []
            for operation in asked:
                told.append(await perform(session, operation))
                await session.think()
            return tuple(told)

        return Plan(asked, body)

    def _produce(self, session: Session) -> None:
        rng, values = self._draw.random, self._draw.values
        names = FED if rng.random() < 0.6 else (rng.choice(FED),)
        made = {name: [values.next() for _ in range(rng.choice((1, 1, 2)))] for name in names}
        self._produced.append(made)
        self._upstream = session.world.upstream
        self._upstream.produce(made, values.process())
        session.world.tally.fed += 1

    async def _pause_or_resume(self, session: Session) -> tuple[Operation, ...]:
        source = _source(session)
        paused = not source.paused
        await session.define(PutObject(replace(source, paused=paused, version=source.version + 1)))
        return ()

    def read_all(self) -> Plan:
        """In calm weather everything has come before (L2)."""
        asked = tuple(ReadSet(key) for key in KEYS)

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
            return None
        return f"{self._upstream.forgotten} of {len(self._upstream.log)} are acknowledged"

    def judge(self, history: History) -> Sequence[Finding]:
        """L1."""
        return [
            finding
            for transaction in history.transactions()
            if transaction.is_ok
            for finding in self._prefix(
                {
                    operation.key: frozenset(operation.values)
                    for operation in transaction.operations
                    if isinstance(operation, ReadSet) and operation.values is not None
                }
            )
        ]

    def _prefix(self, told: Mapping[Key, frozenset[int]]) -> Sequence[Finding]:
        """What one transaction was told of fed tables is what some prefix comes to."""
        asked = [name for name in FED if f"{name}_1" in told]
        seen = {name: set(told[f"{name}_1"]) for name in asked}
        reached: dict[str, set[int]] = {name: set() for name in asked}
        for produced in ({}, *self._produced):
            for name in asked:
                reached[name].update(produced.get(name, ()))
            if reached == seen:
                return ()
        return [Finding("prefix", f"{seen} is no prefix of upstream")] if asked else ()


def _source(session: Session) -> SourceDefinition:
    found = session.snapshot.catalog.objects[SOURCE]
    assert isinstance(found, SourceDefinition), "it is one"
    return found
