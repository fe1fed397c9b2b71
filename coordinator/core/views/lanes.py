"""Units of lanes: members whose commit carries deltas of views, from their taking to their end.

    taken ─▶ maintained in the background ─▶ ready ─▶ in a group ─▶ landed
                  └ late, failed: given up ─▶ ready, without deltas

INVARIANTS
  N1  a lane has at most one unit, from the step that takes it until its group has landed or its
      members are refused. Nobody else changes its tables meanwhile.
  N2  a unit holds what its members change, as a launched group does (K1 of `locking`); leases wait
      for it (L3 of `leases.py`).
  N3  an answer counts only for the attempt that waits for it. Who answers late counts as busy until
      then, and busy workers are few: beyond, units are given up at once.
  N4  a unit waits for its deltas at most `view_budget_us`, and for nothing else.

Not here: who is taken, and what a group makes of a unit (`lane_gathering.py`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from coordinator.core.group_members import GroupMember, PendingAttach
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import CatalogChange, LeaveView, LeftBecause
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.short_writes.by_key import WriteAnswer
from coordinator.core.sources.batches import PendingBatch
from coordinator.core.transactions import Transaction
from coordinator.core.views.deltas import (
    PutViewProgram,
    ViewCounts,
    ViewDelta,
    ViewProgram,
    ViewsMaintained,
)
from coordinator.core.views.lane_map import Lane, LaneMap
from sql.catalog.catalog import Catalog
from storage.batch import Deletes, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

BUSY_MAX: Final = 2
"""Late workers beside which views are still maintained. Larger: the engine has more to do that
nobody waits for. Smaller: a view falls behind because another one is slow."""


_NEVER: Final = Timestamp(0)


@dataclass(frozen=True, slots=True)
class EvaluatedUnit:
    """What the members of a unit write together, validated when they were taken.

    `seen`: the last write of each shard of the lane, as they were evaluated and views are
    maintained.
    """

    members: tuple[GroupMember, ...]
    batches: Mapping[ShardId, WriteBatch]
    entries: Mapping[ShardId, Sequence[CommittedWrites]]
    notifying: tuple[Transaction, ...]
    answers: Mapping[RequestId, WriteAnswer]
    fed: tuple[PendingBatch, ...]
    seen: Mapping[ShardId, Timestamp]


@dataclass(slots=True)
class LaneUnit:
    """See the module. `deltas`: None as long as somebody waits for them."""

    number: int
    lane: Lane
    work: EvaluatedUnit
    tries: int = 0
    """Validations that it has lost."""
    attempt: int = 0
    deadline: Timestamp = _NEVER
    deltas: Mapping[int, ViewDelta] | None = None
    given_up: LeftBecause = LeftBecause.GIVEN_UP
    """Why there is no delta of a view, if there is none."""
    followed: Mapping[int, int] = field(default_factory=dict[int, int])
    """By view, how many rows its delta brings and takes, of those that went into the group."""

    @property
    def txn(self) -> TransactionId:
        """By which it holds locks and a timestamp: no transaction's."""
        return TransactionId(-self.number)

    @property
    def attach(self) -> PendingAttach | None:
        """The view that it attaches (N9 of `lane_gathering.py`)."""
        return next((m for m in self.work.members if isinstance(m, PendingAttach)), None)

    @property
    def sessions(self) -> Iterable[ConnectionId]:
        """Whose its members are."""
        return (member.owner for member in self.work.members)

    def tables(self) -> frozenset[int]:
        """The oids of the tables that its members write rows to."""
        return frozenset(oid for member in self.work.members for oid in member.tables())

    def table_modes(self, oid: int) -> Sequence[LockMode]:
        """The modes in which it holds a table."""
        return [LockMode.ROW_EXCLUSIVE] if oid in self.tables() else []

    def deletes(self, state: ShardState) -> Deletes:
        """What it deletes of a shard, by the names that the rows have now."""
        batch = self.work.batches.get(state.shard)
        return {} if batch is None else state.surviving(batch.deletes)


