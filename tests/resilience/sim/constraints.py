"""Workloads with something that must hold in every snapshot.

    bank      accounts in two tables, a ledger in a third: the sum, and every balance by its ledger
    skew      of two people one is always on duty
    phantom   at most one row for each key over two tables: insert if there is none

In the rows `position` carries the number that the constraint is about; `value` is what the judges
know the write by.
"""

from collections.abc import Sequence

from tests.resilience.history.events import Add, Key, Operation, Read, ReadSet, Write
from tests.resilience.sim.rows import Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of


class Bank(Usual):
    """Transfers with two ledger rows each, and audits."""

    tables = ("a", "b", "g")
    ACCOUNTS = ("a_1", "a_2", "b_1", "b_2")
    OPENING = 100

    def first(self) -> Sequence[Plan]:
        writes = [Write(account, self._draw.values.next()) for account in self.ACCOUNTS]

        async def body(session: Session) -> tuple[Operation, ...]:
            for write in writes:
                await session.insert(write.key, (self.OPENING, write.value))
            return tuple(writes)

        return (Plan(tuple(writes), body),)

    def plan(self) -> Plan:
        return self.read_all() if self._draw.random.random() < 0.35 else self._transfer()

    def read_all(self) -> Plan:
        asked: list[Operation] = []
        for account in self.ACCOUNTS:
            asked += [Read(account), ReadSet(_ledger(account))]

        async def body(session: Session) -> tuple[Operation, ...]:
            answers = await session.rows(*(operation.key for operation in asked))
            self._audit(session, answers)
            return tuple(
                told_of(session, operation, rows)
                for operation, rows in zip(asked, answers, strict=True)
            )

        return Plan(tuple(asked), body)

    def _audit(self, session: Session, answers: Sequence[Sequence[Row]]) -> None:
        balances, ledgers = answers[::2], answers[1::2]
        total = sum(row.position for rows in balances for row in rows)
        expected = self.OPENING * len(self.ACCOUNTS)
        session.expect(total == expected, "bank", f"the sum is {total}")
        for account, rows, ledger in zip(self.ACCOUNTS, balances, ledgers, strict=True):
            balance = sum(row.position for row in rows)
            booked = self.OPENING + sum(row.position for row in ledger)
            why = f"{account} has {balance}, and its ledger says {booked}"
            session.expect(balance == booked, "bank", why)

    def _transfer(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        accounts = rng.sample(self.ACCOUNTS, 2)
        amount = rng.randrange(1, 20)
        writes = [Write(account, values.next()) for account in accounts]
        legs = [Add(_ledger(account), values.next()) for account in accounts]
        reads: list[Operation] = [Read(account) for account in accounts]

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*accounts)
            await session.think()
            moves = zip(found, writes, legs, (-amount, amount), strict=True)
            for rows, write, leg, change in moves:
                session.expect(len(rows) == 1, "bank", f"{write.key} is {rows}")
                balance = sum(row.position for row in rows)
                await session.insert(write.key, (balance + change, write.value), instead_of=rows)
                await session.insert(leg.key, (change, leg.value))
            told = [told_of(session, *pair) for pair in zip(reads, found, strict=True)]
            return (*told, *writes, *legs)

        return Plan((*reads, *writes, *legs), body)


def _ledger(account: Key) -> Key:
    return f"g_{Bank.ACCOUNTS.index(account)}"


class Skew(Usual):
    """Pairs of people, in one table and in two; who goes off duty has looked at the other one."""

    tables = ("d", "e")
    PAIRS = (("d_1", "d_2"), ("d_3", "e_3"))

    def first(self) -> Sequence[Plan]:
        return [self._change(pair, turn=(True, True)) for pair in self.PAIRS]

    def plan(self) -> Plan:
        rng = self._draw.random
        if rng.random() < 0.25:
            return self.read_all()
        pair = list(rng.choice(self.PAIRS))
        rng.shuffle(pair)
        return self._change(pair)

    def read_all(self) -> Plan:
        keys = [key for pair in self.PAIRS for key in pair]
        asked = tuple(Read(key) for key in keys)

        async def body(session: Session) -> tuple[Operation, ...]:
            answers = await session.rows(*keys)
            for first in range(0, len(keys), 2):
                _on_duty(session, answers[first : first + 2])
            return tuple(told_of(session, *pair) for pair in zip(asked, answers, strict=True))

        return Plan(asked, body)

    def _change(self, pair: Sequence[Key], turn: Sequence[bool] = ()) -> Plan:
        """The first of a pair goes off duty if the other one is on, and on duty otherwise."""
        reads = tuple(Read(key) for key in pair)
        keys = pair if turn else pair[:1]
        writes = tuple(Write(key, self._draw.values.next()) for key in keys)

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*pair)
            if not turn:
                _on_duty(session, found)
            await session.think()
            other = bool(found[1] and found[1][0].position)
            for write, rows in zip(writes, found, strict=False):
                await session.insert(
                    write.key, (int(bool(turn) or not other), write.value), instead_of=rows
                )
            return (*(told_of(session, *p) for p in zip(reads, found, strict=True)), *writes)

        return Plan((*reads, *writes), body)


def _on_duty(session: Session, pair: Sequence[Sequence[Row]]) -> None:
    on = [row.position for rows in pair for row in rows]
    session.expect(len(on) == 2 and any(on), "write-skew", f"on duty: {on}")


class Phantom(Usual):
    """INSERT if there is none, over two tables; DELETE and INSERT of fresh keys in a third."""

    tables = ("p", "q", "r0")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._plans = 0

    def plan(self) -> Plan:
        self._plans += 1
        rng = self._draw.random
        number = self._plans // 6 + rng.randrange(2)
        if rng.random() < 0.2:
            return self._look(number)
        return self._replace(rng.randrange(2)) if rng.random() < 0.25 else self._insert(number)

    def read_all(self) -> Plan:
        return self._look(*range(self._plans // 6 + 2))

    def _look(self, *numbers: int) -> Plan:
        keys = [f"{name}_{number}" for number in numbers for name in ("p", "q")]
        asked = tuple(ReadSet(key) for key in keys)

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(*keys)
            for first in range(0, len(keys), 2):
                _at_most_one(session, keys[first], found[first : first + 2])
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def _insert(self, number: int) -> Plan:
        """Insert into one of the tables if neither has the key."""
        keys = [f"p_{number}", f"q_{number}"]
        reads = tuple(ReadSet(key) for key in keys)
        add = Add(self._draw.random.choice(keys), self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            found = []
            for key in keys:
                found += await session.rows(key)
                await session.think()
            _at_most_one(session, keys[0], found)
            told = tuple(told_of(session, *pair) for pair in zip(reads, found, strict=True))
            if any(found):
                return told
            await session.insert(add.key, (0, add.value))
            return (*told, add)

        return Plan((*reads, add), body)

    def _replace(self, number: int) -> Plan:
        """Delete what is there, and insert a row of its own."""
        key = f"r0_{number}"
        read, write = Read(key), Write(key, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            (rows,) = await session.rows(key)
            await session.insert(key, instead_of=rows)
            (rest,) = await session.rows(key)
            session.expect(not rest, "own-writes", f"{key} is {rest} after its deletion")
            await session.think()
            await session.insert(key, (0, write.value))
            return (told_of(session, read, rows), write)

        return Plan((read, write), body)


def _at_most_one(session: Session, key: Key, tables: Sequence[Sequence[Row]]) -> None:
    rows = [row.value for rows in tables for row in rows]
    session.expect(len(rows) <= 1, "phantom", f"{key} was inserted {len(rows)} times: {rows}")
