"""Short writes beside transactions: a chain of changes in a group loses none of them.

    counters   hot rows, counted up by short writes, single statements and blocks
    inside     statements of blocks that count up by key, and see what they have made
    glances    blocks that read a counter and write another one: what a short write has changed
               since, they must be told
    rows       INSERT and DELETE by key, whose balance is the number of rows that are there
    pairs      two rows sent at once by one session: who sees the second one sees the first

Versions that a chain has passed through are seen by nobody, so the count that belongs to a value is
known once somebody has read it.
"""

from collections.abc import Sequence

from coordinator.core.messages.replies import RefusedReason
from coordinator.driver.coordination import RequestRefused
from tests.resilience.history.events import (
    Add,
    Finding,
    History,
    Kind,
    Operation,
    Read,
    ReadSet,
    Transaction,
    Write,
)
from tests.resilience.sim.counters import STRICT, Counter
from tests.resilience.sim.key_changes import Make, add_rows, count_up, insert_or_count_up, remove
from tests.resilience.sim.rows import Content, Row, number_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, told_of

NOTHING = ReadSet("sn_0", ())
"""What is told of a statement that has changed no row: nobody writes to this set."""

ROWS = ("n0_1", "n0_2")
PAIRS = ("u0_1", "u1_1")


class ShortWrites(Counter):
    """See the module."""

    tables = ("h0", "h1", "n0", "u0", "u1")
    KEYS = ("h0_1", "h0_2", "h1_1")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._values: dict[tuple[str, int], int] = {}
        """By counter and count, the value that it has had then."""
        self._there: dict[str, int] = {}
        self._pairs: list[tuple[int, int]] = []

    def crowd(self) -> tuple[int, int]:
        """Now and then many clients, so that groups are large."""
        return self._draw.random.choice(((4, 10), (8, 8), (16, 5)))

    def plan(self) -> Plan:
        rng = self._draw.random
        chance = rng.random()
        if chance < 0.1:
            return self.read_all()
        if chance < 0.5:
            return self._count_up(alone=rng.random() < 0.7)
        if chance < 0.6:
            return self._glance() if rng.random() < 0.5 else self._inside()
        if chance < 0.7:
            return self._increment(rng.choice(self.LEVELS), alone=rng.random() < 0.5)
        if chance < 0.9:
            return self._insert_row() if rng.random() < 0.5 else self._delete_row()
        return self._pair() if chance < 0.97 else self._counted_pair()

    def _count_up(self, *, alone: bool) -> Plan:
        """UPDATE or upsert by key; the general way if the short one is refused."""
        rng = self._draw.random
        write = Write(rng.choice(self.KEYS), self._draw.values.next())
        number = number_of(write.key)
        made: Make = rng.choice((count_up, count_up, insert_or_count_up))(number, write.value)

        async def body(session: Session) -> tuple[Operation, ...]:
            if not session.change(write.key, made):
                (rows,) = await session.rows(write.key)
                await self._replace(session, write, rows)
            else:
                session.promised_rows = 1
            return (write,)

        return Plan((write,), body, STRICT, alone=alone)

    def _inside(self) -> Plan:
        """A block of short writes: they see each other, and nothing that is not theirs."""
        rng = self._draw.random
        # Each of them once: the judge counts a transaction's writes by their last value.
        writes = tuple([Write(key, self._draw.values.next()) for key in rng.sample(self.KEYS, 2)])

        async def body(session: Session) -> tuple[Operation, ...]:
            for write in writes:
                made: Make = rng.choice((count_up, insert_or_count_up))(
                    number_of(write.key), write.value
                )
                if not await session.change_inside(write.key, made):
                    (rows,) = await session.rows(write.key)
                    await self._replace(session, write, rows)
                if rng.random() < 0.3:
                    await session.think()
            last = {write.key: write for write in writes}
            found = await session.rows(*last)
            for write, rows in zip(last.values(), found, strict=True):
                session.expect(
                    [row.value for row in rows] == [write.value], "own", f"{write} is {rows}"
                )
            return writes

        return Plan(writes, body)

    def _glance(self) -> Plan:
        rng = self._draw.random
        seen, changed = rng.sample(self.KEYS, 2)
        reads, write = (Read(seen), Read(changed)), Write(changed, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(seen, changed)
            self._one(session, seen, found[0])
            await session.think()
            await self._replace(session, write, found[1])
            return (*(told_of(session, *p) for p in zip(reads, found, strict=True)), write)

        return Plan((*reads, write), body)

    async def _replace(self, session: Session, write: Write, rows: Sequence[Row]) -> None:
        self._one(session, write.key, rows)
        count = max((row.position for row in rows), default=0) + 1
        await session.insert(write.key, (count, write.value), instead_of=rows)

    def _one(self, session: Session, key: str, rows: Sequence[Row]) -> None:
        session.expect(len(rows) == 1, "counter", f"{key} is {rows}")
        for row in rows:
            value = self._values.setdefault((key, row.position), row.value)
            session.expect(value == row.value, "counter", f"{key} is {row}, and was {value}")
            self._counts[row.value] = row.position

    # --- rows that come and go -------------------------------------------------------------------

    def _insert_row(self) -> Plan:
        key = self._draw.random.choice(ROWS)
        add = Add(_came(key), self._draw.values.next())
        content: Content = (number_of(key), 0, add.value)

        async def body(session: Session) -> tuple[Operation, ...]:
            if not session.change(key, add_rows([content])):
                (rows,) = await session.rows(key)
                if rows:
                    return (NOTHING,)
                await session.insert(key, (0, add.value))
            return (add,)

        return Plan((add,), body)

    def _delete_row(self) -> Plan:
        key = self._draw.random.choice(ROWS)
        add = Add(_went(key), self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            session.if_nothing = (NOTHING,)
            if not session.change(key, remove(number_of(key))):
                (rows,) = await session.rows(key)
                if not rows:
                    return (NOTHING,)
                await session.insert(key, instead_of=rows)
            return (add,)

        return Plan((add,), body)

    # --- two at once -----------------------------------------------------------------------------

    def _pair(self) -> Plan:
        first, second = self._draw.values.next(), self._draw.values.next()
        self._pairs.append((first, second))

        def failed(error: BaseException) -> None:
            """What failed for good, or is not known, keeps nobody from going on."""
            for_good = not isinstance(error, RequestRefused) or error.reason is RefusedReason.OTHER
            if for_good and (first, second) in self._pairs:
                self._pairs.remove((first, second))

        async def body(session: Session) -> tuple[Operation, ...]:
            try:
                await session.change_both(
                    (PAIRS[0], add_rows([(1, 0, first)])),
                    (PAIRS[1], add_rows([(1, 0, second)])),
                    failed=failed,
                )
            except BaseException as error:
                failed(error)
                raise
            return (NOTHING,)

        return Plan((NOTHING,), body)

    def _counted_pair(self) -> Plan:
        """A statement that starts again with leases of the first table of the pairs."""
        value = self._draw.values.next()

        async def body(session: Session) -> tuple[Operation, ...]:
            (rows,) = await session.rows(PAIRS[0])
            await session.think()
            await session.insert(PAIRS[0], (len(rows), value))
            return (NOTHING,)

        return Plan((NOTHING,), body, alone=True)

    # --- what is there ---------------------------------------------------------------------------

    def read_all(self) -> Plan:
        asked = tuple(map(Read, self.KEYS))

        async def body(session: Session) -> tuple[Operation, ...]:
            everything = await session.rows(*self.KEYS, *ROWS, *PAIRS)
            found = everything[: len(self.KEYS)]
            for key, rows in zip(self.KEYS, found, strict=True):
                self._one(session, key, rows)
            for key, rows in zip(ROWS, everything[len(self.KEYS) :], strict=False):
                session.expect(len(rows) <= 1, "unique", f"{key} is {rows}")
                self._there[key] = len(rows)
            firsts, seconds = ({row.value for row in rows} for rows in everything[-2:])
            for first, second in self._pairs:
                in_order = second not in seconds or first in firsts
                session.expect(in_order, "order", f"{second} is there, and {first} is not")
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def judge(self, history: History) -> Sequence[Finding]:
        found = [*super().judge(history)]
        transactions = history.transactions()
        for key, count in self._there.items():
            came, may_come = _tally(transactions, _came(key))
            went, may_go = _tally(transactions, _went(key))
            if not came - went - may_go <= count <= came + may_come - went:
                why = f"{key} has {count} rows: {came} + {may_come}? came, {went} + {may_go}? went"
                found.append(Finding("balance", why, ()))
        return found


def _came(key: str) -> str:
    return f"s{key.replace('_', '')}_1"


def _went(key: str) -> str:
    return f"s{key.replace('_', '')}_2"


def _tally(transactions: Sequence[Transaction], key: str) -> tuple[int, int]:
    """How many have certainly happened, and how many may have."""
    told = [t for t in transactions if any(_adds(operation, key) for operation in t.operations)]
    sure = sum(t.is_ok for t in told)
    return sure, sum(t.status is Kind.INFO for t in told)


def _adds(operation: Operation, key: str) -> bool:
    return isinstance(operation, Add) and operation.key == key
