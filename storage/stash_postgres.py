"""The stash in PostgreSQL: several coordinators may share it, and one at a time leads.

    calls ── job ──▶ queue ──▶ one task: Link (work) ── a statement each ──▶ PostgreSQL
    confirm ─────────────────▶ Link (watch) ── SELECT epoch ───────────────▶
    fence ──────────────────▶ + Lease: heartbeat, advisory lock ───────────▶

INVARIANTS
  L1  one task serves all jobs in the order they were handed over (S3), reads too: a read sees every
      transaction handed over before it, unless that one's outcome is unknown.
  L2  a job handed over is carried out, whether or not its caller still waits.
  L3  a job that cannot be sent fails as Determinate once `RECONNECT_S` have passed since it was
      handed over; one that was sent and not answered is Indeterminate (`postgres_link.py`).
  L4  `confirm` has a connection of its own: reads do not wait behind a long commit.

The statements, and what makes them safe, are in `postgres_tables.py`; who may take over when is in
`postgres_lease.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from storage import postgres_tables as tables
from storage.errors import Determinate, Indeterminate, Locked, NewerFormat
from storage.postgres_lease import Lease, has_leader, wait_for_vacancy
from storage.postgres_link import Link, UnfitServer
from storage.postgres_tables import Session, SessionLost
from storage.stash import Require, Write
from storage.types import Epoch

log = logging.getLogger("meridian.stash")

RECONNECT_S: Final = 10.0
"""How long a call waits for a server that is away. Larger: a restart of the server is not noticed
by clients; smaller: they hear sooner that the stash is gone."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Job(Generic[Result]):
    work: Callable[[], Awaitable[Result]]
    deadline: float
    done: asyncio.Future[Result]

    async def run(self, link: Link) -> None:
        """Do the work; whatever went wrong belongs to the caller."""
        try:
            await link.open(self.deadline)
            result = await self.work()
        # Whatever it is, the queue lives on (L1).
        except Exception as error:
            if not self.done.done():
                self.done.set_exception(error)
        else:
            if not self.done.done():
                self.done.set_result(result)


