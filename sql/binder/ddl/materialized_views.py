"""CREATE and REFRESH MATERIALIZED VIEW: a table that keeps the rows of a query, and the query.

    CREATE ─▶ query ─┬─▶ CreateTableAs: columns, and rows of the query
                     └─▶ Table.query: the text with the meaning of its names, as a view has it
    REFRESH ─▶ Table.query, bound again ─▶ rows that replace those of the table

INVARIANTS
  M1  a materialized view is a table with a query: one oid, one name, one shard. Everything that
      reads tables reads it; nothing writes it but REFRESH.
  M2  whoever looks for what depends on a relation finds its query among views
      (`Catalog.defined_views`); so V1 and V2 of `views.py` hold for it.
  M3  a query reads a view only if it is populated: the stored rows of a `manual` one are those that
      its query had at one timestamp, the last REFRESH's.

Not here: how views with `refresh = 'on commit'` are read (`sql/binder/stored/view_reads.py`), and
running the query (`coordinator/execution/create_table_as.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from pglast import ast
from pglast.enums import ObjectType

from sql.binder.ddl.create_table_as import create_table_as, created_as, stored_rows
from sql.binder.ddl.row_validations import row_validations
from sql.binder.ddl.storage_options import refresh_option
from sql.binder.ddl.view_refresh import chosen_refresh
from sql.binder.ddl.views import (
    has_modifying_cte,
    stored_query_text,
    temporary_relations,
    used_columns,
)
from sql.binder.dml.returning import scanned_tables
from sql.binder.queries.select import bind_query
from sql.binder.resolve.catalog_lookup import refuse_system_change
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.relations import find_table, table_scan
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import without_position
from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.view_reads import follows_inputs
from sql.binder.stored.views import inside_view, parse_view_query
from sql.catalog.catalog import SYSTEM_TIMELINE, Column, Table, definition_of
from sql.catalog.objects import MaterializedView, StoredQuery
from sql.errors import SqlError, not_supported
from sql.incremental.hidden_state import STATE_PREFIX, with_state
from sql.parser.syntax import Node, copy_node, is_a, refuse_parameters
from sql.plan.nodes import Const, Plan, PlanColumn, Scan, SetOp, SetOpKind, output_columns
from sql.plan.projections import append_columns
from sql.plan.pruning import prune_columns
from sql.statements.bound import CreateTableAs, RefreshMaterializedView
from sql.types.sql_type import SqlType


def create_as(binding: Binding, node: Node) -> CreateTableAs:
    """CREATE TABLE AS, or CREATE MATERIALIZED VIEW [IF NOT EXISTS]."""
    if node.objtype != ObjectType.OBJECT_MATVIEW:
        return create_table_as(binding, node)
    return _create(binding, node)


def _create(binding: Binding, node: Node) -> CreateTableAs:
    query = node.query
    option = refresh_option(node.into.options)
    into = copy_node(node.into, options=option.others)
    _refuse_forms(node)
    binding.acts_in, binding.recorded = query, {}
    result = bind_query(binding, query, None)
    resolve_unknown_columns(binding, result)
    recorded, binding.recorded = binding.recorded, None
    if not temporary_relations(binding).isdisjoint(oid for oid, _, _ in recorded.values()):
        message = "materialized views must not use temporary tables or views"
        raise SqlError("0A000", message)
    refuse_parameters(query)
    if any(part.as_of is not None for part in binding.locking):
        raise not_supported("AS OF in a materialized view")
    if any(t.timeline not in ("", SYSTEM_TIMELINE.name) for t in binding.tables.values()):
        raise not_supported("a materialized view over tables of another timeline")
    created = created_as(binding, into, result, exists_ok=bool(node.if_not_exists))
    if created.table.exists:
        return replace(created, is_view=True)
    text = stored_query_text(binding, query)
    kept = StoredQuery(
        text,
        tuple((schema or "", name, *found) for (schema, name), found in recorded.items()),
        (
            *used_columns(binding, prune_columns(result.plan)),
            *((oid, 0) for oid in named_relations(text)),
        ),
        is_populated=created.with_data,
    )
    on_commit, notices = chosen_refresh(
        binding, option, created.table.name, kept, prune_columns(result.plan)
    )
    kept = replace(kept, on_commit=on_commit)
    if on_commit:
        kept, created = _with_state(binding, kept, created)
    made = replace(created.table, query=kept, notices=(*created.table.notices, *notices))
    created = replace(created, table=made, is_view=True)
    return _over_views(binding, created, kept)


def _over_views(binding: Binding, created: CreateTableAs, kept: StoredQuery) -> CreateTableAs:
    """A query over views that follow their inputs: while it is recorded it names them, and only
    now it is said how they are read.
    """
    if not any(map(follows_inputs, binding.tables.values())):
        return created
    names = tuple([column.name for column in created.table.columns])
    view = MaterializedView(0, "", "", kept.text, names, kept.relations)
    binding.locking.clear()
    source = _rows_with_state(binding, view, created.table.columns, kept.state)
    # The view itself is nowhere yet, and nothing depends on it.
    binding.uses.discard(definition_of(view))
    return replace(created, source=source, tables=scanned_tables(binding, source))


def _rows(binding: Binding, view: MaterializedView, columns: Sequence[Column]) -> Plan:
    """The rows of a view's query, bound anew, as a table with these columns stores them."""
    with inside_view(binding, view):
        query = parse_view_query(view.text)
        binding.acts_in = query
        result = bind_query(binding, query, None)
        resolve_unknown_columns(binding, result)
        return stored_rows(binding, result, columns)


