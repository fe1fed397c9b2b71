"""DDL beside DML, all or nothing.

    swap     a list's table is replaced: CREATE, INSERT of all rows and one more, DROP, RENAME
    create   CREATE a table and INSERT its first row, and Add it to the directory
    drop     DROP it, and Add it to the other directory

In every snapshot a table exists if and only if the directories say so, and has its one row.
"""

from collections.abc import Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import PutTable, RemoveTable
from tests.resilience.history.events import Add, Append, Operation, ReadList, ReadSet
from tests.resilience.sim.rows import Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, told_of

CREATED, DROPPED = "s0_1", "s1_1"
LIST = "l0_1"


class Definitions(Usual):
    """See the module."""

    tables = ("l0", "s0", "s1")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._tried: list[int] = []

    def plan(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        match rng.randrange(8):
            case 0 | 1:
                return self._swap()
            case 2:
                return self._create()
            case 3 if self._tried:
                return self._drop(rng.choice(self._tried))
            case 4 | 5:
                return self.read_all()
            case _:
                return one_by_one([Append(LIST, values.next())])

    def read_all(self) -> Plan:
        asked = (ReadSet(CREATED), ReadSet(DROPPED), ReadList(LIST))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(CREATED, DROPPED, LIST)
            await self._check(session, found[0], found[1])
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    async def _check(
        self, session: Session, created: Sequence[Row], dropped: Sequence[Row]
    ) -> None:
        names = {name for _, name in session.snapshot.catalog.tables if name.startswith("n")}
        gone = {row.position for row in dropped}
        expected = {f"n{row.position}" for row in created if row.position not in gone}
        why = f"tables {sorted(names)}, and the directory has {sorted(expected)}"
        session.expect(names == expected, "definitions", why)
        session.expect("swap" not in names, "definitions", "half of a swap is visible")
        for name in sorted(names & expected):
            (rows,) = await session.rows(f"{name}_1")
            session.expect(len(rows) == 1, "definitions", f"{name} has {len(rows)} rows")

    def _create(self) -> Plan:
        add = Add(CREATED, self._draw.values.next())
        number = add.value
        self._tried.append(number)

        async def body(session: Session) -> tuple[Operation, ...]:
            table = await session.new_table(f"n{number}")
            await session.define(PutTable(table))
            await session.think()
            await session.insert(f"{table.name}_1", (0, number))
            await session.insert(add.key, (number, add.value))
            return (add,)

        return Plan((add,), body)

    def _drop(self, number: int) -> Plan:
        """Drop it if it is there; otherwise only look."""
        reads = (ReadSet(CREATED), ReadSet(DROPPED))
        add = Add(DROPPED, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(CREATED, DROPPED)
            told = tuple(told_of(session, *pair) for pair in zip(reads, found, strict=True))
            table = session.snapshot.catalog.tables.get(("public", f"n{number}"))
            if table is None:
                return told
            await session.define(RemoveTable(table))
            await session.think()
            await session.insert(add.key, (number, add.value))
            return (*told, add)

        return Plan((*reads, add), body)

    def _swap(self) -> Plan:
        read, append = ReadList(LIST), Append(LIST, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            (rows,) = await session.rows(LIST)
            table = await session.new_table("swap")
            await session.define(PutTable(table))
            await session.insert("swap_1", *((row.position, row.value) for row in rows))
            await session.think()
            old = session.table("l0")
            await session.define(RemoveTable(old))
            await session.define(PutTable(replace(table, name="l0", version=1)))
            (copied,) = await session.rows(LIST)
            same = [row.value for row in copied] == [row.value for row in rows]
            session.expect(same, "own-writes", f"{rows} were copied as {copied}")
            await session.insert(LIST, (len(rows), append.value))
            return (told_of(session, read, rows), append)

        return Plan((read, append), body)
