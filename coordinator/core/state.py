"""The state of a core: all its parts, put together once, changed only inside `core.step`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.subscriptions import Subscriptions
from coordinator.core.cut_schedule import CutSchedule, floor_to
from coordinator.core.effects import Reply
from coordinator.core.group_commit import GroupCommit
from coordinator.core.leases import WriteLeases
from coordinator.core.locking.lock_table import LockTable
from coordinator.core.locking.wait_graph import WaitGraph
from coordinator.core.maintenance import Maintenance
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.notifications.queue import NotificationQueue
from coordinator.core.oracle import Oracle
from coordinator.core.read_holds import NIL, ReadHolds
from coordinator.core.settings import CoreSettings
from coordinator.core.snapshots import Snapshots
from coordinator.core.sources.records import Leftover, SourceRecord
from coordinator.core.sources.running import RunningSources
from coordinator.core.transactions import Transaction
from sql.catalog.acl import FIRST_OID
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Table, Timeline
from storage.shard import TICKS_PER_MS, ShardState
from storage.types import Epoch, ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class RecoveredState:
    """What start-up found: the catalog's history and every shard up to its last commit."""

    epoch: Epoch
    ceiling: Timestamp
    applied: Timestamp
    catalog: VersionedCatalog
    shards: Mapping[ShardId, ShardState]
    next_oid: int = FIRST_OID
    timeline: Timeline = SYSTEM_TIMELINE
    registered: frozenset[ShardId] | None = None
    """Shards that the txns shard knows; None: all of `shards`."""
    dropped: Mapping[ShardId, Timestamp] = field(default_factory=dict[ShardId, Timestamp])
    """Shards that have no table any more, since when, until they are forgotten."""
    beginning: Timestamp = NIL
    """From when on the catalog is known."""
    sources: Mapping[int, SourceRecord] = field(default_factory=dict[int, SourceRecord])
    leftovers: tuple[Leftover, ...] = ()
    """How far each source is read, by its oid."""


class CoreState:
    """The parts, as the modules of the core share them (R1 of `core/core.py`)."""

    def __init__(
        self,
        recovered: RecoveredState,
        settings: CoreSettings,
        schema_of: Callable[[Table], pa.Schema],
        now: Timestamp,
        waits: WaitGraph,
        notifications: NotificationQueue,
    ) -> None:
        self.settings = settings
        self.notifications = notifications
        self.schema_of = schema_of
        self.epoch = recovered.epoch
        self.timeline = recovered.timeline
        self.unit = 1 if recovered.timeline.manual else TICKS_PER_MS
        self.next_oid = recovered.next_oid
        self.commits = 0
        self.shards = dict(recovered.shards)
        self.catalog = recovered.catalog
        self.oracle = Oracle(
            ceiling=recovered.ceiling,
            step_us=settings.ceiling_step_us,
            clockless=recovered.timeline.manual,
        )
        self.holds = ReadHolds(
            self.catalog.current,
            frontier=self.oracle.read_ts(),
            history_us=settings.history_us,
            timeline=recovered.timeline.name,
            beginning=recovered.beginning,
        )
        known = recovered.registered
        self.registered = set(recovered.shards if known is None else known)
        self.groups = _groups(settings)
        self.snapshots = Snapshots(
            recovered.timeline,
            settings,
            self.oracle,
            self.holds,
            self.groups,
            self.catalog_at,
        )
        self.subscriptions = Subscriptions(
            self.shards, self.holds, self.oracle.read_ts, schema_of, self.catalog, settings
        )
        runs = recovered.timeline == SYSTEM_TIMELINE
        self.sources = RunningSources(recovered.sources, recovered.leftovers, runs=runs)
        self.leases = WriteLeases()
        self.locks = LockTable(waits)
        # Who has left while a commit was on its way holds the session's locks until that is over.
        self.leaving: set[ConnectionId] = set()
        self.cutting = CutSchedule(settings, _last_cut(recovered, self.unit), self.unit)
        self.transactions: dict[TransactionId, Transaction] = {}
        self.maintenance = Maintenance(
            settings,
            self.shards,
            self.transactions,
            self.cutting,
            self.oracle.read_ts,
            self.advance_since,
            self.holds.since_of,
            lambda: self.next_oid,
            self.sources.stagings,
            recovered.dropped,
        )
        # What these hold in the txns shard stays there: Delta will not have it.
        self.fenced: set[ShardId] = set()
        self.stopping: RequestId | None = None
        self.stopped = False
        self._recover_dirty(now)

    def _recover_dirty(self, now: Timestamp) -> None:
        for shard, state in self.shards.items():
            if state.versions and not state.versions[0].begins_table:
                self.holds.begin_at(shard, state.versions[0].cut)
            if state.fenced:
                self.fenced.add(shard)
            elif state.tail or not state.versions or (state.dirty and not self.timeline.manual):
                self.cutting.wrote(shard, state, added=state.tail_bytes, now=now)

    def catalog_at(self, ts: Timestamp) -> Catalog:
        """The catalog true at a timestamp."""
        return self.catalog.at(ts)

    def advance_since(self, now: Timestamp) -> Timestamp:
        """Move every since as far as it may; the timeline's."""
        # An idle timeline is readable up to now, and its history grows old all the same.
        present = self.oracle.read_ts()
        frontier = present if self.timeline.manual else max(present, now)
        return self.holds.advance(frontier, present=present)


def _groups(settings: CoreSettings) -> GroupCommit:
    return GroupCommit(
        group_max=settings.group_max,
        waits=settings.commit_delay,
        bytes_max=settings.group_bytes_max,
        view_rows_max=settings.view_delta_rows_max,
    )


def _last_cut(recovered: RecoveredState, unit: int) -> Timestamp:
    """No cut before was later: a shard may have been flushed at one that was never tidied."""
    flushed = (state.cut for state in recovered.shards.values() if state.cut is not None)
    return max((floor_to(recovered.applied, unit), *flushed))


def refuse(request: RequestId, sqlstate: str, message: str, detail: str | None = None) -> Reply:
    """An answer that says no, for another reason than a conflict."""
    return Reply(request, Refused(RefusedReason.OTHER, sqlstate, message, detail))
