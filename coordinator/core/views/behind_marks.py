"""Tell foreign readers since when a view is behind: marks of its shard (`storage/view_marks.py`).

    AttachView, LeaveView, PutTable ─▶ mark of the shard ─▶ the next cut tells it in the Delta log

Functions over changes of the catalog that are committed. A start makes the marks again from the
history of the catalog (M2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    PutTable,
    RemoveTable,
)
from coordinator.core.state import CoreState
from sql.catalog.catalog import Table
from storage.types import ShardId, Timestamp
from storage.view_marks import BehindMark, add_mark


def mark_views(core: CoreState, changes: Iterable[object], ts: Timestamp, now: Timestamp) -> None:
    """A commit has changed these, and the catalog with them."""
    catalog = core.catalog.current
    oids = {oid for change in changes for oid in _views_of(change)}
    for oid in sorted(oids):
        table = catalog.by_oid(oid)
        state = None if table is None else core.shards.get(ShardId(table.shard))
        if table is None or state is None:
            continue
        behind = _follows(table) and oid not in catalog.exact_views
        marks = add_mark(state.marks, ts, behind=behind, kept=state.cut)
        if marks is not state.marks:
            state = core.shards[state.shard] = replace(state, marks=marks)
            core.cutting.wrote(state.shard, state, added=0, now=now)


def marks_of_history(
    history: Sequence[tuple[Timestamp, Sequence[CatalogChange]]],
) -> Mapping[ShardId, tuple[BehindMark, ...]]:
    """The marks of all materialized views that the history of a catalog knows."""
    found: dict[ShardId, tuple[BehindMark, ...]] = {}
    tables: dict[int, Table] = {}
    exact = set[int]()
    for ts, changes in history:
        touched = set[int]()
        for change in changes:
            touched.update(_views_of(change))
            match change:
                case PutTable(table=table) if table.query is not None:
                    tables[table.oid] = table
                case RemoveTable(table=table):
                    tables.pop(table.oid, None)
                    exact.discard(table.oid)
                case AttachView(oid=oid):
                    exact.add(oid)
                case LeaveView(oid=oid):
                    exact.discard(oid)
                case _:
                    pass
        for oid in touched & tables.keys():
            table = tables[oid]
            if not _follows(table):
                exact.discard(oid)
            shard, behind = ShardId(table.shard), _follows(table) and oid not in exact
            before = found.get(shard) or (BehindMark(ts, None),)
            found[shard] = add_mark(before, ts, behind=behind, kept=None)
    return found


def _follows(table: Table) -> bool:
    return table.query is not None and table.query.on_commit


def _views_of(change: object) -> Iterable[int]:
    match change:
        case AttachView(oid=oid) | LeaveView(oid=oid):
            return (oid,)
        case PutTable(table=table) if table.query is not None:
            return (table.oid,)
        case _:
            return ()
