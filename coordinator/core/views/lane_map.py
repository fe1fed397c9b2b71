"""Lanes: the exact views that have programs, connected by the inputs that they share.

    v1: a, b ─┐
    v2: b, c ─┴─ one lane: a, b, c          v3: d ─── another lane: d

Functions over a catalog; the invariants are those of the package.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from coordinator.core.group_members import GroupMember, PendingCommit, changed_tables
from coordinator.core.messages.catalog_changes import AttachView
from coordinator.core.views.deltas import MaintainedView, ViewPrograms
from sql.catalog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Lane:
    """Views that are maintained together. `tables`: their inputs, and they themselves, by oid."""

    views: tuple[MaintainedView, ...]
    inputs: frozenset[int]
    tables: frozenset[int]

    @classmethod
    def of(cls, views: Iterable[MaintainedView]) -> "Lane":
        """The lane of some views."""
        views = tuple(views)
        inputs = frozenset[int]().union(*(view.exact.inputs for view in views))
        return cls(views, inputs, inputs | {view.oid for view in views})


class LaneMap:
    """All lanes of one catalog."""

    def __init__(self, catalog: Catalog, programs: ViewPrograms) -> None:
        self.lanes: tuple[Lane, ...] = tuple(_lanes(_maintained(catalog, programs)))
        self._by_table = {oid: lane for lane in self.lanes for oid in lane.tables}

    def touching(self, oids: Iterable[int]) -> Sequence[Lane]:
        """The lanes with one of these tables, each once."""
        found = {id(lane): lane for oid in oids if (lane := self._by_table.get(oid)) is not None}
        return list(found.values())


def _maintained(catalog: Catalog, programs: ViewPrograms) -> Iterable[MaintainedView]:
    for oid, exact in catalog.exact_views.items():
        table = catalog.named_tables.by_oid.get(oid)
        if table is None or not exact.inputs:
            continue
        program = programs.get((oid, exact.computed_at))
        if program is not None:
            yield MaintainedView(table, exact, program)


def _lanes(views: Iterable[MaintainedView]) -> Iterable[Lane]:
    found: list[Lane] = []
    for view in views:
        near = [lane for lane in found if not lane.inputs.isdisjoint(view.exact.inputs)]
        apart = [lane for lane in found if lane.inputs.isdisjoint(view.exact.inputs)]
        joined = [known for lane in near for known in lane.views]
        found = [*apart, Lane.of([*joined, view])]
    return found


def joined_lane(lanes: Collection[Lane]) -> Lane:
    """Several lanes as one, for who writes inputs of all of them."""
    if len(lanes) == 1:
        return next(iter(lanes))
    return Lane.of(view for lane in lanes for view in lane.views)


def touched_tables(member: GroupMember) -> set[int]:
    """The tables that a member writes, defines otherwise, or attaches a view over; by oid."""
    found = set(member.tables())
    if isinstance(member, PendingCommit) and member.txn.changes:
        found.update(changed_tables(member.txn.changes))
        for change in member.txn.changes:
            if isinstance(change, AttachView):
                found |= change.view.inputs
                found.add(change.oid)
    return found
