"""Load the shards at start-up from their Delta logs; fence each table that cannot be read.

    known shards ─▶ load_shard ─┬─▶ ShardState
                                └─ damaged, unreadable ─▶ a fenced one, without files

INVARIANTS
  U5  a log that ends before the cut it has reached has lost acknowledged data: its table is fenced.
  U6  a log entry counts only once it is durable. The previous process may have died between writing
      it and syncing its directory, and the batches that it holds are tidied because of it.
  U7  a coordinator that is deposed while it starts reports that, and not damaged data: its
      successor tidies the logs that it is reading.
  U8  damage of one table fences that table alone; its batches in the stash stay there. If nothing
      of several tables is there, the warehouse itself is unreachable: nothing is served.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa

from sql.catalog.catalog import Table
from storage.delta.layout import commit_path
from storage.delta.recovery import load_shard
from storage.errors import Corrupt, Determinate, NotFound
from storage.object_store import ObjectReader, ObjectStore
from storage.shard import RETENTION_US, TICKS_PER_MS, Definition, Fence, ShardState
from storage.types import ShardId, Timestamp
from storage.view_marks import BehindMark

log = logging.getLogger("meridian.recovery")

READ_TOGETHER: Final = 128
"""Logs. Larger: fewer hand-overs to a thread. Smaller: SIGTERM is obeyed sooner, and a storage that
is far away is noticed sooner."""

FAR_S: Final = 0.001
"""Logs that take longer than this, each, wait for their storage and not for this process."""

LOADS_AT_ONCE: Final = 4
"""Of logs that are far away. Near ones are read one after the other: two threads that never wait
cost more together than one, as they pass the interpreter back and forth."""

ATTEMPTS: Final = 3
"""To read a log that storage does not give."""

ATTEMPT_PAUSE_S: Final = 0.2
"""Between two of them."""


@dataclass(frozen=True, slots=True)
class ShardToLoad:
    """A shard that may be read, from `since` on; `reached`: the cut that its log must contain."""

    table: Table
    schema: pa.Schema
    created: Timestamp
    since: Timestamp
    reached: Timestamp | None
    definitions: tuple[Definition, ...] = ()
    retention_us: int = RETENTION_US
    ticks_per_ms: int = TICKS_PER_MS
    marks: tuple[BehindMark, ...] = ()

    @property
    def empty(self) -> ShardState:
        """As it is before anything is known of its log."""
        return ShardState(
            self.shard,
            self.schema,
            self.created,
            definitions=self.definitions,
            marks=self.marks,
            ticks_per_ms=self.ticks_per_ms,
            retention_us=self.retention_us,
        )

    @property
    def shard(self) -> ShardId:
        """Of the table."""
        return ShardId(self.table.shard)


LoadedLog: TypeAlias = ShardState | Determinate
"""What a log came to: what it holds, or why that cannot be told."""


@dataclass(frozen=True, slots=True)
class ShardLoader:
    """See the module. `leading` raises if another coordinator has taken over (U7)."""

    store: ObjectStore
    leading: Callable[[], Awaitable[None]]

    async def load(
        self, wanted: list[ShardToLoad], *, warehouse_is_there: bool = False
    ) -> dict[ShardId, ShardState]:
        """All shards. Raises Corrupt, Determinate if none of several is there (U8); Fenced.

        `warehouse_is_there`: logs of it were read before, so that nothing says it is away.
        """
        outcomes = await self._outcomes(wanted)
        failed = {shard: one for shard, one in outcomes.items() if isinstance(one, Determinate)}
        if failed:
            await self.leading()
            if not warehouse_is_there:
                await self._check_warehouse(wanted, failed)
        return {
            one.shard: _fenced(one, outcome) if isinstance(outcome, Determinate) else outcome
            for one in wanted
            for outcome in (outcomes[one.shard],)
        }

    async def _outcomes(self, wanted: Sequence[ShardToLoad]) -> Mapping[ShardId, LoadedLog]:
        """What each log came to. Raises whatever is not Determinate."""
        outcomes: dict[ShardId, LoadedLog] = {}
        places = range(0, len(wanted), READ_TOGETHER)
        left = (wanted[place : place + READ_TOGETHER] for place in places)
        loop = asyncio.get_running_loop()

        async def load_some(tasks: asyncio.TaskGroup) -> None:
            for some in left:
                began = loop.time()
                outcomes.update(await self._loaded(some))
                if loop.time() - began > FAR_S * len(some) and len(loaders) < LOADS_AT_ONCE:
                    loaders.append(tasks.create_task(load_some(tasks)))

        loaders: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                loaders.append(tasks.create_task(load_some(tasks)))
        except ExceptionGroup as group:
            # One reason is enough to refuse to start, and it must be said in one line.
            raise group.exceptions[0] from group
        return outcomes

    async def _loaded(self, wanted: Sequence[ShardToLoad]) -> dict[ShardId, LoadedLog]:
        outcomes = await self._attempt(wanted)
        for _ in range(1, ATTEMPTS):
            failed = [one for one in wanted if isinstance(outcomes[one.shard], Determinate)]
            if not failed:
                break
            # What looks like damage may be a deposed coordinator that is cleaning the log.
            await asyncio.sleep(ATTEMPT_PAUSE_S)
            outcomes |= await self._attempt(failed)
        return outcomes

    async def _attempt(self, wanted: Sequence[ShardToLoad]) -> dict[ShardId, LoadedLog]:
        try:
            return await self.store.read_together(partial(_loaded_together, wanted))
        except Determinate as error:
            # The storage failed before any log was asked for: its root cannot be opened, say.
            return {one.shard: error for one in wanted}

    async def _check_warehouse(
        self, wanted: list[ShardToLoad], failed: Mapping[ShardId, Determinate]
    ) -> None:
        """Raise if it is the warehouse that is away, and not some tables of it (U8)."""
        with_log = [one for one in wanted if one.reached is not None]
        if not all(one.shard in failed for one in with_log):
            return
        unreadable = [error for error in failed.values() if not _is_damage(error)]
        if unreadable:
            raise unreadable[0]
        if len(with_log) > 1 and not await self.store.list(""):
            raise Corrupt(
                "the warehouse is empty, but the stash has tables: the warehouse was lost"
            )

    async def keep_logs(
        self, shards: Mapping[ShardId, ShardState], flushed: Mapping[ShardId, Timestamp]
    ) -> None:
        """Make each shard's newest log entry durable: the previous process may not have (U6)."""
        newest = [
            commit_path(shard, state.versions[-1].number)
            for shard, state in shards.items()
            if state.versions and state.versions[-1].cut > flushed.get(shard, -1)
        ]
        if newest:
            await self.store.sync(newest)


async def _loaded_together(
    wanted: Sequence[ShardToLoad], store: ObjectReader
) -> dict[ShardId, LoadedLog]:
    return {one.shard: await _loaded_one(store, one) for one in wanted}


async def _loaded_one(store: ObjectReader, one: ShardToLoad) -> LoadedLog:
    try:
        state = await load_shard(store, one.empty, one.since)
        _check_nothing_lost(one, state)
    except Determinate as error:
        return error
    return state


def _check_nothing_lost(one: ShardToLoad, state: ShardState) -> None:
    """Compare the log with what tidy noted (U5). Raises Corrupt."""
    if one.reached is not None and (state.cut is None or state.cut < one.reached):
        raise Corrupt(f"the Delta log of {one.shard} ends before its newest commits")


def _is_damage(error: Determinate) -> bool:
    return isinstance(error, Corrupt | NotFound)


def _fenced(one: ShardToLoad, error: Determinate) -> ShardState:
    """What is known of a shard whose log cannot be read (U8)."""
    fence = Fence.DAMAGED if _is_damage(error) else Fence.UNREADABLE
    log.error("table %s is %s, so it is fenced: %s", one.table.qualified, fence.value, error)
    return replace(one.empty, definitions=(), fence=fence)
