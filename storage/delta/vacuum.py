"""Vacuum: delete files and log entries that nobody can read any more.

    listing ─┬─ in use by a version, a commit, a transaction ──▶ stays
             ├─ removed in the log, long enough ago ───────────▶ deleted
             ├─ in the log ────────────────────────────────────▶ stays
             ├─ not of our making ─────────────────────────────▶ stays
             └─ named by nobody: an orphan ──▶ reported; deleted if it was reported before
    log entries before a checkpoint that is old enough ────────▶ deleted
    files of the change feed before the first log entry ───────▶ deleted

INVARIANTS
  Y1  a file goes only if its removal is at or before since, and as long ago as the table promises
      foreign readers (`delta.deletedFileRetentionDuration`); log entries likewise.
  Y2  an orphan goes only if no flush can come back to it: a flush names its data file after its
      last commit and its vectors after its version, and both only ascend.
      A compaction's file may wait for any version after the one it was made from, also on the way
      of a coordinator that was deposed: it is an orphan only if that has nothing to bring any more.
  Y3  what somebody else has put here is not ours to delete: only names of our own patterns go.
  Y4  files and log entries go only up to a version with a checkpoint that has just been read as a
      whole, the log first: a restart begins there and misses nothing. A crash at any point leaves a
      log that can be read.
  Y5  a coordinator that was deposed deletes nothing that the next one has written: between listing
      and deleting it asks whether it still leads.
  Y6  a file of the change feed lives as long as its version's log entry; one that no entry names,
      too.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from storage.delta.actions import CommitInfo
from storage.delta.change_feed import change_file_version
from storage.delta.checkpoint import LogState
from storage.delta.deletion_vectors import vector_version
from storage.delta.layout import data_path, last_checkpoint_path, log_directory, parse_log_path
from storage.delta.log import decode_commit
from storage.delta.maintenance import EncodeBlocking, log_state, write_checkpoint
from storage.delta.recovery import list_log, read_checkpoint, read_commit
from storage.delta.table import FILE_RETENTION, LOG_RETENTION, promised_ms
from storage.delta.vacuum_plan import Vacuuming
from storage.errors import Corrupt, ForeignWriter
from storage.object_store import ObjectStore
from storage.types import ShardId

_FLUSHED: Final = re.compile(r"part-(\d{1,20})-[0-9a-f]{16}\.parquet")
_REWRITTEN: Final = re.compile(r"part-c(\d{1,20})-[0-9a-f]{16}\.parquet")
_STAGED: Final = re.compile(
    r"part-[0-9a-f]{32}\.parquet|part-[0-9a-f]{24}-\d{5,}\.parquet|\.[0-9a-f]{24}/.*"
)


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What came of it: deleted objects, and orphans that are left."""

    deleted: tuple[str, ...]
    unnamed: frozenset[str]


async def nobody_else() -> None:
    """For who cannot be deposed."""


async def vacuum_shard(
    store: ObjectStore,
    vacuuming: Vacuuming,
    *,
    leading: Callable[[], Awaitable[None]] = nobody_else,
    run_blocking: EncodeBlocking = asyncio.to_thread,
) -> Vacuumed:
    """Delete what may go, if `leading` does not raise. May be repeated.

    Raises Corrupt, Determinate, Indeterminate, and what `leading` does.
    """
    shard = vacuuming.shard
    log = LogState() if vacuuming.number < 0 else await log_state(store, shard, vacuuming.number)
    removed = removed_files(log)
    named = named_files(log)
    horizon_ms = _horizon_ms(vacuuming, log)
    removable: list[str] = []
    unnamed: set[str] = set()
    feed: list[tuple[int, str]] = []
    for path in await store.list(shard):
        name = path.removeprefix(f"{shard}/")
        if name in vacuuming.in_use or path.startswith(f"{log_directory(shard)}/"):
            continue
        if name in removed:
            if removed[name] <= horizon_ms and name not in named:
                removable.append(path)
        elif (version := change_file_version(name)) is not None:
            feed.append((version, path))
        elif name not in named and _abandoned(name, vacuuming):
            unnamed.add(name)
    # What the next coordinator has written came after this answer, so it is not on the list (Y5).
    await leading()
    deleted: list[str] = []
    commits, checkpoints = await list_log(store, shard)
    wanted = removable or any(number > commits[0] for number in checkpoints)
    base = await _base(store, shard, commits, horizon_ms, run_blocking) if wanted else None
    if base is not None:
        deleted += await _old_log(store, shard, base)
        deleted += removable
    begins = base if base is not None else commits[0] if commits else 0
    deleted += [path for number, path in feed if number < begins]
    deleted += [data_path(shard, name) for name in sorted(unnamed & vacuuming.suspects)]
    for path in deleted:
        await store.delete(path)
    return Vacuumed(tuple(deleted), frozenset(unnamed - vacuuming.suspects))