@dataclass(slots=True)
class Lanes:
    """All units that have not landed, but for those in a group."""

    rows_max: int = 10_000
    """Rows of inputs that a unit may change."""
    waiting: dict[int, LaneUnit] = field(default_factory=dict[int, LaneUnit])
    """By attempt, those whose views are being maintained."""
    ready: list[LaneUnit] = field(default_factory=list[LaneUnit])
    over: set[TransactionId] = field(default_factory=set[TransactionId])
    """Of units that are none any more: what they hold is released when a group lands."""
    late: set[int] = field(default_factory=set[int])
    """Attempts that nobody waits for, and that are not answered (N3)."""
    programs: dict[tuple[int, int], ViewProgram] = field(
        default_factory=dict[tuple[int, int], ViewProgram]
    )
    counts: dict[int, ViewCounts] = field(default_factory=dict[int, ViewCounts])
    attempts: int = 0
    _units: int = 0
    _map: LaneMap | None = None
    _mapped: Catalog | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is no unit."""
        return not (self.waiting or self.ready)

    def units(self) -> Iterable[LaneUnit]:
        """All of them."""
        return (*self.waiting.values(), *self.ready)

    def __len__(self) -> int:
        return sum(len(unit.work.members) for unit in self.units())

    def map_of(self, catalog: Catalog) -> LaneMap:
        """The lanes of a catalog; the last one's are remembered."""
        if self._map is None or self._mapped is not catalog:
            exact = catalog.exact_views
            for oid, at in list(self.programs):
                if oid in exact and at < exact[oid].computed_at:
                    del self.programs[oid, at]
            self._map, self._mapped = LaneMap(catalog, self.programs), catalog
        return self._map

    def put_program(self, message: PutViewProgram) -> None:
        """How a view is maintained."""
        self.programs[message.oid, message.computed_at] = message.program
        self._map = None

    def new_unit(self, lane: Lane, work: EvaluatedUnit) -> LaneUnit:
        """A unit that was just taken (N1)."""
        self._units += 1
        return LaneUnit(self._units, lane, work)

    @property
    def has_workers(self) -> bool:
        """Whether somebody is free to maintain views (N3)."""
        return len(self.late) < BUSY_MAX

    def is_maintaining(self, tables: Collection[int]) -> bool:
        """Whether views over one of these tables are being maintained, and no unit is ready: who
        writes to it waits until something else happens.
        """
        busy = (unit.lane.tables for unit in self.waiting.values())
        return not self.ready and any(not lane.isdisjoint(tables) for lane in busy)

    def begin(self, unit: LaneUnit, deadline: Timestamp) -> int:
        """Its views are about to be maintained; the attempt."""
        self.attempts += 1
        unit.attempt, unit.deadline, unit.deltas = self.attempts, deadline, None
        unit.given_up = LeftBecause.GIVEN_UP
        self.waiting[unit.attempt] = unit
        return unit.attempt

    def answered(self, message: ViewsMaintained) -> None:
        """Deltas have come, perhaps too late (N3)."""
        self.late.discard(message.attempt)
        unit = self.waiting.pop(message.attempt, None)
        if unit is not None:
            unit.deltas = message.deltas
            self.ready.append(unit)

    def give_up_overdue(self, now: Timestamp) -> bool:
        """Units that have waited long enough go without deltas (N4); whether there were any."""
        overdue = [unit for unit in self.waiting.values() if now >= unit.deadline]
        for unit in overdue:
            del self.waiting[unit.attempt]
            self.late.add(unit.attempt)
            unit.deltas, unit.given_up = {}, LeftBecause.LATE
            self.ready.append(unit)
        return bool(overdue)

    def put_back(self, units: Collection[LaneUnit]) -> None:
        """They were not written, and go again as they are."""
        self.ready = [*units, *self.ready]

    def landed(
        self, units: Iterable[LaneUnit], changes: Iterable[CatalogChange], catalog: Catalog
    ) -> None:
        """A group is durable: count what it has done to views. `catalog`: before it."""
        for unit in units:
            for oid, rows in unit.followed.items():
                self.counts.setdefault(oid, ViewCounts()).follow(rows)
        for change in changes:
            if isinstance(change, LeaveView) and change.because is not None:
                exact = catalog.exact_views.get(change.oid)
                because = change.because
                if exact is not None and (change.oid, exact.computed_at) not in self.programs:
                    because = LeftBecause.NO_PROGRAM
                self.counts.setdefault(change.oid, ViewCounts()).leave(because)
