"""A queue of jobs in a table: `SELECT .. FOR UPDATE SKIP LOCKED` gives each worker another job.

    produce   INSERT of a job, and Add it to the produced
    work      the next free jobs, if there are enough, in a block or as a single statement; then
              they are done: their rows are deleted or marked, and Added to the handled
    swipe     the next free job in one short write, which marks it
    peek      the next free job behind a savepoint, and ROLLBACK TO: it is free again
    wait      the first job, FOR UPDATE without SKIP LOCKED

A row of `j` is a job: its key is its number, its position 0 as long as it is free. In every
snapshot each job that was produced is free or was handled once, never both and never twice; of
those who were told that they have handled a job, no two have handled the same one. A job that was
swiped tells so by its value, and is handled by nobody else.
"""

from collections.abc import Sequence
from functools import partial

from coordinator.core.messages.identities import Isolation
from sql.errors import SqlError
from tests.resilience.history.events import Add, Finding, History, Operation, ReadSet
from tests.resilience.sim.key_changes import JobTaker
from tests.resilience.sim.rows import Row
from tests.resilience.sim.session import Session
from tests.resilience.sim.short_writes import NOTHING
from tests.resilience.sim.taken_jobs import take_and_mark, take_shortly
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of

PRODUCED, HANDLED, SWIPED = "s0_1", "s1_1", "s2_1"
JOBS = "j"
FREE, DONE = 0, 1
NO_DATA = "02000"

LEVELS = (
    Isolation.READ_COMMITTED,
    Isolation.READ_COMMITTED,
    Isolation.STRICT_SERIALIZABLE,
    Isolation.STRICT_SERIALIZABLE,
    Isolation.SERIALIZABLE,
    Isolation.REPEATABLE_READ,
)


class Queue(Usual):
    """See the module."""

    tables: Sequence[str] = (JOBS, "s0", "s1")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._handled: dict[int, int] = {}
        """Which job was meant when this value was added."""
        self._swiped: dict[int, JobTaker] = {}
        """By the value, who has tried last."""
        self._deletes = draw.random.random() < 0.5

    def first(self) -> Sequence[Plan]:
        return [self._produce() for _ in range(6)]

    def crowd(self) -> tuple[int, int]:
        """Sometimes many workers."""
        return self._draw.random.choice(((4, 12), (6, 10), (8, 8), (16, 4)))

    def plan(self) -> Plan:
        rng = self._draw.random
        level = rng.choice(LEVELS)
        match rng.randrange(11):
            case 0:
                return self.read_all()
            case 10:
                return self._swipe()
            case 1 | 2 | 3:
                return self._produce()
            case 4:
                return self._work(1, level, alone=False, waits=True)
            case 5 | 6:
                return self._work(1, level, alone=True)
            case _:
                return self._work(rng.choice((1, 1, 2)), level, alone=False)

    def _produce(self) -> Plan:
        add = Add(PRODUCED, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.insert(f"{JOBS}_{add.value}", (FREE, add.value))
            await session.insert(add.key, (add.value, add.value))
            return (add,)

        return Plan((add,), body, self._draw.random.choice(LEVELS))

    def _work(self, count: int, level: Isolation, *, alone: bool, waits: bool = False) -> Plan:
        rng = self._draw.random
        adds = tuple(Add(HANDLED, self._draw.values.next()) for _ in range(count))
        marks = tuple(self._draw.values.next() for _ in range(count))
        peeks = not alone and rng.random() < 0.2

        async def take(session: Session) -> Sequence[Row]:
            if not waits and not alone and rng.random() < 0.5:
                rows = await take_shortly(session, JOBS, _is_free, count)
                if rows is not None:
                    return rows
            return await session.next_free(JOBS, _is_free, count, skip=not waits)

        async def finish(session: Session, row: Row, add: Add, mark: int) -> None:
            self._handled[add.value] = row.key
            again = () if self._deletes else ((DONE, mark),)
            await session.insert(f"{JOBS}_{row.key}", *again, instead_of=[row])

        async def body(session: Session) -> tuple[Operation, ...]:
            if peeks:
                await session.undone(session.statement(partial(take, session)))
            rows = await session.statement(partial(take, session))
            if len(rows) < count:
                raise SqlError(NO_DATA, "there is too little to do")
            if not alone:
                await session.think()
            for row, add, mark in zip(rows, adds, marks, strict=True):
                await session.statement(partial(finish, session, row, add, mark))
                await session.insert(add.key, (row.key, add.value))
            return adds

        return Plan(adds, body, level, alone=alone, refusals=(NO_DATA,), plain=True, sure=not waits)

    def _swipe(self) -> Plan:
        add = Add(SWIPED, self._draw.values.next())

        async def body(session: Session) -> tuple[Operation, ...]:
            session.if_nothing = (NOTHING,)
            taker = take_and_mark(session, JOBS, _is_free, (DONE, add.value))
            if taker is None:
                return (NOTHING,)
            self._swiped[add.value] = taker
            return (add,)

        return Plan((add,), body, alone=True)

    def read_all(self) -> Plan:
        asked = (ReadSet(PRODUCED), ReadSet(HANDLED))

        async def body(session: Session) -> tuple[Operation, ...]:
            produced, handled = await session.rows(PRODUCED, HANDLED)
            keys = [f"{JOBS}_{row.position}" for row in produced]
            jobs = await session.rows(*keys) if keys else []
            done = [row.position for row in handled]
            session.expect(len(done) == len(set(done)), "twice", f"handled: {sorted(done)}")
            for job, rows in zip(produced, jobs, strict=True):
                if any(row.value in self._swiped and not _is_free(row) for row in rows):
                    session.expect(job.position not in done, "twice", f"swiped: {rows}")
                    continue
                free = [row for row in rows if _is_free(row)]
                left = 0 if self._deletes and not free else 1
                session.expect(len(rows) == left, "job", f"{job.position} is {rows}")
                was_done = job.position in done
                why = f"{job.position} is {rows}, and {'was' if was_done else 'was not'} handled"
                session.expect(bool(free) != was_done, "lost", why)
            answers = zip(asked, (produced, handled), strict=True)
            return tuple(told_of(session, *pair) for pair in answers)

        return Plan(asked, body)

    def judge(self, history: History) -> Sequence[Finding]:
        """No job is handed out twice, as workers were told."""
        workers: dict[int, int] = {}
        for transaction in history.transactions():
            for operation in transaction.operations if transaction.is_ok else ():
                if isinstance(operation, Add) and operation.key in (HANDLED, SWIPED):
                    job = self._job(operation)
                    if job in workers:
                        why = f"job {job} by p{workers[job]} and p{transaction.process}"
                        return [Finding("twice", why, (transaction,))]
                    workers[job] = transaction.process
        return ()

    def _job(self, operation: Add) -> int:
        if operation.key == HANDLED:
            return self._handled[operation.value]
        (job,) = self._swiped[operation.value].taken
        return job


def _is_free(row: Row) -> bool:
    return row.position == FREE
