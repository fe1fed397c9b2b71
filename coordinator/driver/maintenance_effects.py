"""Run maintenance effects: checkpoints, checksums, compaction, vacuum, removal of dropped tables.

    core ── RewriteFiles, VacuumShard, ForgetShards, RemoveStaged ──▶ work ──▶ completion
    flush ──▶ checkpoint, checksum: nobody waits for them

INVARIANTS
  D7  no commit and no read waits for maintenance. A failure is logged and reported, and costs
      nothing but space. A fatal storage failure and Fenced end the process as everywhere (D3 of
      `driver.py`).
  D8  a file that a checkpoint or a checksum misses counts as damage only if no vacuum can have
      removed it. Both may be slow, and a log may meanwhile be cleaned up to a younger checkpoint.

Part of the driver (`driver.py`), which runs these as tasks.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, TypeVar, assert_never

from coordinator.core.catalog import COLLECTION, compact_history
from coordinator.core.completions import FilesRewritten, Forgotten, Vacuumed
from coordinator.core.effects import ForgetShards, RemoveStaged, RewriteFiles, VacuumShard
from storage.delta.checksum import Checksums
from storage.delta.compaction import rewrite_files
from storage.delta.layout import data_path
from storage.delta.maintenance import wants_checkpoint, write_checkpoint
from storage.delta.recovery import is_covered_by_checkpoint
from storage.delta.vacuum import remove_table, vacuum_shard
from storage.errors import (
    Corrupt,
    Determinate,
    Fatal,
    Fenced,
    Indeterminate,
    NotFound,
    StorageError,
)
from storage.live_files import LiveFile
from storage.object_store import ObjectStore
from storage.shard import Version
from storage.stash import Put, Stash, Write
from storage.txns import TxnsShard
from storage.types import ShardId, Timestamp

log = logging.getLogger("meridian.maintenance")

OIDS: Final = "oids"
NEXT_OID: Final = "next"

CATALOG_COMPACTION_FORMAT: Final = struct.Struct(">QQ")
"""What compacting the catalog leaves beside it: the next oid, and from when on the catalog is
known; the second is missing in what older servers wrote."""


def decode_catalog_compaction(content: bytes | None) -> tuple[int, Timestamp]:
    """The next oid, and from when on the catalog is known; zeros if it was never compacted."""
    if content is None:
        return 0, Timestamp(0)
    oid, beginning = CATALOG_COMPACTION_FORMAT.unpack(
        content.ljust(CATALOG_COMPACTION_FORMAT.size, b"\0")
    )
    return oid, Timestamp(beginning)


CHECKSUMS_MAX: Final = 32
"""Of one cut. Larger: more small files for tables that nobody else may read."""

T = TypeVar("T")


class RunBlocking(Protocol):
    """Runs a function that takes a while, off the loop; the simulation runs it on the spot."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Wait for the result of `work`."""
        ...


async def in_thread(work: Callable[[], T], /) -> T:
    """Run a function in a thread of the loop's pool."""
    return await asyncio.to_thread(work)


MaintenanceEffect: TypeAlias = RewriteFiles | VacuumShard | ForgetShards | RemoveStaged


