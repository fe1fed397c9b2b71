"""Effects that the core requests; the driver runs them in order, and each says how it ends.

Effects that make something durable come before effects that report it to anyone.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from coordinator.core.change_streams.steps import SubscriptionId
from coordinator.core.messages.catalog_changes import CatalogChange
from coordinator.core.messages.identities import ConnectionId, RequestId
from coordinator.core.messages.replies import ReplyValue
from coordinator.core.sources.effects import SourceEffect
from coordinator.core.transactions import StagedFiles
from coordinator.core.views.deltas import MaintainViews
from sql.catalog.catalog import Catalog
from storage.commit import Commit
from storage.delta.compaction_plan import CompactionLimits
from storage.delta.vacuum_plan import Vacuuming
from storage.fast_dataclass import fast_dataclass
from storage.live_files import LiveFile
from storage.shard import ShardState
from storage.types import ShardId, Timestamp, Token


@fast_dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request. Ends here."""

    request: RequestId
    value: ReplyValue


@fast_dataclass(frozen=True, slots=True)
class PersistCeiling:
    """Write the oracle's ceiling durably. Ends in CeilingPersisted or CeilingFailed."""

    ceiling: Timestamp


@fast_dataclass(frozen=True, slots=True)
class CommitGroup:
    """`commit_at` into the txns shard. Ends in GroupCommitted, GroupPassed or GroupFailed.

    An unknown outcome is resolved by the token before anything is said.
    """

    commit: Commit


@fast_dataclass(frozen=True, slots=True)
class DelayGather:
    """Look who else commits (`commit_delay.py`). Ends in GatherDue. `until_heard`: once anybody has
    said anything.
    """

    until_heard: bool = False


@fast_dataclass(frozen=True, slots=True)
class ConfirmGroup:
    """Confirm that this coordinator leads, for a group that has nothing to make durable (G6 of
    `group_commit.py`). Ends in GroupCommitted or GroupFailed.
    """

    token: Token


@fast_dataclass(frozen=True, slots=True)
class WakeListeners:
    """Tell sessions that there is something for them to hear. Ends here; who is idle takes it by
    TakeNotifications.
    """

    owners: tuple[ConnectionId, ...]


@fast_dataclass(frozen=True, slots=True)
class WakeSubscribers:
    """Tell subscriptions that there is something for them to take. Ends here; each asks by
    TakeStep.
    """

    subscriptions: tuple[SubscriptionId, ...]


@fast_dataclass(frozen=True, slots=True)
class StopSubscribers:
    """Tell subscriptions that they are over, whatever they do: who sends rows stops. Ends here."""

    subscriptions: tuple[SubscriptionId, ...]


@fast_dataclass(frozen=True, slots=True)
class WakeViewCatchUp:
    """Tell catch-up that definitions or exact intervals of views have changed. Ends here; it looks
    at the newest catalog, and attaches by a commit like any other.
    """


@fast_dataclass(frozen=True, slots=True)
class FlushCut:
    """Write each shard's tail up to the cut as one Delta version. Ends in CutFlushed.

    `rewritten`: files of a compaction that a shard's version takes along.
    """

    cut: Timestamp
    states: tuple[ShardState, ...]
    rewritten: Mapping[ShardId, tuple[LiveFile, ...]] = field(
        default_factory=dict[ShardId, tuple[LiveFile, ...]]
    )


@fast_dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Write the live rows of some files into new ones, durably. Ends in FilesRewritten."""

    state: ShardState
    sources: tuple[LiveFile, ...]
    limits: CompactionLimits


@fast_dataclass(frozen=True, slots=True)
class VacuumShard:
    """Delete files of a shard that nobody can read any more. Ends in Vacuumed."""

    vacuuming: Vacuuming


@fast_dataclass(frozen=True, slots=True)
class Tidy:
    """Drop the batches up to `cut` from the txns shard: all shards have them. Ends in Tidied.

    `flushed`: the cut that each shard's log has newly reached.
    """

    cut: Timestamp
    flushed: Mapping[ShardId, Timestamp]


@fast_dataclass(frozen=True, slots=True)
class ForgetShards:
    """Forget dropped shards in the txns shard, durably, then delete their files. Ends in Forgotten.

    The catalog's history up to `catalog_since` is compacted in the same transaction, where the
    timeline keeps one; `next_oid` stays known without it.
    """

    shards: frozenset[ShardId]
    catalog_since: Timestamp
    next_oid: int


@fast_dataclass(frozen=True, slots=True)
class PublishCatalog:
    """Tell the cores of all other timelines of DDL, before anybody hears that it is committed."""

    changes: tuple[CatalogChange, ...]
    catalog: Catalog


@fast_dataclass(frozen=True, slots=True)
class RemoveStaged:
    """Delete staged files that no commit names or ever will. Ends here, done or not: what is left
    over is an orphan.
    """

    files: StagedFiles


Effect: TypeAlias = (
    PublishCatalog
    | Reply
    | PersistCeiling
    | DelayGather
    | CommitGroup
    | ConfirmGroup
    | WakeListeners
    | WakeSubscribers
    | StopSubscribers
    | WakeViewCatchUp
    | FlushCut
    | Tidy
    | RemoveStaged
    | RewriteFiles
    | VacuumShard
    | ForgetShards
    | SourceEffect
    | MaintainViews
)
