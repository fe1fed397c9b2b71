"""The stash in one SQLite file: the embedded default.

    event loop ── job ──▶ queue ──▶ thread: StashFile ── result ──▶ event loop ──▶ future
                                       └─ nobody waiting: checkpoint

INVARIANTS
  L1  one thread serves all jobs in the order they were handed over (S3), reads too: a read sees
      every transaction handed over before it.
  L2  a job handed over is carried out, whether or not its caller still waits.
  L3  after a failed sync nothing is served any more: every call raises Fatal.
  L4  the lock file is locked for as long as the stash is open; a second process gets Locked.

Transactions are not merged into one sync: each is acknowledged on its own, as soon as it is
durable. What gathers many transactions into one is the group commit above.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from storage.directory_lock import DirectoryLock
from storage.errors import Determinate, Fatal, StorageError
from storage.sqlite_file import StashFile, open_stash_file
from storage.stash import Ended, Require, Write
from storage.threads import run_with_catchable_errors
from storage.types import Epoch

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Job(Generic[Result]):
    work: Callable[[], Result]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Result]

    def run(self) -> None:
        """Do the work on the stash's thread and report to the caller's loop."""
        try:
            result = run_with_catchable_errors(self.work)
        # Whatever went wrong belongs to the caller; this thread lives on.
        except Exception as error:
            self._report(self._fail, error)
        else:
            self._report(self._finish, result)

    def _report(self, callback: Callable[..., None], outcome: object) -> None:
        # A closed loop refuses: it has nobody left who waits (L2).
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback, outcome)

    def _finish(self, result: Result) -> None:
        if not self.done.done():
            self.done.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class SqliteStash:
    """See the module; made by `open`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="stash", daemon=True)
        self._file: StashFile | None = None
        self._lock: DirectoryLock | None = None
        self._fatal: Fatal | None = None
        self._closed = False

    @classmethod
    async def open(cls, path: Path, *, lock: bool = True) -> "SqliteStash":
        """Open or make the stash at `path`; its directory must exist.

        Raises Locked, NewerFormat, Corrupt, Determinate: then nothing has changed. Without `lock`
        several processes may open the file, and the epoch alone decides between them.
        """
        stash = cls()
        stash._thread.start()
        try:
            await stash._hand_over(lambda: stash._open(path, lock=lock))
        except BaseException:
            await stash.close()
            raise
        return stash

    async def fence(self) -> Epoch:
        """Take over: durably increment the epoch and return it."""
        return await self._use(lambda file: file.fence())

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        """Check the epoch and the requirements, then write all, durably (S1, S2)."""
        await self._use(lambda file: file.transact(epoch, writes, requires))

    def hand_over(
        self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require], ended: Ended
    ) -> None:
        """See PromptStash."""
        loop = asyncio.get_running_loop()
        if self._closed:
            loop.call_soon(ended, Determinate("the stash is closed"))
            return

        def work() -> None:
            self._guarded(lambda file: file.transact(epoch, writes, requires))

        def job() -> None:
            failure: Exception | None = None
            try:
                run_with_catchable_errors(work)
            except Exception as error:
                failure = error
            # A closed loop refuses: it has nobody left who waits (L2).
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ended, failure)

        self._jobs.put(job)

    async def read_format(self) -> int:
        """The format that the stash has."""
        return await self._use(lambda file: file.read_format())

    async def upgrade(self, epoch: Epoch, writes: Sequence[Write]) -> None:
        """See Stash."""
        await self._use(lambda file: file.upgrade(epoch, writes))

    @property
    def exclusive(self) -> bool:
        """See Stash: the lock keeps everybody else out for as long as this is open (L4)."""
        return self._lock is not None

    async def confirm(self, epoch: Epoch) -> None:
        """See Stash (S5); free under the lock."""
        if not self.exclusive:
            await self._use(lambda file: file.confirm(epoch))

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        """All keys and values of a collection, in the order of the keys."""
        return await self._use(lambda file: file.scan(collection))

    async def read(self, collection: str, key: str) -> bytes | None:
        """One value, or None."""
        return await self._use(lambda file: file.read(collection, key))

    async def verify(self) -> Sequence[str]:
        """What is wrong with the file, line by line; reads all of it."""
        return await self._use(lambda file: file.verify())

    async def close(self) -> None:
        """Finish what was handed over, then let go of the file and the lock."""
        if self._closed:
            return
        closing = self._hand_over(self._close)
        self._closed = True
        self._jobs.put(None)
        await closing
        self._thread.join()

    async def _use(self, work: Callable[[StashFile], Result]) -> Result:
        if self._closed:
            raise Determinate("the stash is closed")
        return await self._hand_over(lambda: self._guarded(work))

    def _hand_over(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, loop.create_future())
        self._jobs.put(job.run)
        return job.done

    def _serve(self) -> None:
        """The thread: job after job (L1), and checkpoints where nobody waits."""
        while (job := self._jobs.get()) is not None:
            job()
            # The next one may be long in coming: let go of what this one wrote.
            del job
            self._checkpoint()

    def _checkpoint(self) -> None:
        if self._file is None or self._fatal is not None:
            return
        try:
            self._file.checkpoint_if_due(quiet=self._jobs.empty())
        except Fatal as error:
            self._fatal = error
        # The log just stays longer: a full disk is reported by the transaction that needs room.
        except StorageError:
            return

    def _open(self, path: Path, *, lock: bool) -> None:
        if lock:
            self._lock = DirectoryLock.take(path.with_name(f"{path.name}.lock"))
        self._file = open_stash_file(path, exclusive=lock)

    def _guarded(self, work: Callable[[StashFile], Result]) -> Result:
        """The work on the stash's thread, unless a sync has failed before (L3)."""
        if self._fatal is not None:
            raise Fatal("a sync of the stash has failed before") from self._fatal
        assert self._file is not None, "a stash is used after open"
        try:
            return work(self._file)
        except Fatal as error:
            self._fatal = error
            raise

    def _close(self) -> None:
        file, lock = self._file, self._lock
        self._file, self._lock = None, None
        try:
            if file is not None:
                file.close()
        finally:
            if lock is not None:
                lock.release()
