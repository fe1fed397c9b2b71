"""The txns shard: the one place where a transaction becomes durable (DESIGN §3).

    commit_at(ts, token, {shard: batch}, registrations, catalog) ── one stash transaction ──▶ ack may go out
         batches/<ts>/<shard>   tokens/<token>   shards/<shard>   txns/upper   catalog records

INVARIANTS
  T1  everything below the applied cut has been applied; tidy removes nothing that is not.
  T2  a commit is one stash transaction for any number of shards; `upper` becomes ts + 1 for all shards.
  T3  a commit at ts < upper writes nothing and raises TimestampPassed.
  T4  a token is found if and only if its commit happened (until tidied, long after it was answered).

Collections: `txns` (upper, applied cut), `batches`, `tokens`, `shards`. Cost is in proportion to the data
and the shards touched, never to the number of tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from storage.batch import WriteBatch
from storage.errors import Determinate
from storage.stash import Stash, Write
from storage.types import Epoch, ShardId, Timestamp, Token


class TimestampPassed(Determinate):
    """The txns shard is already past the timestamp; nothing was written. `upper`: the least possible."""

    def __init__(self, upper: Timestamp) -> None:
        super().__init__(f"timestamp passed, upper is {upper}")
        self.upper = upper


@dataclass(frozen=True, slots=True)
class Commit:
    """One group commit: several transactions at one timestamp. `catalog` writes are opaque here."""

    ts: Timestamp
    token: Token
    batches: Mapping[ShardId, WriteBatch]
    registers: tuple[ShardId, ...] = ()
    forgets: tuple[ShardId, ...] = ()
    catalog: tuple[Write, ...] = ()


@dataclass(frozen=True, slots=True)
class Recovered:
    """What the txns shard holds at start: batches not tidied, in (ts, shard) order."""

    upper: Timestamp
    applied: Timestamp
    shards: Mapping[ShardId, Timestamp]
    batches: Sequence[tuple[Timestamp, ShardId, WriteBatch]] = field(default_factory=tuple)


class TxnsShard:
    """See the module. `load` first; then commits one at a time, tidies at any time."""

    def __init__(self, stash: Stash, epoch: Epoch) -> None:
        raise AssertionError("contract only")

    async def load(self) -> Recovered:
        """Read everything that start-up needs."""
        raise AssertionError("contract only")

    async def commit_at(self, commit: Commit) -> None:
        """Make the commit durable (T2). Raises TimestampPassed, Fenced, Determinate, Indeterminate."""
        raise AssertionError("contract only")

    async def find(self, token: Token) -> Timestamp | None:
        """The timestamp of the commit with this token, or None if it did not happen (T4)."""
        raise AssertionError("contract only")

    async def tidy(self, cut: Timestamp, *, keep: frozenset[ShardId] = frozenset()) -> None:
        """Forget batches and tokens with ts <= cut and note the cut as applied (T1).

        `keep`: shards that could not be flushed at this cut; their batches stay until a later tidy.
        """
        raise AssertionError("contract only")
