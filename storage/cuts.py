"""Cuts: flush every dirty shard at one shared timestamp (DESIGN §3, shared cuts).

INVARIANTS
  C1  a cut lies on a millisecond; it is the in-commit timestamp of every Delta version written at it.
  C2  a flush is idempotent: the version carries `txn(appId = shard, version = cut)`. After a crash the
      log says which cut a shard has reached; the same batches are not written again.
  C3  `flush` returns only after data files, deletion vectors, log file and directories are durable.
"""

from storage.object_store import ObjectStore
from storage.shard import ShardState, Version
from storage.types import Timestamp


async def flush(store: ObjectStore, state: ShardState, cut: Timestamp) -> Version:
    """Write the tail of `state` up to `cut` (and the table itself, if new) as one Delta version.

    Raises ForeignWriter, Determinate, Indeterminate. Must not be called twice at once for a shard.
    """
    raise AssertionError("contract only")