def _with_state(
    binding: Binding, kept: StoredQuery, created: CreateTableAs
) -> tuple[StoredQuery, CreateTableAs]:
    """The view with hidden columns, if its groups are added to with these."""
    found = with_state(created.source, binding.new_column)
    if found is None:
        return kept, created
    taken = {column.name for column in created.table.columns}
    names = (name for at in count() if (name := f"{STATE_PREFIX}{at}") not in taken)
    state = tuple([(name, column.type) for name, column in zip(names, found.state, strict=False)])
    return replace(kept, state=state), replace(created, source=found.plan)


def _rows_with_state(
    binding: Binding,
    view: MaterializedView,
    columns: Sequence[Column],
    state: Sequence[tuple[str, SqlType]],
) -> Plan:
    """The rows as the table stores them, with its hidden columns (K2 of `hidden_state.py`). Where
    the query has others by now, as after an upgrade, they are NULL, and nothing is added to them.
    """
    plan = _rows(binding, view, columns)
    if not state:
        return plan
    found = with_state(plan, binding.new_column)
    if found is not None and [column.type for column in found.state] == [t for _, t in state]:
        return found.plan
    none = {binding.new_column(name, type_): Const(None, type_) for name, type_ in state}
    return append_columns(plan, none)


def _refuse_forms(node: Node) -> None:
    """What is no query of a materialized view, in the words of PostgreSQL's analysis."""
    if not is_a(node.query, ast.SelectStmt):
        raise not_supported("CREATE MATERIALIZED VIEW of this", None)
    if has_modifying_cte(node.query):
        message = "materialized views must not use data-modifying statements in WITH"
        raise SqlError("0A000", message)
    if node.into.rel.relpersistence == "u":
        raise SqlError("0A000", "materialized views cannot be unlogged")


# --- REFRESH -----------------------------------------------------------------------------------


def refresh_materialized_view(binding: Binding, node: Node) -> RefreshMaterializedView:
    """REFRESH MATERIALIZED VIEW [CONCURRENTLY] [WITH [NO] DATA]."""
    table = without_position(partial(find_table, binding, node.relation, _not_a_view))
    refuse_system_change(table)
    view = table.materialized_view
    if view is None or table.query is None:
        raise SqlError("0A000", f'"{table.name}" is not a materialized view')
    if node.concurrent:
        _check_concurrent(table, with_data=not node.skipData)
    after = table
    if table.query.is_populated == bool(node.skipData):
        known = replace(table.query, is_populated=not node.skipData)
        after = replace(table, query=known, version=table.version + 1)
    if node.skipData:
        return RefreshMaterializedView(table, after)
    source = _rows_with_state(binding, view, table.columns, table.query.state)
    validations = () if node.concurrent else row_validations(binding, after, (), (), table.keys)
    difference = _difference(binding, table, view) if follows_inputs(table) else None
    return RefreshMaterializedView(
        table,
        after,
        source,
        scanned_tables(binding, source),
        validations,
        bool(node.concurrent),
        difference=difference,
    )


def _difference(binding: Binding, table: Table, view: MaterializedView) -> Plan:
    """The rows that only one of the stored rows and the query has, as often as it has them more."""
    assert table.query is not None, "it is a materialized view"
    state = table.query.state
    left, right = (
        _except(binding, *sides)
        for sides in (
            (_stored(binding, table), _rows_with_state(binding, view, table.columns, state)),
            (_rows_with_state(binding, view, table.columns, state), _stored(binding, table)),
        )
    )
    return SetOp(SetOpKind.UNION, True, left, right, _new_columns(binding, left))


def _stored(binding: Binding, table: Table) -> Scan:
    """The stored rows, with their hidden columns."""
    scan = table_scan(binding, table)
    hidden = table.stored_columns[len(table.columns) :]
    made = tuple([binding.new_column(column.name, column.type) for column in hidden])
    ordinals = tuple(range(len(table.columns), len(table.stored_columns)))
    return replace(scan, columns=(*scan.columns, *made), ordinals=(*scan.ordinals, *ordinals))


def _except(binding: Binding, left: Plan, right: Plan) -> SetOp:
    return SetOp(SetOpKind.EXCEPT, True, left, right, _new_columns(binding, left))


def _new_columns(binding: Binding, plan: Plan) -> tuple[PlanColumn, ...]:
    return tuple([binding.new_column(c.name, c.type) for c in output_columns(plan)])


def _not_a_view(name: str, _kind: str) -> SqlError:
    return SqlError("42809", f'"{name}" is not a table or materialized view')


def _check_concurrent(table: Table, *, with_data: bool) -> None:
    """PostgreSQL's conditions of CONCURRENTLY; its work is that of any REFRESH here."""
    if table.query is not None and not table.query.is_populated:
        message = "CONCURRENTLY cannot be used when the materialized view is not populated"
        raise SqlError("0A000", message)
    if not with_data:
        message = "CONCURRENTLY and WITH NO DATA options cannot be used together"
        raise SqlError("42601", message)
    if not any(key.index for key in table.keys):
        hint = (
            "Create a unique index with no WHERE clause on one or more columns of the "
            "materialized view."
        )
        message = f'cannot refresh materialized view "{table.qualified}" concurrently'
        raise SqlError("55000", message, hint=hint)
