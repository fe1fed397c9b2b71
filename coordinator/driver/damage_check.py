"""Examine data files for damage after an engine has failed to read them.

    engine fails ─▶ Coordination.examine(views) ─▶ every file of the views ─┬─ whole: not the files
                                                                            └─ ShardDamaged ─▶ fence

INVARIANTS
  E1  only a coordinator that still leads calls files damaged: those that a deposed one misses may
      have been vacuumed.
  E2  as long as no engine fails, no file is examined; then each file is read once, up to a bound.
  E3  the views are pinned during the examination, so our own vacuum has not removed a missing file.

Part of the driver (`driver.py`).
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from coordinator.core.core import Core
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.maintenance_effects import RunBlocking
from coordinator.failures import storage_failure
from coordinator.streams import closing_batches
from sql.errors import SqlError
from storage.batch import DataFile, ShardView
from storage.delta.file_check import unreadable
from storage.delta.layout import data_path
from storage.errors import NotFound, StorageError
from storage.object_store import ObjectStore
from storage.types import ShardId

log = logging.getLogger("meridian.examining")

EXAMINED_BYTES_MAX: Final = 1 << 30
"""Of one failed statement. Larger: damage inside of large tables is told from other failures, and a
statement that fails for another reason takes longer to say so."""

_DOUBTFUL: Final = frozenset({"XX000", "58030", "58P01"})
"""What engines answer when they could not read: the first is what is not foreseen."""


def may_be_file_damage(error: Exception) -> bool:
    """Whether a failure of an engine may come from its files."""
    return not isinstance(error, SqlError) or error.sqlstate in _DOUBTFUL


async def examine_on_failure(
    batches: AsyncIterator[pa.RecordBatch], examine: Callable[[], Awaitable[None]]
) -> AsyncIterator[pa.RecordBatch]:
    """The same batches; if they fail because of damaged files, `examine` raises a better error."""
    async with closing_batches(batches):
        try:
            async for batch in batches:
                yield batch
        except Exception as error:
            if may_be_file_damage(error):
                await examine()
            raise


@dataclass(frozen=True, slots=True)
class DamageCheck:
    """See the module. `leading` raises if another coordinator has taken over; `damaged` reports a
    damaged shard to the core that owns it.
    """

    store: ObjectStore
    run_blocking: RunBlocking
    leading: Callable[[], Awaitable[None]]
    damaged: Callable[[ShardId], None]
    core: Core

    async def examine(self, views: Collection[ShardView]) -> None:
        """See Coordination."""
        for view in views:
            state = self.core.shards.get(view.shard)
            if state is None:
                continue
            if not state.fenced:
                try:
                    await self._look_at(view)
                except StorageError as error:
                    raise storage_failure(error) from error
            refused = self.core.refusal(view.shard)
            if refused is not None:
                raise RequestRefused.from_reply(refused)

    async def _look_at(self, view: ShardView) -> None:
        """Report files of the view that are missing or broken (E1). Raises StorageError."""
        problem = await self._problem(view)
        if problem is not None:
            await self.leading()
            log.error("shard %s is damaged, so it is fenced: %s", view.shard, problem)
            self.damaged(view.shard)

    async def _problem(self, view: ShardView) -> str | None:
        there = set(await self.store.list(view.shard))
        names = [data_path(view.shard, part.file.name) for part in view.files]
        gone = next((name for name in names if name not in there), None)
        if gone is not None:
            return f"{gone} is gone"
        left = EXAMINED_BYTES_MAX
        for name, part in zip(names, view.files, strict=True):
            left -= part.file.size_bytes
            if left < 0:
                return None
            if (problem := await self._file_problem(name, part.file)) is not None:
                return f"{name} {problem}"
        return None

    async def _file_problem(self, name: str, file: DataFile) -> str | None:
        try:
            content = await self.store.read(name)
        except NotFound:
            return "is gone"
        return await self.run_blocking(lambda: unreadable(file, content))
