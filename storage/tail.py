"""The tail of a shard: its commits that no version of the Delta table holds yet.

Not here: what a shard shows (`shard.py`), how views are made of commits (`shard_view.py`,
`grown_view.py`).
"""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Final, Protocol, TypeAlias

from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, InlineSlice, ShardView, WriteBatch, bytes_of
from storage.fast_dataclass import fast_dataclass
from storage.grown_view import CannotGrowError, ViewGrower
from storage.row_versions import single_origin
from storage.types import FIRST_TIMESTAMP, Timestamp, inline_source
from storage.unencoded_rows import SliceRows

COMMIT_OVERHEAD_BYTES: Final = 2_048
"""What a one-row Arrow table and its objects cost in memory beside the values: without it, a tail
of tiny commits would be bounded far too late."""


@fast_dataclass(frozen=True, slots=True)
class Committed:
    """One commit in the tail. `inline` is the slice of its inline rows, if it has any. `first_id`:
    of its rows (W1 of `row_versions.py`). `named_at`: versions from this cut on tell where the rows
    are that it deletes, by the names that it became durable with (V8 of `shard.py`).
    """

    ts: Timestamp
    batch: WriteBatch
    first_id: int = 0
    named_at: Timestamp = FIRST_TIMESTAMP
    inline: InlineSlice | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        rows = self.batch.rows
        part = None if rows is None or not rows.num_rows else _slice(self.ts, rows, self.first_id)
        object.__setattr__(self, "inline", part)


def _slice(ts: Timestamp, rows: SliceRows, first_id: int) -> InlineSlice:
    return InlineSlice(inline_source(ts), rows, BitMap64(), first_id)


Tail: TypeAlias = tuple[Committed, ...]


def numbered_batch(ts: Timestamp, batch: WriteBatch, first_id: int) -> WriteBatch:
    """A batch that is committed at `ts`: its files know what their rows are (W1)."""
    if not batch.staged:
        return batch
    next_id = first_id + batch.new_rows - sum([file.rows for file in batch.staged])
    files: list[DataFile] = []
    for file in batch.staged:
        files.append(replace(file, origins=single_origin(ts, next_id)))
        next_id += file.rows
    return replace(batch, staged=tuple(files))


class _Layers(Protocol):
    """What a commit is added to."""

    def add_inline(self, part: InlineSlice) -> None: ...
    def add_file(self, file: DataFile, row_limit: int) -> None: ...
    def delete(self, deletes: Deletes) -> None: ...


def add_commit(builder: _Layers, commit: Committed) -> None:
    """Put a commit on top of those before it."""
    if commit.inline is not None:
        builder.add_inline(commit.inline)
    for file in commit.batch.staged:
        builder.add_file(file, file.rows)
    if commit.batch.deletes:
        builder.delete(commit.batch.deletes)


def grown_view(view: ShardView, commits: Sequence[Committed]) -> ShardView | None:
    """A view and the commits after it; None: it must be made anew (G3 of `grown_view.py`)."""
    grower = ViewGrower(view)
    try:
        for commit in commits:
            add_commit(grower, commit)
    except CannotGrowError:
        return None
    return grower.view()


def commit_ts(commit: Committed) -> Timestamp:
    """When it was committed, as a key of bisection."""
    return commit.ts


def memory_bytes(batch: WriteBatch) -> int:
    """About what a commit takes in memory."""
    rows = 0 if batch.rows is None else bytes_of(batch.rows)
    return rows + COMMIT_OVERHEAD_BYTES * (1 + len(batch.deletes) + len(batch.staged))
