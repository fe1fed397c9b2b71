"""CREATE and REFRESH MATERIALIZED VIEW: a table that keeps the rows of a query, and the query.

    CREATE ─▶ query ─┬─▶ CreateTableAs: columns, and rows of the query
                     └─▶ Table.query: the text with the meaning of its names, as a view has it
    REFRESH ─▶ Table.query, bound again ─▶ rows that replace those of the table

INVARIANTS
  M1  a materialized view is a table with a query: one oid, one name, one shard. Everything that
      reads tables reads it; nothing writes it but REFRESH.
  M2  whoever looks for what depends on a relation finds its query among views
      (`Catalog.defined_views`); so V1 and V2 of `views.py` hold for it.
  M3  a query reads a view only if it is populated: the stored rows are those that its query had at
      one timestamp, the last REFRESH's.

Not here: views that follow their inputs (`refresh = 'on commit'` and intervals are refused), and
running the query (`coordinator/execution/create_table_as.py`).
"""

from dataclasses import replace
from functools import partial

from pglast import ast
from pglast.enums import ObjectType

from sql.binder.ddl.create_table_as import create_table_as, created_as, stored_rows
from sql.binder.ddl.row_validations import row_validations
from sql.binder.ddl.storage_options import without_refresh_option
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
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import without_position
from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.views import inside_view, parse_view_query
from sql.catalog.catalog import SYSTEM_TIMELINE, Table
from sql.catalog.objects import StoredQuery
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, copy_node, is_a, refuse_parameters
from sql.plan.traverse import prune_columns
from sql.statements.bound import CreateTableAs, RefreshMaterializedView


def create_as(binding: Binding, node: Node) -> CreateTableAs:
    """CREATE TABLE AS, or CREATE MATERIALIZED VIEW [IF NOT EXISTS]."""
    if node.objtype != ObjectType.OBJECT_MATVIEW:
        return create_table_as(binding, node)
    return _create(binding, node)


def _create(binding: Binding, node: Node) -> CreateTableAs:
    query = node.query
    into = copy_node(node.into, options=without_refresh_option(node.into.options))
    _refuse_forms(node)
    binding.acts_in, binding.recorded = query, {}
    result = bind_query(binding, query, None)
    resolve_unknown_columns(binding, result)
    recorded, binding.recorded = binding.recorded, None
    if not temporary_relations(binding).isdisjoint(oid for oid, _, _ in recorded.values()):
        message = "materialized views must not use temporary tables or views"
        raise SqlError("0A000", message)
    refuse_parameters(query)
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
    return replace(created, table=replace(created.table, query=kept), is_view=True)


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
    with inside_view(binding, view):
        query = parse_view_query(view.text)
        binding.acts_in = query
        result = bind_query(binding, query, None)
        resolve_unknown_columns(binding, result)
        source = stored_rows(binding, result, table.columns)
    validations = () if node.concurrent else row_validations(binding, after, (), (), table.keys)
    return RefreshMaterializedView(
        table, after, source, scanned_tables(binding, source), validations, bool(node.concurrent)
    )


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
