"""The locks of one session of a simulation, taken as the sessions of a server take them.

    table      before a statement of a block reads or changes anything of it
    rows       SELECT FOR ..: those that it found; UPDATE, DELETE: before anything is written
    advisory   of the transaction, or of the session
    single     only after its commit was answered Blocked, to begin again

Now and then a session loses patience (`lock_timeout`), as users do who cancel.

INVARIANTS
  B1  an answer `again` ends the try of a statement, and nothing of that try is told to anybody.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from coordinator.core.locking.modes import AdvisoryTag, LockMode, LockWait, TableTag
from coordinator.core.messages.identities import ConnectionId, TransactionId
from coordinator.core.messages.locks import RowsToLock
from coordinator.core.messages.replies import LockAnswered
from coordinator.driver.coordination import LockBlocks
from sql.catalog.catalog import Table
from sql.errors import SqlError
from tests.resilience.sim.grants import Grants
from tests.resilience.sim.rows import Row, row_key
from tests.resilience.sim.server import Server
from tests.resilience.sim.world import World

IMPATIENT = 0.04
"""Share of the requests that wait only so long."""

NOT_AVAILABLE = "55P03"


class StatementRestart(Exception):
    """The statement begins again, at the transaction's newest snapshot."""


class SessionLocks:
    """See the module. `patient`: it waits however long it takes."""

    def __init__(self, world: World, server: Server, owner: int, *, patient: bool) -> None:
        self._world = world
        self._driver = server.driver
        self._owner = ConnectionId(owner)
        self._patient = patient
        self._grants = Grants(world.grants, server, owner)
        self._txn = TransactionId(0)
        self._ticket = 0
        self.savepoint = 0
        self.waited = False
        """It has got an advisory lock: its next statement reads what those before it have left."""

    def begin(self, txn: TransactionId) -> None:
        """Another transaction of the session."""
        self.ended()
        self._txn = txn
        self._ticket = self.savepoint = 0
        self.waited = False

    def ended(self) -> None:
        """The transaction is over."""
        self._grants.rolled_back(0)

    def begin_statement(self) -> None:
        """Another statement: it joins every line at its end."""
        self._ticket = 0

    async def table(self, table: Table, mode: LockMode, *, wait: bool = True) -> None:
        """Hold a table. Raises StatementRestart, 40001, 40P01, 55P03."""
        answer = await self._answer(
            self._driver.lock(
                self._txn,
                TableTag(table.oid),
                mode,
                wait=_waiting(wait),
                ticket=self._ticket,
                timeline=table.timeline,
            )
        )
        if not self._locked(answer):
            raise SqlError(NOT_AVAILABLE, f'could not obtain lock on relation "{table.name}"')

    async def rows(
        self,
        table: Table,
        rows: Sequence[Row],
        mode: LockMode,
        *,
        wait: bool = True,
        implicit: bool = False,
    ) -> bool:
        """Hold rows, as a scan has shown them; False: one of them is not free."""
        wanted = _to_lock(table, rows, keyed=self._world.is_keyed)
        return self._locked(
            await self._answer(
                self._driver.lock_rows(
                    self._txn,
                    wanted,
                    mode,
                    wait=_waiting(wait),
                    ticket=self._ticket,
                    implicit=implicit,
                )
            )
        )

    async def first_free(
        self, table: Table, rows: Sequence[Row], mode: LockMode, limit: int
    ) -> list[Row]:
        """Hold the first of some rows that are free, so many; those that it holds."""
        answer = await self._answer(
            self._driver.lock_rows(
                self._txn,
                _to_lock(table, rows, keyed=self._world.is_keyed),
                mode,
                wait=LockWait.NO,
                ticket=self._ticket,
                limit=limit,
            )
        )
        self._locked(answer)
        return [rows[place] for place in answer.taken]

    async def advisory(
        self, number: int, *, shared: bool = False, wait: bool = True, by_session: bool = False
    ) -> bool:
        """pg_advisory_lock and its kin; False: it is not free."""
        tag = AdvisoryTag.of_bigint(number)
        mode = LockMode.ADVISORY_SHARED if shared else LockMode.ADVISORY_EXCLUSIVE
        leader = self._world.grants.leader()
        answer = await self._answer(
            self._driver.lock(
                self._txn,
                tag,
                mode,
                wait=_waiting(wait),
                by_session=by_session,
                ticket=self._ticket,
            )
        )
        if answer.granted:
            self._world.tally.granted += 1
            self._grants.told(tag, mode, None if by_session else self.savepoint, leader)
            self.waited = True
        return self._locked(answer)

    async def unlock(self, number: int, *, shared: bool) -> bool:
        """pg_advisory_unlock: whether the session held it."""
        tag = AdvisoryTag.of_bigint(number)
        mode = LockMode.ADVISORY_SHARED if shared else LockMode.ADVISORY_EXCLUSIVE
        self._grants.unlocked(tag, mode)
        return await self._driver.unlock(self._owner, tag, mode)

    async def wait_for(self, blocks: LockBlocks) -> None:
        """A single statement waits for what was in the way of its commit, and then holds it."""
        answer = await self._answer(
            self._driver.lock(
                self._txn,
                blocks.tag,
                blocks.mode,
                ticket=self._ticket,
                single=True,
                timeline=blocks.timeline,
            )
        )
        self._locked(answer)

    def rolled_back(self, savepoint: int) -> None:
        """ROLLBACK TO is about to give back what was taken since."""
        self._grants.rolled_back(savepoint)

    def over(self) -> None:
        """The session is about to end."""
        self._grants.over()

    async def _answer(self, asked: Coroutine[Any, Any, LockAnswered]) -> LockAnswered:
        rng = self._world.random
        limit = None if self._patient or rng.random() >= IMPATIENT else rng.random() * 0.03
        if not self._world.is_set_up:
            limit = None  # a lock may wait for a word of the stash, also if nobody else wants it
        self._world.tally.locked += 1
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(limit):
                answer = await asked
        except TimeoutError:
            self._world.tally.timed_out += 1
            raise SqlError(NOT_AVAILABLE, "canceling statement due to lock timeout") from None
        self._world.tally.waited += asyncio.get_running_loop().time() > began
        return answer

    def _locked(self, answer: LockAnswered) -> bool:
        self._ticket = answer.ticket
        if answer.again:
            self._world.tally.began_again += 1
            raise StatementRestart
        return answer.granted


def _waiting(wait: bool) -> LockWait:
    return LockWait.UNTIL_GRANTED if wait else LockWait.NO


def _to_lock(table: Table, rows: Sequence[Row], *, keyed: bool) -> RowsToLock:
    return RowsToLock(
        table,
        [row.source for row in rows],
        [row.index for row in rows],
        [row_key(table.name, row) for row in rows] if keyed else None,
    )
