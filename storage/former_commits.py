"""Commits as stashes of format 1 have them; `upgrade.py` makes a record of each (`outstanding.py`).

batches/<ts>/<shard>, tokens/<token>: ts, batches left ── former_records ──▶ commits/<ts>
"""

import struct
from collections.abc import Mapping
from typing import Final

from storage.errors import Corrupt
from storage.outstanding import commit_key, encode_stored_commit
from storage.types import ShardId, Timestamp, Token

BATCHES: Final = "batches"
TOKENS: Final = "tokens"

# A token's value: the commit's timestamp, and how many of its batches are left.
_OUTCOME = struct.Struct(">qI")


def former_records(
    tokens: Mapping[str, bytes], batches: Mapping[str, bytes], upper: Timestamp | None
) -> dict[str, bytes]:
    """The records of these commits. Raises Corrupt if batches and tokens disagree."""
    found: dict[Timestamp, dict[ShardId, bytes]] = {}
    for key, value in batches.items():
        ts, shard = _parse_batch_key(key)
        found.setdefault(ts, {})[shard] = value
    records: dict[str, bytes] = {}
    for token, value in tokens.items():
        ts, count = _decode_outcome(token, value)
        own = found.pop(ts, {})
        if len(own) != count:
            raise Corrupt(f"commit {token} at {ts} has {len(own)} batches instead of {count}")
        if upper is None or ts >= upper:
            raise Corrupt(f"commit {token} at {ts} is not below upper {upper}")
        records[commit_key(ts)] = encode_stored_commit(Token(token), own)
    if found:
        raise Corrupt(f"batches at {min(found)} belong to no commit")
    return records


def _parse_batch_key(key: str) -> tuple[Timestamp, ShardId]:
    ts, slash, shard = key.partition("/")
    if not slash or not ts.isdecimal():
        raise Corrupt(f"batches/{key} is not a batch")
    return Timestamp(int(ts)), ShardId(shard)


def _decode_outcome(token: str, value: bytes) -> tuple[Timestamp, int]:
    if len(value) != _OUTCOME.size:
        raise Corrupt(f"tokens/{token} is not an outcome: {value.hex()}")
    ts, count = _OUTCOME.unpack(value)
    return Timestamp(ts), count