@dataclass(slots=True)
class MaintenanceEffects:
    """See the module. `leading` raises if another coordinator has taken over; `damaged` is called
    for tables whose files are missing or broken.
    """

    store: ObjectStore
    stash: Stash
    txns: TxnsShard
    run_blocking: RunBlocking
    leading: Callable[[], Awaitable[None]]
    damaged: Callable[[ShardId], None]
    keeps_catalog: bool
    _checksums: Checksums = field(default_factory=Checksums)

    async def run(self, effect: MaintenanceEffect) -> FilesRewritten | Vacuumed | Forgotten | None:
        """Run an effect; its completion, if it has one."""
        match effect:
            case RewriteFiles():
                return await self.rewrite(effect)
            case VacuumShard():
                return await self.vacuum(effect)
            case ForgetShards():
                return await self.forget(effect)
            case RemoveStaged():
                await self.remove_staged(effect)
                return None
            case _:
                assert_never(effect)

    async def after_flush(self, versions: Mapping[ShardId, Version]) -> None:
        """Checkpoints and checksums of new versions: without them readers only replay more."""
        for shard, version in versions.items():
            if wants_checkpoint(version):
                await self._checkpoint(shard, version.number)
        for shard in sorted(versions)[:CHECKSUMS_MAX]:
            await self._checksum(shard, versions[shard].number)

    async def _checkpoint(self, shard: ShardId, number: int) -> None:
        try:
            await write_checkpoint(self.store, shard, number, run_blocking=self.run_blocking)
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("no checkpoint of shard %s at %s: %s", shard, number, error)
            await self._look_at_log(shard, number, error)

    async def _checksum(self, shard: ShardId, number: int) -> None:
        try:
            await self._checksums.write(self.store, shard, number)
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("no checksum of shard %s at %s: %s", shard, number, error)
            await self._look_at_log(shard, number, error)

    async def _look_at_log(self, shard: ShardId, number: int, error: StorageError) -> None:
        """The same of what tells a version (D8)."""
        try:
            if isinstance(error, NotFound) and await is_covered_by_checkpoint(
                self.store, shard, number
            ):
                return
        except Fatal:
            raise
        except StorageError as unsure:
            log.warning("log of shard %s not listed: %s", shard, unsure)
            return
        await self._look_at(shard, error)

    async def _look_at(self, shard: ShardId, error: StorageError) -> None:
        """A missing or changed file is damage, unless a successor did it."""
        if not isinstance(error, NotFound | Corrupt):
            return
        try:
            await self.leading()
        except Fenced:
            raise
        except StorageError as unsure:
            log.warning("leadership not confirmed: %s", unsure)
        else:
            self.damaged(shard)

    async def rewrite(self, effect: RewriteFiles) -> FilesRewritten:
        """Compact."""
        files: tuple[LiveFile, ...] | None = None
        try:
            files = await rewrite_files(
                self.store,
                effect.state,
                effect.sources,
                effect.limits,
                run_blocking=self.run_blocking,
            )
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("shard %s not compacted: %s", effect.state.shard, error)
            await self._look_at(effect.state.shard, error)
        return FilesRewritten(files)

    async def vacuum(self, effect: VacuumShard) -> Vacuumed:
        """Delete files that nobody can read any more."""
        unnamed: frozenset[str] | None = None
        try:
            done = await vacuum_shard(
                self.store,
                effect.vacuuming,
                leading=self.leading,
                run_blocking=self.run_blocking,
            )
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("shard %s not vacuumed: %s", effect.vacuuming.shard, error)
        else:
            unnamed = done.unnamed
            if done.deleted:
                log.info("shard %s: %s files deleted", effect.vacuuming.shard, len(done.deleted))
        return Vacuumed(unnamed)

    async def forget(self, effect: ForgetShards) -> Forgotten:
        """Forget dropped tables, then delete their files (T9 of `storage/txns.py`)."""
        done = False
        try:
            await self.txns.settle()  # what is read of the catalog now stays as it is
            await self.txns.forget(effect.shards, await self._catalog_writes(effect))
            for shard in sorted(effect.shards):
                await remove_table(self.store, shard)
            await self.txns.cleared(effect.shards)
            done = True
        except Fatal:
            raise
        except (Determinate, Indeterminate) as error:
            log.warning("dropped tables not removed: %s", error)
        return Forgotten(done)

    async def _catalog_writes(self, effect: ForgetShards) -> Sequence[Write]:
        """What compacts the catalog; DDL that commits meanwhile is younger and stays as it is."""
        if not self.keeps_catalog:
            return ()
        records = await self.stash.scan(COLLECTION)
        writes, beginning = compact_history(records, effect.catalog_since)
        if beginning is None:
            before = await self.stash.read(OIDS, NEXT_OID)
            _, beginning = decode_catalog_compaction(before)
        left = CATALOG_COMPACTION_FORMAT.pack(effect.next_oid, beginning)
        return [*writes, Put(OIDS, NEXT_OID, left)]

    async def remove_staged(self, staged: RemoveStaged) -> None:
        """Delete files that no commit names; a file left over is an orphan."""
        for shard, name in staged.files:
            try:
                await self.store.delete(data_path(shard, name))
            except Fatal:
                raise
            except StorageError as error:
                log.warning("staged file %s/%s not removed: %s", shard, name, error)
