"""Version checksums (`<version>.crc`), which save foreign readers a replay of the log.

    flush ─▶ log entry ──(later, nobody waits)──▶ <version>.crc: sizes, protocol, metadata, files

INVARIANTS
  E1  a checksum is made from the log itself, so it says what the log says; it is never overwritten.
  E2  it is for speed only: without it readers replay the log, and Meridian never reads one.
"""

import json
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from storage.delta.actions import CommitInfo
from storage.delta.checkpoint import LogState
from storage.delta.layout import checksum_path
from storage.delta.log import Json, encode_add, encode_metadata, encode_protocol, encode_txn
from storage.delta.maintenance import log_state
from storage.delta.recovery import read_commit
from storage.errors import AlreadyExists
from storage.object_store import ObjectStore
from storage.types import ShardId

FILES_MAX: Final = 50
"""Of a table whose files stand in its checksums; Delta's own limit."""

STATES_MAX: Final = 64
"""Tables whose state is remembered, so that the next version costs one read. Larger: more memory.
Tables beyond it get no checksum, nor do those with very many files."""

REMEMBERED_FILES_MAX: Final = 1_000


def encode_checksum(state: LogState, in_commit_timestamp: int) -> bytes:
    """The content of a `.crc` file."""
    assert state.protocol is not None, "version 0 has a protocol"
    assert state.metadata is not None, "version 0 has a metaData"
    vectors = [add.vector for add in state.adds.values() if add.vector is not None]
    fields: dict[str, Json] = {
        "tableSizeBytes": sum(add.size for add in state.adds.values()),
        "numFiles": len(state.adds),
        "numDeletedRecordsOpt": sum(vector.cardinality for vector in vectors),
        "numDeletionVectorsOpt": len(vectors),
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": in_commit_timestamp,
        "setTransactions": [
            encode_txn(txn) for txn in (state.txn, state.row_count) if txn is not None
        ],
        "domainMetadata": [],
        "metadata": encode_metadata(state.metadata),
        "protocol": encode_protocol(state.protocol),
    }
    if len(state.adds) <= FILES_MAX:
        fields["allFiles"] = [encode_add(add) for add in state.adds.values()]
    return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(slots=True)
class Checksums:
    """Writes checksums, and remembers the states of some tables between two versions."""

    _states: OrderedDict[ShardId, tuple[int, LogState]] = field(
        default_factory=OrderedDict[ShardId, tuple[int, LogState]]
    )

    async def write(self, store: ObjectStore, shard: ShardId, number: int) -> None:
        """Write the checksum of a durable version. Raises Corrupt, Determinate, Indeterminate."""
        known = self._states.pop(shard, None)
        actions = await read_commit(store, shard, number)
        if known is not None and known[0] == number - 1:
            state = known[1].after([actions])
        else:
            state = await log_state(store, shard, number)
        if len(state.adds) > REMEMBERED_FILES_MAX:
            return
        # The next version does not need the tombstones.
        state = replace(state, removes={})
        self._states[shard] = number, state
        if len(self._states) > STATES_MAX:
            self._states.popitem(last=False)
        info = actions[0]
        assert isinstance(info, CommitInfo), "L1: commitInfo comes first"
        content = encode_checksum(state, info.in_commit_timestamp)
        try:
            modified_ms = info.in_commit_timestamp
            await store.create(checksum_path(shard, number), content, modified_ms=modified_ms)
        except AlreadyExists:
            return
