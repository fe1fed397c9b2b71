"""One group commit, as the core hands it to the txns shard to become durable at once."""

from collections.abc import Mapping

from storage.batch import WriteBatch
from storage.fast_dataclass import fast_dataclass
from storage.stash import Write
from storage.types import ShardId, Timestamp, Token


@fast_dataclass(frozen=True, slots=True)
class Commit:
    """One group commit: several transactions at one timestamp. `records`: what the
    coordinator writes with it, opaque here.
    """

    ts: Timestamp
    token: Token
    batches: Mapping[ShardId, WriteBatch]
    registers: tuple[ShardId, ...] = ()
    records: tuple[Write, ...] = ()