async def remove_table(store: ObjectStore, shard: ShardId) -> None:
    """Delete a dropped table: log first, then files. What others have put there stays (Y3).

    Its directory stays, empty: stores have no directories. May be repeated.
    """
    for path in await store.list(shard):
        name = path.removeprefix(f"{shard}/")
        if path.startswith(f"{log_directory(shard)}/"):
            ours = path == last_checkpoint_path(shard) or await _own_log_file(store, path)
        else:
            patterns = (_FLUSHED, _REWRITTEN, _STAGED)
            numbered = (vector_version(name), change_file_version(name)) != (None, None)
            ours = numbered or any(p.fullmatch(name) for p in patterns)
        if ours:
            await store.delete(path)


async def _own_log_file(store: ObjectStore, path: str) -> bool:
    parsed = parse_log_path(path)
    if parsed is None or parsed[1] != "json":
        return parsed is not None
    try:
        info = decode_commit(await store.read(path))[0]
    except (Corrupt, ForeignWriter):
        return False
    return isinstance(info, CommitInfo) and info.meridian is not None


def _horizon_ms(vacuuming: Vacuuming, log: LogState) -> int:
    """What was removed at or before this millisecond is nobody's any more (Y1)."""
    configuration = {} if log.metadata is None else log.metadata.configuration
    promise = max(promised_ms(configuration, kind) for kind in (FILE_RETENTION, LOG_RETENTION))
    least = min(vacuuming.since, vacuuming.frontier - promise * vacuuming.ticks_per_ms)
    return least // vacuuming.ticks_per_ms


def removed_files(log: LogState) -> Mapping[str, int]:
    """When each file was removed for the last time."""
    removed: dict[str, int] = {}
    for remove in log.removes.values():
        names = [remove.path]
        if remove.vector is not None and remove.vector.storage_type == "u":
            names.append(remove.vector.file_name)
        for name in names:
            removed[name] = max(removed.get(name, 0), remove.deletion_ms)
    return removed


def named_files(log: LogState) -> frozenset[str]:
    """The files of the newest version."""
    names = {*log.adds}
    for add in log.adds.values():
        if add.vector is not None and add.vector.storage_type == "u":
            names.add(add.vector.file_name)
    return frozenset(names)


def _abandoned(name: str, vacuuming: Vacuuming) -> bool:
    """True for a name of ours that no flush can come back to (Y2, Y3)."""
    flushed = _FLUSHED.fullmatch(name)
    if flushed is not None:
        return int(flushed[1]) <= vacuuming.cut
    version = vector_version(name)
    if version is not None:
        return version <= vacuuming.number
    rewritten = _REWRITTEN.fullmatch(name)
    if rewritten is not None:
        return vacuuming.is_alone and int(rewritten[1]) < vacuuming.cut
    return _STAGED.fullmatch(name) is not None


async def _base(
    store: ObjectStore,
    shard: ShardId,
    commits: Sequence[int],
    horizon_ms: int,
    run_blocking: EncodeBlocking,
) -> int | None:
    """The newest version at or before the horizon, with a checkpoint that can be read (Y4)."""
    # In-commit timestamps ascend: look where the horizon falls.
    low, high = 0, len(commits)
    while low < high:
        middle = (low + high) // 2
        info = (await read_commit(store, shard, commits[middle]))[0]
        if isinstance(info, CommitInfo) and info.in_commit_timestamp <= horizon_ms:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return None
    number = commits[low - 1]
    await write_checkpoint(store, shard, number, run_blocking=run_blocking)
    try:
        await read_checkpoint(store, shard, number)
    except Corrupt:
        return None
    return number


async def _old_log(store: ObjectStore, shard: ShardId, first: int) -> list[str]:
    """What lies before a checkpoint, the oldest first (Y4)."""
    found = [(parse_log_path(path), path) for path in await store.list(log_directory(shard))]
    return [path for _, path in sorted((k[0], path) for k, path in found if k and k[0] < first)]
