"""Choose how a materialized view is read that follows its inputs: stored rows, or its definition.

    exact at the catalog's timestamp, nothing written ──▶ stored rows
    otherwise ──────────────────────────────────────────▶ the query, as of a view

The invariant is V4 of `coordinator/core/views`. Both give the same rows, so nothing but costs
depends on the choice.
"""

from sql.binder.resolve.coercion import coerce_to_storage
from sql.binder.state import Binding
from sql.binder.stored.views import view_plan
from sql.catalog.catalog import Table, definition_of
from sql.catalog.view_reads import BEHIND_HINT, ViewReads
from sql.errors import SqlError, not_supported
from sql.plan.nodes import ColumnRef, Plan, PlanColumn, Project


def follows_inputs(table: Table) -> bool:
    """Whether it is a materialized view that is exact or known to be behind."""
    return table.query is not None and table.query.on_commit and table.query.is_populated


def reads_definition(binding: Binding, table: Table) -> bool:
    """Whether a table is read as the query of a view here. Raises 55000 if the session insists on
    its stored rows, and they are not exact.
    """
    if not follows_inputs(table) or binding.recorded is not None:
        # A definition that is being made names the view; it reads nothing.
        return False
    context = binding.context
    is_exact = table.oid in context.catalog.exact_views
    match context.view_reads:
        case ViewReads.AUTO | ViewReads.STORED if is_exact:
            return False
        case ViewReads.STORED | ViewReads.ONLY_STORED:
            message = f'the stored rows of materialized view "{table.name}" cannot be used now'
            detail = (
                "The transaction has made changes, which they may lack."
                if is_exact
                else "The view is behind its inputs."
            )
            raise SqlError("55000", message, detail=detail, hint="SET view_reads = auto.")
        case _:
            return True


def stored_definition_plan(binding: Binding, table: Table) -> tuple[Plan, tuple[PlanColumn, ...]]:
    """The rows of a view's query as its table would store them: in the types of its columns."""
    view = table.materialized_view
    assert view is not None, "V4: it is a materialized view"
    plan, columns = view_plan(binding, view)
    made = tuple([binding.table_column(column) for column in table.columns])
    for at, column in enumerate(made):
        binding.origins[column.id] = (table.oid, table.number_of(at))
    exprs = tuple(
        [
            coerce_to_storage(binding, ColumnRef(column.id, column.type), target.type)
            for column, target in zip(columns, made, strict=True)
        ]
    )
    return Project(plan, made, exprs), made


def check_follows_stored(binding: Binding, position: int) -> None:
    """Refuse a statement that follows the definition of such a view where it means the view."""
    for table in binding.context.catalog.named_tables.materialized.values():
        view = table.materialized_view
        if view is None or not follows_inputs(table) or definition_of(view) not in binding.uses:
            continue
        if table in binding.tables.values():
            continue
        if table.oid in binding.context.catalog.exact_views:
            raise not_supported("SUBSCRIBE to the definition of a materialized view", position)
        message = f'materialized view "{table.name}" is behind its inputs'
        raise SqlError("55000", message, position, hint=BEHIND_HINT)


def view_ways(binding: Binding) -> tuple[str, ...]:
    """How the statement reads each of these views, for EXPLAIN."""
    read, told = {*binding.tables.values()}, list[str]()
    for table in binding.context.catalog.named_tables.materialized.values():
        view = table.materialized_view
        if view is None or not follows_inputs(table):
            continue
        if table in read:
            told.append(f"stored rows of {table.shown}")
        elif definition_of(view) in binding.uses:
            behind = table.oid not in binding.context.catalog.exact_views
            told.append(f"definition of {table.shown}" + (" (behind)" if behind else ""))
    return tuple(told)
