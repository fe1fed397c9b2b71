"""Run the effects that make state durable: timestamp ceilings, group commits and cuts.

    core ── PersistCeiling, CommitGroup, FlushCut, Tidy ──▶ stash, Delta ──▶ completion
         ── ConfirmGroup ──▶ still leading? ──▶ completion

INVARIANTS
  D5  a commit whose outcome is unknown is looked up by its token until the outcome is known; no
      client gets an answer before.
  D6  only a coordinator that still leads calls a table version foreign: to a deposed one, versions
      of the next coordinator look foreign, too.

Part of the driver (`driver.py`), which runs these as tasks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, TypeAlias

from coordinator.core.completions import (
    CeilingFailed,
    CeilingPersisted,
    CutFlushed,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    Tidied,
)
from coordinator.core.effects import FlushCut, Tidy
from coordinator.core.messages.requests import Message
from coordinator.driver.maintenance_effects import RunBlocking
from coordinator.failures import storage_failure
from coordinator.server_counters import Durations
from sql.catalog.catalog import SYSTEM_TIMELINE
from storage.commit import Commit
from storage.cuts import flush
from storage.errors import (
    Corrupt,
    Determinate,
    Fatal,
    Fenced,
    ForeignWriter,
    Indeterminate,
    NotFound,
    StorageError,
)
from storage.object_store import ObjectStore
from storage.shard import Fence, ShardState, Version
from storage.stash import Put, Stash
from storage.txns import TimestampPassed, TxnsShard
from storage.types import Epoch, ShardId, Timestamp, Token

log = logging.getLogger("meridian.driver")

_Feed: TypeAlias = Callable[[Message], None]
_Spawn: TypeAlias = Callable[[Coroutine[object, object, Message]], None]

ORACLE: Final = "oracle"
SYSTEM: Final = SYSTEM_TIMELINE.name

FLUSHES_AT_ONCE: Final = 4
"""Larger: a cut over many tables is faster and takes more threads from queries."""

RESOLVE_PAUSE_S: Final = 0.05
"""Between two looks for the token of a commit whose outcome is unknown."""


async def _raised(error: Exception) -> None:
    raise error


def _fence_of(error: StorageError) -> Fence:
    """The fence for a flush that found a foreign version, or misses its own."""
    return Fence.FOREIGN if isinstance(error, ForeignWriter) else Fence.DAMAGED


@dataclass(slots=True)
class CommitEffects:
    """See the module. `leading` raises if another coordinator has taken over."""

    timeline: str
    stash: Stash
    txns: TxnsShard
    store: ObjectStore
    epoch: Epoch
    run_blocking: RunBlocking
    leading: Callable[[], Awaitable[None]]
    seconds: Durations = field(default_factory=Durations)
    """Of groups in the stash."""

    async def persist_ceiling(self, ceiling: Timestamp) -> Message:
        """Ends in CeilingPersisted or CeilingFailed."""
        record = Put(ORACLE, self.timeline, ceiling.to_bytes(8, "big"))
        try:
            await self.stash.transact(self.epoch, [record])
        except Fatal:
            raise
        except Determinate as error:
            log.warning("ceiling not persisted: %s", error)
            await asyncio.sleep(RESOLVE_PAUSE_S)
            return CeilingFailed(ceiling)
        except Indeterminate as error:
            # A ceiling that may be there is no ceiling: writing it again does no harm.
            log.warning("ceiling may not be persisted: %s", error)
            await asyncio.sleep(RESOLVE_PAUSE_S)
            return CeilingFailed(ceiling)
        else:
            return CeilingPersisted(ceiling)

    def begin_commit(self, commit: Commit, feed: _Feed, spawn: _Spawn) -> bool:
        """`commit_group` without a task, if the stash can; False: nothing has happened. `feed`
        takes news of success; what becomes of a failure, a task has to find out.
        """
        began = perf_counter()

        def ended(error: Exception | None) -> None:
            if error is not None:
                spawn(self._failed_with(commit, error, began))
                return
            self.seconds.add(perf_counter() - began)
            feed(GroupCommitted(commit.token))

        return self.txns.hand_over(commit, ended)

    async def commit_group(self, commit: Commit) -> Message:
        """Ends in GroupCommitted, GroupPassed or GroupFailed."""
        return await self._fate(commit, self.txns.commit_at(commit), perf_counter())

    async def _failed_with(self, commit: Commit, error: Exception, began: float) -> Message:
        return await self._fate(commit, _raised(error), began)

    async def _fate(self, commit: Commit, work: Awaitable[None], began: float) -> Message:
        try:
            await work
        except Fatal:
            raise
        except TimestampPassed as passed:
            return GroupPassed(commit.token, passed.upper)
        except Determinate as error:
            return self._failed(commit.token, error)
        except Indeterminate as error:
            log.warning("outcome of commit %s unknown: %s", commit.token, error)
            return await self._resolve(commit, error)
        else:
            return GroupCommitted(commit.token)
        finally:
            self.seconds.add(perf_counter() - began)

    async def confirm_group(self, token: Token) -> Message:
        """Ends in GroupCommitted or GroupFailed. Raises Fenced."""
        try:
            await self.leading()
        except Fenced:
            raise
        except StorageError as error:
            return self._failed(token, error)
        return GroupCommitted(token)

    async def _resolve(self, commit: Commit, cause: StorageError) -> Message:
        """Look the token up until the stash answers; no client gets an answer before (D2)."""
        while True:
            try:
                found = await self.txns.find(commit.token)
            except (Fenced, Fatal):
                raise
            except StorageError as error:
                log.warning("commit %s still unknown: %s", commit.token, error)
                await asyncio.sleep(RESOLVE_PAUSE_S)
                continue
            if found is None:
                # Now it is known: the commit did not happen and, on this stash, never will.
                certain = Determinate(str(cause))
                certain.__cause__ = cause
                return self._failed(commit.token, certain)
            return GroupCommitted(commit.token)

    def _failed(self, token: Token, error: StorageError) -> Message:
        failure = storage_failure(error)
        return GroupFailed(token, failure.sqlstate, failure.message)

    async def flush_cut(self, effect: FlushCut) -> CutFlushed:
        """Flush every shard, some at a time."""
        cut = effect.cut
        versions: dict[ShardId, Version] = {}
        failed: dict[ShardId, str] = {}
        fences: dict[ShardId, Fence] = {}
        limit = asyncio.Semaphore(FLUSHES_AT_ONCE)

        async def flush_one(state: ShardState) -> None:
            async with limit:
                try:
                    versions[state.shard] = await flush(
                        self.store,
                        state,
                        cut,
                        rewritten=effect.rewritten.get(state.shard, ()),
                        run_blocking=self.run_blocking,
                    )
                except Fatal:
                    raise
                except (ForeignWriter, NotFound, Corrupt) as error:
                    failed[state.shard] = str(error)
                    # To one who was deposed the next coordinator's version looks foreign.
                    if await self._still_leading():
                        fence = _fence_of(error)
                        log.warning("shard %s is fenced, %s: %s", state.shard, fence.value, error)
                        fences[state.shard] = fence
                except (Determinate, Indeterminate) as error:
                    log.warning("shard %s not flushed: %s", state.shard, error)
                    failed[state.shard] = str(error)

        async with asyncio.TaskGroup() as tasks:
            for state in effect.states:
                tasks.create_task(flush_one(state))
        return CutFlushed(cut, versions, failed, fences)

    async def _still_leading(self) -> bool:
        """False if that is not known now. Raises Fenced."""
        try:
            await self.leading()
        except Fenced:
            raise
        except StorageError as error:
            log.warning("leadership not confirmed: %s", error)
            return False
        return True

    async def tidy(self, tidy: Tidy) -> Message:
        """Ends in Tidied, done or not; the next cut tidies the rest."""
        try:
            await self.txns.tidy(tidy.cut, tidy.flushed)
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("cut %s not tidied: %s", tidy.cut, error)
        return Tidied(tidy.cut)
