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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from sql.catalog.catalog import Table
from storage.delta.layout import commit_path
from storage.delta.recovery import load_shard
from storage.errors import Corrupt, Determinate, NotFound
from storage.object_store import ObjectStore
from storage.shard import Definition, Fence, ShardState
from storage.types import ShardId, Timestamp
from storage.view_marks import BehindMark

log = logging.getLogger("meridian.recovery")

LOADS_AT_ONCE: Final = 16
"""Larger: a start with many tables is faster, and opens more files at once."""

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
    marks: tuple[BehindMark, ...] = ()

    @property
    def shard(self) -> ShardId:
        """Of the table."""
        return ShardId(self.table.shard)


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
        failed: dict[ShardId, Determinate] = {}
        states: dict[ShardId, ShardState] = {}
        left = iter(wanted)

        async def load_some() -> None:
            for one in left:
                try:
                    states[one.shard] = await self._loaded(one)
                except Determinate as error:
                    failed[one.shard] = error

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(LOADS_AT_ONCE):
                    tasks.create_task(load_some())
        except ExceptionGroup as group:
            # One reason is enough to refuse to start, and it must be said in one line.
            raise group.exceptions[0] from group
        if failed:
            await self.leading()
            if not warehouse_is_there:
                await self._check_warehouse(wanted, failed)
        states |= {
            one.shard: _fenced(one, failed[one.shard]) for one in wanted if one.shard in failed
        }
        return {one.shard: states[one.shard] for one in wanted}

    async def _loaded(self, one: ShardToLoad) -> ShardState:
        attempts = 0
        while True:
            attempts += 1
            try:
                state = await load_shard(
                    self.store, one.shard, one.schema, one.created, one.since, one.definitions,
                    one.marks,
                )  # fmt: skip
            except Determinate:
                # What looks like damage may be a deposed coordinator that is cleaning the log.
                if attempts == ATTEMPTS:
                    raise
                await asyncio.sleep(ATTEMPT_PAUSE_S)
            else:
                _check_nothing_lost(one, state)
                return state

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
    return ShardState(one.shard, one.schema, one.created, fence=fence)
