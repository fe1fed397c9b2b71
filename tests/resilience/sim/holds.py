"""Named read holds: what they hold stays readable, whatever cuts, compaction and vacuum do.

    hold    CREATE READ HOLD at the present or at a moment ago, and replace a row
    look    AS OF the timestamp of a hold: always answered, and the same as ever
    drop    DROP READ HOLD

A hold that a transaction's snapshot has is there until somebody has begun to drop it.
"""

from coordinator.core.messages.catalog_changes import RemoveReadHold
from sql.errors import SqlError
from storage.types import Timestamp
from tests.resilience.history.events import Add, Operation, Read, ReadSet, Write
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

TOO_OLD = "72000"


class Holds(Usual):
    """See the module. Holds are of `system`."""

    tables = ("r0", "s0")
    KEYS = ("r0_1", "r0_2", "s0_1")
    upkeep = 0.5

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._dropping: set[str] = set()

    def plan(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        match rng.randrange(10):
            case 0 | 1:
                return self._hold()
            case 2:
                return self._drop()
            case 3 | 4 | 5:
                return self.read_all()
            case _:
                key = rng.choice(self.KEYS)
                write = Add(key, values.next()) if key[0] == "s" else Write(key, values.next())
                return one_by_one([write])

    def read_all(self) -> Plan:
        """The present, and what is held."""
        asked = (Read("r0_1"), Read("r0_2"), ReadSet("s0_1"))

        async def body(session: Session) -> tuple[Operation, ...]:
            told = tuple([await perform(session, operation) for operation in asked])
            for hold in session.snapshot.catalog.read_holds.values():
                await self._look(session, hold.name, Timestamp(hold.ts))
            return told

        return Plan(asked, body)

    async def _look(self, session: Session, name: str, ts: Timestamp) -> None:
        try:
            await session.look_back(ts, *self.KEYS)
        except SqlError as error:
            if error.sqlstate != TOO_OLD:
                raise
            gone = name in self._dropping
            session.expect(gone, "hold", f"{name} holds {ts}, and it is too old")

    def _hold(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        write = Write("r0_1", values.next())
        ago = rng.choice((None, 0, rng.randrange(40_000)))

        async def body(session: Session) -> tuple[Operation, ...]:
            ts = None if ago is None else Timestamp(session.snapshot.ts - ago)
            await session.hold(f"h{write.value}", ts)
            await session.think()
            await perform(session, write)
            return (write,)

        return Plan((write,), body, refusals=(TOO_OLD,))

    def _drop(self) -> Plan:
        read = ReadSet("s0_1")
        add = Add("s0_1", self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            told = await perform(session, read)
            holds = sorted(session.snapshot.catalog.read_holds)
            if not holds:
                return (told,)
            name = session.random.choice(holds)
            self._dropping.add(name)
            await session.define(RemoveReadHold(name))
            await perform(session, add)
            return (told, add)

        return Plan((read, add), body)