class PostgresStash:
    """See the module; made by `open`."""

    def __init__(self, dsn: str) -> None:
        self._work = Link(dsn, name="meridian stash")
        self._watch = Link(dsn, name="meridian watch")
        self._watching = asyncio.Lock()
        self._jobs: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._session: tuple[int, Session] | None = None
        self._lease = Lease(dsn)
        self._closed = False
        self.system = ""
        """The system identifier of its cluster; empty: this role may not ask."""
        self._serving = _own_task(self._serve())

    @classmethod
    async def open(cls, dsn: str, *, make: bool = True) -> "PostgresStash":
        """Connect, and lay the stash out if nobody has (`make`). Raises Determinate, Corrupt."""
        stash = cls(dsn)
        try:
            await stash._hand_over(lambda: tables.make_tables(stash._work, make=make))
            stash.system = await stash._use(lambda: _asked(tables.read_system(stash._work)))
        except BaseException:
            await stash.close()
            raise
        return stash

    @property
    def exclusive(self) -> bool:
        """See Stash: another coordinator may take over at any time."""
        return False

    async def fence(self) -> Epoch:
        """Take over: durably increment the epoch and return it; from now on others see us lead."""
        return await self._use(self._fence)

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        """Check the epoch and the requirements, then write all, durably (S1, S2)."""
        await self._use(lambda: self._transact(epoch, tuple(writes), tuple(requires)))

    async def read_format(self) -> int:
        """The format that the stash has."""
        return await self._use(lambda: _asked(tables.read_format(self._work)))

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """See Stash."""
        await self._use(lambda: self._transact(epoch, tuple(writes), (), upgrades=True))

    async def confirm(self, epoch: Epoch) -> None:
        """See Stash (S5, L4)."""
        if self._closed:
            raise Determinate("the stash is closed")
        deadline = asyncio.get_running_loop().time() + RECONNECT_S
        async with self._watching:
            await self._watch.open(deadline)
            try:
                await tables.check_epoch(self._watch, epoch)
            except Indeterminate as error:
                # A question changes nothing: not answered is the same as not asked.
                raise Determinate(str(error)) from error

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        """All keys and values of a collection, in the order of the keys."""
        return await self._use(lambda: _asked(tables.scan(self._work, collection)))

    async def read(self, collection: str, key: str) -> bytes | None:
        """One value, or None."""
        return await self._use(lambda: _asked(tables.read(self._work, collection, key)))

    async def verify(self) -> Sequence[str]:
        """What is wrong with the entries, line by line; reads all of them."""
        return await self._use(lambda: _asked(tables.verify(self._work)))

    async def refuse_if_led(self) -> None:
        """Raise Locked if a coordinator leads this stash now."""
        if await self._use(lambda: has_leader(self._work)):
            raise Locked("the stash is in use by a coordinator")

    async def stand_by(self) -> None:
        """Wait until nobody leads, and take over: of several who wait, one."""
        while True:
            vacant = await wait_for_vacancy(self._watch)
            try:
                if await self._use(partial(self._take, vacant)) is not None:
                    return
            except (UnfitServer, NewerFormat):
                raise
            except (Determinate, Indeterminate) as error:
                log.warning("not taken over: %s", error)

    async def close(self) -> None:
        """Finish what was handed over, then let go of connections and the lease."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put_nowait(None)
        await self._serving
        await self._lease.close()
        await self._watch.close()
        await self._work.close()

    async def _use(self, work: Callable[[], Awaitable[Result]]) -> Result:
        if self._closed:
            raise Determinate("the stash is closed")
        return await self._hand_over(work)

    def _hand_over(self, work: Callable[[], Awaitable[Result]]) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.time() + RECONNECT_S, loop.create_future())
        self._jobs.put_nowait(lambda: job.run(self._work))
        return job.done

    async def _serve(self) -> None:
        """The task: job after job (L1)."""
        while (job := await self._jobs.get()) is not None:
            await job()

    # --- jobs, on the task ----------------------------------------------------------------------

    async def _fence(self) -> Epoch:
        session = await self._take(None)
        assert session is not None, "an epoch that is not compared is always taken"
        return session.epoch

    async def _take(self, expected: Epoch | None) -> Session | None:
        session = await tables.increment_epoch(self._work, expected)
        if session is not None:
            self._session = self._work.number, session
            self._lease.lead(session.epoch)
        return session

    async def _transact(
        self,
        epoch: Epoch,
        writes: Sequence[Write],
        requires: Sequence[Require],
        *,
        upgrades: bool = False,
    ) -> None:
        while True:
            session = await self._session_for(epoch)
            try:
                return await tables.transact(
                    self._work, session, writes, requires, upgrades=upgrades
                )
            except SessionLost:
                # A session that was asked for on a lost connection came late: nothing was written.
                self._session = None

    async def _session_for(self, epoch: Epoch) -> Session:
        """The session of this connection; a new connection takes a new one (Y2)."""
        if self._session is not None:
            number, session = self._session
            if number == self._work.number and session.epoch == epoch:
                return session
        try:
            session = await tables.new_session(self._work, epoch)
        except Indeterminate as error:
            # The transaction itself was not sent.
            raise Determinate(str(error)) from error
        self._session = self._work.number, session
        return session


async def _asked(question: Awaitable[Result]) -> Result:
    """A question changes nothing: not answered is the same as not asked."""
    try:
        return await question
    except Indeterminate as error:
        raise Determinate(str(error)) from error


def _own_task(work: Coroutine[object, object, None]) -> asyncio.Task[None]:
    # Not in a TaskGroup: it lives from `open` to `close`, which waits for it, as a thread would.
    return asyncio.get_running_loop().create_task(work)
