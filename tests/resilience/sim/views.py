"""A materialized view that follows its inputs: exact or behind, whatever happens to its servers.

    write     replace registers, add to sets: the inputs, which the view shows row by row
    through   read keys through the view, and write others by what was read
    catch up  compute the view anew, and attach it
    compare   stored rows beside those of the inputs, also AS OF

INVARIANTS
  L1  where the catalog calls the view exact, its stored rows are those of the inputs (V1, V2).
  L2  who reads through the view is told what the inputs say, also at its commit (V7): to the judges
      it has read the inputs.
"""

from collections.abc import Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import PutTable
from coordinator.core.messages.identities import Isolation
from sql.catalog.catalog import Table
from sql.catalog.objects import StoredQuery
from tests.resilience.history.events import Key, Operation
from tests.resilience.sim.collections_and_registers import READS, WRITES
from tests.resilience.sim.rows import COLUMNS
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform, told_of

VIEW = "v0"
INPUTS = ("r0", "s0")
KEYS: Sequence[Key] = ("r0_1", "r0_2", "s0_3", "s0_4")
NAMES = tuple(column.name for column in COLUMNS)


class Views(Usual):
    """See the module."""

    tables = INPUTS
    upkeep = 0.3

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._level = draw.random.choice((Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE))

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(12):
            case 0:
                return self.read_all()
            case 1 | 2 | 3:
                return self._catch_up()
            case 4:
                return self._compare()
            case 5 | 6 | 7 | 8:
                return self._through()
            case _:
                return one_by_one([self._write(KEYS) for _ in range(rng.choice((1, 1, 2)))])

    def first(self) -> Sequence[Plan]:
        """The view, over inputs without rows."""
        return (self._make(), self._catch_up())

    def read_all(self) -> Plan:
        return one_by_one([READS[key[0]](key) for key in KEYS])

    def _write(self, keys: Sequence[Key]) -> Operation:
        key = self._draw.random.choice(keys)
        return WRITES[key[0]](key, self._draw.values.next())

    def _make(self) -> Plan:
        async def body(session: Session) -> tuple[Operation, ...]:
            view = await session.new_table(VIEW)
            query = _query([session.table(name) for name in INPUTS])
            await session.define(PutTable(replace(view, query=query)))
            return ()

        return Plan((), body)

    def _catch_up(self) -> Plan:
        """It shows nothing to the judges: it writes, but no key, and to them would be a reader, who
        comes behind all writers of its timestamp.
        """

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.attach(VIEW, INPUTS, KEYS)
            return ()

        return Plan((), body)

    def _compare(self) -> Plan:
        asked = tuple([READS[key[0]](key) for key in KEYS])

        async def body(session: Session) -> tuple[Operation, ...]:
            shown = await session.through_view(VIEW, *KEYS)
            await session.compare_past(VIEW, KEYS)
            return tuple(told_of(session, *pair) for pair in zip(asked, shown, strict=True))

        return Plan(asked, body, self._level, refusals=("72000",))

    def _through(self) -> Plan:
        rng = self._draw.random
        keys = rng.sample(KEYS, rng.randint(1, 3))
        asked = [READS[key[0]](key) for key in keys]
        write = self._write([key for key in KEYS if key not in keys])

        async def body(session: Session) -> tuple[Operation, ...]:
            shown = await session.through_view(VIEW, *keys)
            told = [told_of(session, *pair) for pair in zip(asked, shown, strict=True)]
            await session.think()
            return (*told, await perform(session, write))

        return Plan((*asked, write), body, self._level)


def _query(inputs: Sequence[Table]) -> StoredQuery:
    text = " UNION ALL ".join(f'SELECT key, "position", value FROM {t.name}' for t in inputs)
    numbers = tuple(range(1, len(NAMES) + 1))
    relations = tuple(("", table.name, table.oid, NAMES, numbers) for table in inputs)
    uses = tuple((table.oid, number) for table in inputs for number in numbers)
    return StoredQuery(text, relations, uses, on_commit=True)
