"""Completion messages: how each effect of `effects.py` ends, reported to the core.

Past tense; every one is a value, and one of `messages.requests.Message`.
"""

from collections.abc import Mapping
from dataclasses import field

from storage.fast_dataclass import fast_dataclass
from storage.live_files import LiveFile
from storage.shard import Fence, Version
from storage.types import ShardId, Timestamp, Token


@fast_dataclass(frozen=True, slots=True)
class CeilingPersisted:
    """Ends PersistCeiling."""

    ceiling: Timestamp


@fast_dataclass(frozen=True, slots=True)
class CeilingFailed:
    """Ends PersistCeiling: nothing was written; to be tried again after a while."""

    ceiling: Timestamp


@fast_dataclass(frozen=True, slots=True)
class GatherDue:
    """Ends DelayGather. `is_late`: it has taken long, so nobody is waited for any more."""

    is_late: bool


@fast_dataclass(frozen=True, slots=True)
class GroupCommitted:
    """Ends CommitGroup: durable."""

    token: Token


@fast_dataclass(frozen=True, slots=True)
class GroupPassed:
    """Ends CommitGroup: not written, the txns shard is at `upper`; commit again at a later
    timestamp.
    """

    token: Token
    upper: Timestamp


@fast_dataclass(frozen=True, slots=True)
class GroupFailed:
    """Ends CommitGroup: not written, e.g. disk full. `sqlstate` and `reason` are for the
    clients.
    """

    token: Token
    sqlstate: str
    reason: str


@fast_dataclass(frozen=True, slots=True)
class CutFlushed:
    """Ends FlushCut. A shard is in `versions` (durable in Delta) or in `failed` (why, for the
    log); in `fences` too, if its table cannot be written to any more.
    """

    cut: Timestamp
    versions: Mapping[ShardId, Version]
    failed: Mapping[ShardId, str]
    fences: Mapping[ShardId, Fence] = field(default_factory=dict[ShardId, Fence])


@fast_dataclass(frozen=True, slots=True)
class ShardDamaged:
    """Files of a table are gone, or are not what was written: somebody could not read them."""

    shard: ShardId


@fast_dataclass(frozen=True, slots=True)
class FilesRewritten:
    """Ends RewriteFiles. None: it has failed."""

    files: tuple[LiveFile, ...] | None


@fast_dataclass(frozen=True, slots=True)
class Vacuumed:
    """Ends VacuumShard. `unnamed`: files that nobody names and that are still there; None: it has
    failed.
    """

    unnamed: frozenset[str] | None


@fast_dataclass(frozen=True, slots=True)
class Forgotten:
    """Ends ForgetShards, done or not: what was not is tried again later."""

    done: bool


@fast_dataclass(frozen=True, slots=True)
class Tidied:
    """Ends Tidy, done or not: a cut that was not tidied is tidied with the next one."""

    cut: Timestamp
