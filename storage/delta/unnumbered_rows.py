"""Give ids to the rows of a log of before there were any (W5 of `row_versions.py`).

The newest version decides: a row that others may still ask for is in it. A flush writes the ids
down, so this is done at starts until the first one.
"""

from collections.abc import Mapping
from dataclasses import replace

from storage.live_files import FileMap
from storage.row_versions import FIRST_NEW_ID, PAST_IDS, RowIds
from storage.shard import ShardState, Version
from storage.types import Source


def with_row_ids(state: ShardState) -> ShardState:
    """The state with ids for all rows of files (W5); itself if they all have some."""
    if all(live.row_ids is not None for v in state.versions for live in v.files.live_files()):
        return state
    newest = state.versions[-1]
    known: dict[Source, RowIds] = {
        live.file.name: live.row_ids
        for version in state.versions
        for live in version.files.live_files()
        if live.row_ids is not None
    }
    _number(known, newest.files, 0)
    next_id = PAST_IDS
    for version in reversed(state.versions):
        next_id = _number(known, version.files, next_id)
    versions = tuple([_with_ids(version, known) for version in state.versions])
    first = FIRST_NEW_ID if newest.next_id is None else newest.next_id
    return replace(state, versions=versions, next_id=max(state.next_id, first))


def _number(known: dict[Source, RowIds], files: FileMap, next_id: int) -> int:
    """Give the files that are not known the ids from one on; the next id."""
    for name in sorted(files.keys() - known.keys()):
        known[name] = RowIds.from_first(next_id)
        next_id += files[name].file.rows
    return next_id


def _with_ids(version: Version, known: Mapping[Source, RowIds]) -> Version:
    changed = [
        replace(live, row_ids=known[live.file.name])
        for live in version.files.live_files()
        if live.row_ids is None
    ]
    return replace(version, files=version.files.changed(changed)) if changed else version
