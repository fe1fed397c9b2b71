"""Attach a materialized view whose rows a transaction has just computed (V6 of `core/views`)."""

from collections.abc import Collection

from coordinator.core.messages.catalog_changes import AttachView
from coordinator.core.transactions import VALIDATING
from coordinator.core.views.deltas import ComputedRows
from coordinator.execution.context import Execution, Services
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Table
from sql.catalog.objects import ExactView, ViewDefinition, relations_used_by
from sql.incremental.program import MaintenanceProgram
from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import scans
from storage.types import Timestamp


def attach_view(execution: Execution, table: Table, ts: Timestamp, query: Plan) -> bool:
    """Its stored rows are those of its query at `ts`; from the commit on it is exact, if that is
    validated, and commits maintain it. False: at this level nothing is, so the view stays behind.
    """
    transaction = execution.transaction
    assert table.query is not None, "V6: it is a materialized view"
    if not table.query.on_commit:
        return False
    view = exact_view(execution.catalog(), table, ts)
    if transaction.isolation not in VALIDATING:
        execution.computed = table.oid, view
        return False
    transaction.changed_catalog = transaction.wrote = True
    if _reads_tables(execution.catalog(), view.inputs, query):
        put_program(execution.services, table, view, query)
    change = AttachView(table.oid, view)
    execution.services.coordination.change_catalog(transaction.id, [change])
    return True


def note_computed(execution: Execution) -> None:
    """A single statement has committed rows of a view without an attach: catch-up goes on from
    there, by what has changed since.
    """
    committed = execution.transaction.commit_ts
    if execution.computed is None or committed is None:
        return
    oid, view = execution.computed
    rows = ComputedRows(view, max(Timestamp(view.computed_at), committed))
    execution.services.catch_up.upkeep_of(oid).computed = rows


def exact_view(catalog: Catalog, table: Table, ts: Timestamp) -> ExactView:
    """How a view is exact whose rows are those of its query at `ts`."""
    return ExactView(*_relations_below(catalog, table), ts)


def _reads_tables(catalog: Catalog, inputs: Collection[int], query: Plan) -> bool:
    """Whether a query reads nothing but the inputs; if it reads stored rows of views, catch-up
    derives the program from those views' queries.
    """
    found = (catalog.by_oid(oid) for oid in inputs)
    shards = {RelationId(table.shard) for table in found if table is not None}
    return all(scan.relation in shards for scan in scans(query))


def put_program(services: Services, table: Table, exact: ExactView, query: Plan) -> None:
    """Tell the core how commits maintain a view as long as it is exact so. `query`: in the types
    of the view's columns.
    """
    upkeep = services.catch_up.upkeep_of(table.oid)
    upkeep.computed_at, upkeep.strategy, upkeep.reason = exact.computed_at, None, None
    if table.timeline != SYSTEM_TIMELINE.name:
        upkeep.reason = "its tables are in another timeline"
        return
    program = upkeep.program_for(query)
    upkeep.reason = program.reason
    if isinstance(program, MaintenanceProgram):
        upkeep.strategy = program.strategy.value
        services.coordination.followed_views.put_program(table.oid, exact.computed_at, program)


def _relations_below(catalog: Catalog, table: Table) -> tuple[frozenset[int], frozenset[int]]:
    """The tables that a view reads through whatever views, and all relations that it rests on.

    Of a view that follows its inputs those inputs count: what is written to it changes nothing.
    """
    views = {view.oid: view for view in catalog.defined_views()}
    inputs, definitions = set[int](), set[int]()
    view = table.materialized_view
    assert view is not None, "V6: it is a materialized view"
    waiting: list[ViewDefinition] = [view]
    while waiting:
        for oid in relations_used_by(waiting.pop()):
            if oid in definitions:
                continue
            definitions.add(oid)
            below, found = views.get(oid), catalog.by_oid(oid)
            is_stored = found is not None and not (found.query and found.query.on_commit)
            if is_stored:
                inputs.add(oid)
            elif below is not None:
                waiting.append(below)
    return frozenset(inputs), frozenset(definitions)
