"""Recover a ShardState from its log: start-up does this for every shard.

    newest checkpoint with cut <= since ─▶ base version ─▶ log entries, one by one ─▶ versions

INVARIANTS
  R3  the log alone says what a shard holds; no other record is needed.
  R5  the log has the same columns of the table as the catalog had at that time, as far as the
      catalog's own history goes back.
  R4  every version from the base on was written by Meridian, without a gap; otherwise nothing is
      loaded: Corrupt. A foreign writer's version fences its shard, and no other.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyroaring import BitMap64

from storage.delta.actions import Action, AddFile
from storage.delta.checkpoint import LogState, decode_checkpoint
from storage.delta.deletion_vectors import decode_vector
from storage.delta.layout import (
    checkpoint_path,
    commit_path,
    data_path,
    log_directory,
    parse_log_path,
)
from storage.delta.log import decode_commit
from storage.delta.schema import reported_definition
from storage.delta.snapshot import first_live, next_version
from storage.delta.table import (
    declared_metadata,
    has_vectors,
    metadata_definition,
    reported_behind,
)
from storage.delta.unnumbered_rows import with_row_ids
from storage.errors import Corrupt, ForeignWriter, NotFound
from storage.live_files import FileMap
from storage.object_store import ObjectReader
from storage.shard import Fence, ShardState, Version
from storage.types import ShardId, Timestamp
from storage.view_marks import recovered_marks

log = logging.getLogger("meridian.recovery")


async def load_shard(store: ObjectReader, empty: ShardState, since: Timestamp) -> ShardState:
    """The shard as its log has it, readable from `since` on; without a log, `empty` itself.

    Its definitions are what the catalog knows of earlier fields; if the first one is of the table's
    creation, the log must tell the same (R5). Its marks are what it knows of a view.

    Batches of the txns shard with ts > the newest cut are then handed to `committed`.
    With a version that somebody else wrote, what came before it, fenced. Raises Corrupt,
    Determinate.
    """
    shard = empty.shard
    commits, checkpoints = await list_log(store, shard)
    if not commits:
        return empty
    # One that was on its way while the log was cleaned may lie before it: nothing follows on it.
    usable = [number for number in checkpoints if number >= commits[0]]
    base = await _load_base(store, empty, usable, since)
    if base is None and commits[0] > 0:
        # The log was cleaned when since was later than now: its history is shorter than asked for.
        base = await _load_base(store, empty, usable, None)
    versions = [] if base is None else [base]
    first = 0 if base is None else base.number + 1
    wanted = range(first, commits[-1] + 1)
    if [number for number in commits if number >= first] != [*wanted]:
        raise Corrupt(f"the log of {shard} has a gap after version {first - 1}")
    fence = None
    for number in wanted:
        previous = versions[-1] if versions else None
        try:
            version = await _read_version(store, empty, previous, number)
        except ForeignWriter as error:
            log.warning("%s; the table is fenced", error)
            fence = Fence.FOREIGN
            break
        versions.append(version)
    state = replace(
        empty,
        versions=tuple(versions),
        last_write=_last_write(base, versions),
        next_id=max([version.next_id or 0 for version in versions], default=0),
        fence=fence,
    )
    if state.marks:
        state = replace(state, marks=recovered_marks(state.marks, state.versions))
    return with_row_ids(state.pruned(since))


def _last_write(base: Version | None, versions: Sequence[Version]) -> Timestamp:
    """The newest of all; of a base only its cut tells."""
    times = [version.newest_write for version in versions if version is not base]
    return max(times if base is None else [base.cut, *times], default=Timestamp(0))


async def _read_version(
    store: ObjectReader, state: ShardState, previous: Version | None, number: int
) -> Version:
    """The version after `previous`. Raises Corrupt, ForeignWriter."""
    shard = state.shard
    actions = await read_commit(store, shard, number)
    version = next_version(shard, previous, number, actions)
    if previous is not None and version.cut <= previous.cut:
        raise Corrupt(f"version {number} of {shard} is not later than the one before")
    if declared_metadata(actions) is not None or number == 0:
        _check_schema(state, version)
    return version


def _check_schema(state: ShardState, version: Version) -> None:
    """R5."""
    known = state.definitions[0].since if state.definitions else state.created
    if version.cut >= known and version.schema_text != reported_definition(
        state.schema_at(version.cut)
    ):
        raise Corrupt(f"the log of {state.shard} has another schema than the catalog")


async def list_log(store: ObjectReader, shard: ShardId) -> tuple[Sequence[int], Sequence[int]]:
    """The versions with a log entry and those with a checkpoint, ascending."""
    parsed = [parse_log_path(name) for name in await store.list(log_directory(shard))]
    files = [file for file in parsed if file is not None]
    commits = sorted(version for version, kind in files if kind == "json")
    checkpoints = sorted(version for version, kind in files if kind == "checkpoint.parquet")
    return commits, checkpoints


async def is_covered_by_checkpoint(store: ObjectReader, shard: ShardId, number: int) -> bool:
    """Whether a checkpoint stands for the log up to a version, so that a vacuum may have taken
    what was there (Y4 of `vacuum.py`).
    """
    _, checkpoints = await list_log(store, shard)
    return any(checkpoint >= number for checkpoint in checkpoints)


async def read_commit(store: ObjectReader, shard: ShardId, number: int) -> tuple[Action, ...]:
    """The actions of one version. Raises Corrupt, ForeignWriter."""
    return decode_commit(await store.read(commit_path(shard, number)))


async def read_checkpoint(store: ObjectReader, shard: ShardId, number: int) -> LogState:
    """The state in a checkpoint. Raises Corrupt if it is torn or not ours."""
    return decode_checkpoint(await store.read(checkpoint_path(shard, number)))


async def _load_base(
    store: ObjectReader,
    state: ShardState,
    checkpoints: Sequence[int],
    since: Timestamp | None,
) -> Version | None:
    """The newest checkpoint that is not after `since` (None: the oldest one there is).

    One that cannot be read is passed over.
    """
    for number in checkpoints if since is None else reversed(checkpoints):
        try:
            told = await read_checkpoint(store, state.shard, number)
        except Corrupt:
            continue
        assert told.txn is not None, "K1: a checkpoint has the marker of its version"
        if told.txn.app_id != state.shard or (since is not None and told.txn.version > since):
            continue
        version = await checkpoint_version(store, state.shard, number, told)
        _check_schema(state, version)
        return version
    return None


async def checkpoint_version(
    store: ObjectReader, shard: ShardId, number: int, state: LogState
) -> Version:
    """The version that a checkpoint describes; what came before it is not known any more."""
    assert state.txn is not None, "K1: a checkpoint has the marker of its version"
    bitmaps = await read_vectors(store, shard, state.adds.values())
    files = FileMap(first_live(add, bitmaps[add.path]) for add in state.adds.values())
    told = "" if state.metadata is None else metadata_definition(state.metadata)
    next_id = None if state.row_count is None else state.row_count.version
    cut = Timestamp(state.txn.version)
    vectors = has_vectors(state.metadata)
    return Version(
        number,
        cut,
        files,
        schema_text=told,
        next_id=next_id,
        has_vectors=vectors,
        behind_since=reported_behind(state.metadata),
    )


async def read_vectors(
    store: ObjectReader, shard: ShardId, adds: Iterable[AddFile]
) -> dict[str, BitMap64]:
    """The deleted rows of every file. Raises Corrupt, also if a file of vectors is missing."""
    contents: dict[str, bytes] = {}
    bitmaps: dict[str, BitMap64] = {}
    for add in adds:
        vector = add.vector
        if vector is None:
            bitmaps[add.path] = BitMap64()
            continue
        content: bytes | None = None
        if vector.storage_type == "u":
            content = contents.get(vector.file_name)
            if content is None:
                content = await _read_vector_file(store, shard, vector.file_name)
                contents[vector.file_name] = content
        bitmaps[add.path] = decode_vector(vector, content)
    return bitmaps


async def _read_vector_file(store: ObjectReader, shard: ShardId, name: str) -> bytes:
    try:
        return await store.read(data_path(shard, name))
    except NotFound:
        raise Corrupt(f"deletion vectors {name} of {shard} are gone") from None
