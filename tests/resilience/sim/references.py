"""Constraints that hold at every isolation level: foreign keys and unique keys.

    references   a child refers to a parent that is there; a parent that is referred to stays
    keys         INSERT of a key if it is free: never two rows of one key

A statement looks as the server's statements do, with their predicates (`Session.required`,
`Session.claimed`); nobody reads anything else that a weak level would forgive. In `references` the
position is what constraints are about: of a parent its number, which is the key, of a child the
number of the parent that it refers to. 0 is no parent, since histories of registers know no
deletion.
"""

from collections.abc import Sequence

from sql.errors import SqlError
from tests.resilience.history.events import Add, Operation, Read, ReadSet, Write
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.rows import number_of
from tests.resilience.sim.session import Body, Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of


class References(Usual):
    """See the module."""

    tables = ("e", "c")
    PARENTS = ("e_1", "e_2", "e_3")
    CHILDREN = ("c_1", "c_2", "c_3", "c_4")

    def first(self) -> Sequence[Plan]:
        writes = [Write(key, self._draw.values.next()) for key in (*self.PARENTS, *self.CHILDREN)]

        async def body(session: Session) -> tuple[Operation, ...]:
            for write in writes:
                is_parent = write.key in self.PARENTS
                await session.insert(write.key, (number_of(write.key) * is_parent, write.value))
            return tuple(writes)

        return (Plan(tuple(writes), body),)

    def plan(self) -> Plan:
        rng = self._draw.random
        parent, child = rng.choice(self.PARENTS), rng.choice(self.CHILDREN)
        match rng.randrange(10):
            case 0:
                return self.read_all()
            case 1 | 2:
                return self._set(parent, number_of(parent))
            case 3 | 4:
                return self._set(child, 0)
            case 5 | 6:
                return self._drop(parent)
            case _:
                return self._refer(child, parent)

    def read_all(self) -> Plan:
        keys = (*self.PARENTS, *self.CHILDREN)
        asked = tuple(map(Read, keys))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*keys)
            state = {
                key: row.position for key, rows in zip(keys, found, strict=True) for row in rows
            }
            session.expect(len(state) == len(keys), "foreign-key", f"rows are missing: {state}")
            for child in self.CHILDREN:
                parent = state.get(child, 0)
                there = not parent or state.get(f"e_{parent}") == parent
                session.expect(there, "foreign-key", f"{child} refers to parent {parent}: {state}")
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _refer(self, child: str, parent: str) -> Plan:
        """UPDATE child SET parent = …: 23503 if there is none."""
        write = self._write(child)

        async def body(session: Session) -> tuple[Operation, ...]:
            (own,) = await session.rows(child)
            number = number_of(parent)
            found = await session.required(number, *self.PARENTS)
            if not any(row.position == number for rows in found for row in rows):
                raise SqlError("23503", f"there is no {parent}")
            await session.insert(child, (number, write.value), instead_of=own)
            return await _finished(session, write)

        return self._weak(write, body)

    def _drop(self, parent: str) -> Plan:
        """DELETE of a parent: 23503 if somebody refers to it."""
        write = self._write(parent)

        async def body(session: Session) -> tuple[Operation, ...]:
            (own,) = await session.rows(parent)
            number = number_of(parent)
            children = await session.required(number, *self.CHILDREN)
            if any(row.position == number for rows in children for row in rows):
                raise SqlError("23503", f"somebody refers to {parent}")
            await session.insert(parent, (0, write.value), instead_of=own)
            return await _finished(session, write)

        return self._weak(write, body)

    def _set(self, key: str, state: int) -> Plan:
        """A change that no foreign key forbids."""
        write = self._write(key)
        others = self.CHILDREN if key in self.PARENTS else self.PARENTS

        async def body(session: Session) -> tuple[Operation, ...]:
            if session.random.random() < 0.3:
                # As a statement that failed, or that was thought better of.
                number = session.random.randint(1, len(self.PARENTS))
                await session.undone(session.required(number, *others))
            (own,) = await session.rows(key)
            await session.insert(key, (state, write.value), instead_of=own)
            return await _finished(session, write)

        return self._weak(write, body)

    def _write(self, key: str) -> Write:
        return Write(key, self._draw.values.next())

    def _weak(self, write: Write, body: Body) -> Plan:
        level = self._draw.random.choice(LEVELS)
        return Plan((write,), body, level, refusals=("23503",))


class Keys(Usual):
    """See the module."""

    tables = ("p", "q")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._plans = 0

    def plan(self) -> Plan:
        self._plans += 1
        rng = self._draw.random
        if rng.random() < 0.15:
            return self.read_all()
        number = self._plans // 6 + rng.randrange(2)
        keys = [f"{name}_{number}" for name in rng.sample(self.tables, rng.randint(1, 2))]
        return self._insert(keys)

    def read_all(self) -> Plan:
        keys = [
            f"{name}_{number}" for number in range(self._plans // 6 + 2) for name in self.tables
        ]
        asked = tuple(map(ReadSet, keys))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*keys)
            for key, rows in zip(keys, found, strict=True):
                session.expect(len(rows) < 2, "unique", f"{key} is {rows}")
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _insert(self, keys: Sequence[str]) -> Plan:
        """Statement by statement."""
        adds = tuple(Add(key, self._draw.values.next()) for key in keys)

        async def body(session: Session) -> tuple[Operation, ...]:
            for add in adds:
                if await session.claimed(add.key):
                    raise SqlError("23505", f"{add.key} is taken")
                await session.insert(add.key, (0, add.value))
                await session.think()
                await session.look()
            return adds

        level = self._draw.random.choice(LEVELS)
        return Plan(adds, body, level, refusals=("23505",))


async def _finished(session: Session, write: Write) -> tuple[Operation, ...]:
    """Other statements follow, or just time."""
    await session.think()
    if session.random.random() < 0.3:
        await session.look()
    return (write,)
