"""Timelines: one that follows a clock, one that counts commits, and some that come and go.

    random   transactions over sets, lists and registers of one timeline
    mix      a second timeline in a transaction: refused with 25000, and nothing of it happens
    advance  a timeline without a clock skips ahead, with or without rows
    create   CREATE TIMELINE and a table in it, and Add it to the directory, in `system`
    drop     DROP both, and Add it to the other directory

Every timeline is judged as a history of its own (`by_timeline`).

INVARIANTS
  M2  a timeline without a clock moves by commits and ADVANCE, and by nothing else.
"""

from collections.abc import Sequence

from coordinator.core.messages.catalog_changes import (
    PutTable,
    PutTimeline,
    RemoveTable,
    RemoveTimeline,
)
from sql.errors import SqlError
from tests.resilience.history.events import Add, Finding, History, Key, Operation, ReadSet
from tests.resilience.sim.collections_and_registers import READS, WRITES
from tests.resilience.sim.rows import COUNTED, by_timeline, table_of, timeline_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

CREATED, DROPPED = "s0_1", "s1_1"
KEYS = ("sc0_1", "rc0_1", "lc0_1", "sm0_1", "sm0_2", "rm0_1", "lm0_1", "s0_2", "r0_1")
LINES = ("clocked", "counted", "system")

MIXED, NO_TIMELINE, NOT_AHEAD = "25000", "42704", "55000"


class Lines(Usual):
    """See the module."""

    tables = tuple(sorted({table_of(key) for key in (*KEYS, CREATED, DROPPED)}))

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._tried: list[str] = []
        self._farthest = 0
        self._reads = 0

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(16):
            case 0:
                return self._mix()
            case 1 | 2:
                return self._advance()
            case 3:
                return self._create()
            case 4 if self._tried:
                return self._drop(rng.choice(self._tried))
            case 5 | 6 if self._tried:
                return self._visit(rng.choice(self._tried))
            case 7:
                return self.read_all()
            case _:
                return one_by_one(self._operations(rng.choice(LINES), rng.choice((1, 1, 2, 3))))

    def read_all(self) -> Plan:
        """Everything of one timeline, in turn."""
        self._reads += 1
        line = LINES[self._reads % len(LINES)]
        keys = [key for key in (*KEYS, CREATED, DROPPED) if timeline_of(key).name == line]
        return one_by_one([READS[key[0]](key) for key in keys])

    def judge(self, history: History) -> Sequence[Finding]:
        """M2. A number may be lost with an attempt to commit, never more."""
        counted = by_timeline(history).get(COUNTED.name, History(())).transactions()
        attempts = sum(t.writes for t in counted)
        for transaction in counted:
            if transaction.ts is not None and transaction.ts > self._farthest + attempts + 1:
                why = f"{transaction.ts} after {attempts} commits and ADVANCE to {self._farthest}"
                return [Finding("ran-ahead", why, (transaction,))]
        return ()

    def _operations(self, line: str, count: int) -> list[Operation]:
        rng = self._draw.random
        keys = [key for key in KEYS if timeline_of(key).name == line]
        return [self._operation(rng.choice(keys)) for _ in range(count)]

    def _operation(self, key: Key) -> Operation:
        if self._draw.random.random() < 0.4:
            return READS[key[0]](key)
        return WRITES[key[0]](key, self._draw.values.next())

    def _mix(self) -> Plan:
        first, second = self._draw.random.sample(LINES, 2)
        asked = tuple(self._operations(first, 1))
        (other,) = self._operations(second, 1)

        async def body(session: Session) -> tuple[Operation, ...]:
            told = await perform(session, asked[0])
            await session.think()
            await perform(session, other)
            session.expect(False, "mixed", f"{asked[0]} and {other} in one transaction")
            return (told,)

        return Plan(asked, body, timeline=first, refusals=(MIXED,))

    def _advance(self) -> Plan:
        rng = self._draw.random
        by = rng.choice((1, 2, 50, 5_000))
        asked = tuple(self._operations(COUNTED.name, rng.randrange(3)))
        asked = asked or (ReadSet("sm0_1"),)

        async def body(session: Session) -> tuple[Operation, ...]:
            self._farthest = max(self._farthest, session.snapshot.ts + by)
            told = [await perform(session, operation) for operation in asked]
            await session.think()
            session.advance(by)
            return tuple(told)

        return Plan(asked, body, timeline=COUNTED.name, refusals=(NOT_AHEAD,))

    # --- timelines that come and go ----------------------------------------------------------

    def _create(self) -> Plan:
        add = Add(CREATED, self._draw.values.next())
        name = f"sx{add.value}"
        self._tried.append(name)

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.define(PutTimeline(timeline_of(name)))
            await session.define(PutTable(await session.new_table(name)))
            await session.think()
            await session.insert(add.key, (add.value, add.value))
            return (add,)

        return Plan((add,), body)

    def _drop(self, name: str) -> Plan:
        """Drop it if it is there; otherwise only look."""
        reads = (ReadSet(CREATED), ReadSet(DROPPED))
        add = Add(DROPPED, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            told = tuple([await perform(session, read) for read in reads])
            self._check(session, *told)
            table = session.snapshot.catalog.tables.get(("public", name))
            if table is None:
                return told
            await session.define(RemoveTable(table), RemoveTimeline(table.timeline))
            await session.think()
            await session.insert(add.key, (int(name[2:]), add.value))
            return (*told, add)

        return Plan((*reads, add), body)

    def _check(self, session: Session, created: Operation, dropped: Operation) -> None:
        """As many timelines as the directories say; dropped ones are not told by their values."""
        assert isinstance(created, ReadSet)
        assert isinstance(dropped, ReadSet)
        lines = [name for name in session.snapshot.catalog.timelines if name.startswith("line_")]
        expected = len(created.values or ()) - len(dropped.values or ())
        why = f"timelines {lines}, but {expected} were created and not dropped"
        session.expect(len(lines) == expected, "definitions", why)

    def _visit(self, name: str) -> Plan:
        """Rows of a timeline that may not exist, or not for long."""
        key = f"{name}_1"
        asked: tuple[Operation, ...] = (ReadSet(key), Add(key, self._draw.values.next()))

        async def body(session: Session) -> tuple[Operation, ...]:
            if ("public", name) not in session.snapshot.catalog.tables:
                raise SqlError(NO_TIMELINE, "it is gone")
            told = [await perform(session, operation) for operation in asked]
            return tuple(told)

        return Plan(asked, body, timeline=timeline_of(key).name, refusals=(NO_TIMELINE,))
