"""A shard in memory: its Delta versions, and the tail of commits that no version holds yet.

    ts ──────┬───────────┬────────────┬──── ● ── ● ─── ● ──▶
          version 0   version 1   version 2   └── tail ──┘
            (cut)       (cut)       (cut)      commits after the newest cut

INVARIANTS
  V1  `view(t)` shows exactly the writes with commit timestamp <= t, at every t in [since, upper),
      also between two cuts: base = newest version with cut <= t; then the rows of the next version's
      files up to t (rows lie in commit order, `runs` says where each timestamp begins), the deletes up
      to t, and the tail.
  V2  a delete may name `@ts` rows that have been flushed since: it is resolved through `runs`.
  V3  a ShardState is a value: `committed`, `flushed`, `pruned` return new ones that share structure.

Not here: writing files and logs (`delta/`), deciding when to flush (the coordinator).
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, ShardView, WriteBatch
from storage.types import ShardId, Source, Timestamp


@dataclass(frozen=True, slots=True)
class Run:
    """Rows [first_row, next run's first_row) of a file were committed at `ts`."""

    ts: Timestamp
    first_row: int


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file as one version has it: the file, all its deleted rows so far, its runs in row order."""

    file: DataFile
    deleted: BitMap64
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """A Delta version: all writes up to `cut`. `deletes` are those of (previous cut, cut], by time."""

    number: int
    cut: Timestamp
    files: "dict[Source, LiveFile]"
    deletes: tuple[tuple[Timestamp, Deletes], ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """One commit in the tail."""

    ts: Timestamp
    batch: WriteBatch


Tail: TypeAlias = tuple[Committed, ...]


@dataclass(frozen=True, slots=True)
class ShardState:
    """See the module. `versions` ascend by cut; an empty tuple: no Delta table exists yet."""

    shard: ShardId
    schema: pa.Schema
    created: Timestamp
    versions: tuple[Version, ...] = ()
    tail: Tail = ()
    tail_bytes: int = 0
    last_write: Timestamp = field(default=Timestamp(0))

    def committed(self, ts: Timestamp, batch: WriteBatch) -> "ShardState":
        """This state after a commit at `ts`, which must be greater than every one before."""
        raise AssertionError("contract only")

    def flushed(self, version: Version) -> "ShardState":
        """This state after `version` became durable: the tail up to its cut is gone."""
        raise AssertionError("contract only")

    def pruned(self, since: Timestamp) -> "ShardState":
        """This state without the versions that no `view(t >= since)` needs."""
        raise AssertionError("contract only")

    def view(self, as_of: Timestamp, own: WriteBatch | None = None) -> ShardView:
        """The shard at `as_of`, with a transaction's own writes on top (V1)."""
        raise AssertionError("contract only")
