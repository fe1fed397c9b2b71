"""Summarise a commit's writes, to compare a log with the commits that it should hold.

One entry for each commit and kind: (ts, number of inline rows), (ts, name of a staged file),
(ts, DELETED).
"""

from typing import Final, TypeAlias

from storage.batch import WriteBatch
from storage.shard import Version
from storage.types import Source, Timestamp

DELETED: Final = -1

Write: TypeAlias = tuple[Timestamp, int | Source]


def version_writes(version: Version) -> set[Write]:
    """What came with a version."""
    writes: set[Write] = {(ts, DELETED) for ts, _ in version.deletes}
    for name in version.added:
        live = version.files[name]
        if live.staged:
            writes.add((live.runs[0].ts, name))
        else:
            ends = [*live.runs.first_rows[1:], live.file.rows]
            writes |= {(r.ts, end - r.first_row) for r, end in zip(live.runs, ends, strict=True)}
    return writes


def batch_writes(ts: Timestamp, batch: WriteBatch) -> set[Write]:
    """What was committed at `ts`."""
    writes: set[Write] = {(ts, file.name) for file in batch.staged}
    if batch.rows is not None and batch.rows.num_rows:
        writes.add((ts, batch.rows.num_rows))
    if any(batch.deletes.values()):
        writes.add((ts, DELETED))
    return writes
