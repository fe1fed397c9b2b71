"""Bind SUBSCRIBE: what is followed, the columns of the changes, the options.

A subscription tells of each commit the rows that came and the rows that went. A query that is made
of rows one by one is computed over these alone: filters, projections, UNION ALL, and views of such.
Any other query is computed as a whole, and its answers are compared. Either way its answer must
depend on nothing but its tables (0A000).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.binder.dml.copy import copy_to_options
from sql.binder.expressions.sort_keys import sort_direction
from sql.binder.expressions.time_expressions import time_expression
from sql.binder.queries.select import bind_query
from sql.binder.queries.target_list import TargetEntry, settle_target, sort_target
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, FromItem, Scope, SelectResult
from sql.binder.stored.view_reads import check_follows_stored
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import RELATION_SPACE, ViewDefinition
from sql.catalog.system_catalogs import is_system_catalog
from sql.catalog.temporary import is_temporary_schema
from sql.catalog.view_reads import followed_view_reads
from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import CopySubscribeNode, EnvelopeNode, SubscribeNode
from sql.parser.option_values import option_boolean, options_by_name
from sql.parser.syntax import Node, node_position, offset_to_position
from sql.plan.changes_of_plans import linear_plan, undetermined_part
from sql.plan.nodes import Plan, PlanColumn, SortKey
from sql.plan.projections import column_reference
from sql.plan.pruning import prune_columns
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import (
    has_subquery,
    is_volatile_expression,
    is_volatile_plan,
    plan_has_subquery,
)
from sql.statements.bound import BoundQuery, CopySubscription, OutputColumn, Subscribe
from sql.statements.change_streams import ChangeEnvelope, ChangeOrder
from sql.types.comparability import check_ordering
from sql.types.enums import is_enum
from sql.types.sql_type import BOOL, INT8, TEXT, format_type

_TS: Final = OutputColumn("meridian_ts", INT8)
_PROGRESSED: Final = OutputColumn("meridian_progressed", BOOL)
_DIFF: Final = OutputColumn("meridian_diff", INT8)
_STATE: Final = OutputColumn("meridian_state", TEXT)

_KEY_TYPES: Final = frozenset(
    {"int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar", "bytea"}
    | {"uuid", "date", "time", "timestamp", "timestamptz", "oid"}
)


def subscribe(binding: Binding, node: SubscribeNode) -> Subscribe:
    """SUBSCRIBE. Raises 0A000 with the reason for what cannot be followed."""
    snapshot, progress = _options(node)
    result = _bound_query(binding, node)
    envelope = None if node.envelope is None else _envelope(node.envelope, result.columns)
    order = None if node.order is None else _order(binding, node.order.node, result)
    query, compared = _followed(binding, node, result)
    if compared and not snapshot:
        _check_resumed(query.plan, _option_position(node, "snapshot"))
    # Behind the query: what is said of its clock is not said of these.
    up_to = None if node.up_to is None else time_expression(binding, node.up_to.node, "UP TO")
    return Subscribe(
        query,
        _told_columns(query.columns, envelope, progress=progress),
        snapshot,
        progress,
        up_to,
        None if node.up_to is None else node.up_to_place + 1,
        _views(binding, node.place + 1),
        compared,
        envelope,
        order,
    )


def copy_subscription(binding: Binding, node: CopySubscribeNode) -> CopySubscription:
    """COPY (SUBSCRIBE ..) TO STDOUT."""
    followed = subscribe(binding, node.subscribe)
    columns = [column.name for column in followed.columns]
    return CopySubscription(followed, copy_to_options(node.copy.node, columns))


def _options(node: SubscribeNode) -> tuple[bool, bool]:
    """SNAPSHOT and PROGRESS."""
    options = options_by_name(node.options)
    found = {"snapshot": True, "progress": False}
    for name, option in options.items():
        position = offset_to_position(option.location)
        if name not in found:
            message = f'unrecognized SUBSCRIBE option "{name}"'
            raise SqlError("42601", message, position)
        try:
            found[name] = option_boolean(option)
        except SqlError as error:
            error.position = position
            raise
    return found["snapshot"], found["progress"]


def _option_position(node: SubscribeNode, name: str) -> int | None:
    return offset_to_position(options_by_name(node.options)[name].location)


# --- what is followed ----------------------------------------------------------------------------


def _bound_query(binding: Binding, node: SubscribeNode) -> SelectResult:
    select, context = node.followed.node, binding.context
    binding.context = replace(context, view_reads=followed_view_reads(context.view_reads))
    if select.intoClause is not None:
        raise not_supported("SUBSCRIBE to SELECT INTO", node.place + 1)
    result = bind_query(binding, select, None)
    resolve_unknown_columns(binding, result)
    return result


def _followed(
    binding: Binding, node: SubscribeNode, result: SelectResult
) -> tuple[BoundQuery, bool]:
    """The query, and whether its answers are compared."""
    position = node.place + 1
    reason = _reason(binding, result.plan)
    if reason is not None:
        raise not_supported(f"SUBSCRIBE to {reason}", position)
    tables = tuple(binding.tables.values())
    for table in tables:
        _check_table(table, position)
    check_follows_stored(binding, position)
    linear = None if plan_has_subquery(result.plan) else linear_plan(result.plan)
    plan = prune_columns(result.plan if linear is None else linear)
    columns = tuple([OutputColumn(column.name, column.type) for column in result.columns])
    return BoundQuery(plan, columns, tables), linear is None


def _reason(binding: Binding, plan: Plan) -> str | None:
    """Why the query cannot be followed."""
    if binding.locking:
        return "a query that locks rows"
    if not binding.tables:
        return "a query without a table"
    if relations_with_versions(plan):
        return "a query with system columns"
    if is_volatile_plan(plan) or binding.supplied:
        return "a query with volatile functions"
    if binding.uses_now or binding.read_clock or binding.tells_timestamp:
        return "a query that depends on the time"
    if binding.uses_session:
        return "a query that depends on the session"
    return None


def _check_table(table: Table, position: int) -> None:
    if is_temporary_schema(table.schema):
        raise not_supported("SUBSCRIBE to a temporary table", position)
    if is_server_state(table) or is_system_catalog(table):
        raise not_supported("SUBSCRIBE to a system relation", position)


def _views(binding: Binding, position: int) -> tuple[ViewDefinition, ...]:
    """The views that the query is made of, directly or through others."""
    objects = binding.context.catalog.objects
    found: list[ViewDefinition] = []
    for use in binding.uses:
        if use.space == RELATION_SPACE and use.name is not None:
            used = objects.get((RELATION_SPACE, use.schema, use.name))
            if isinstance(used, ViewDefinition):
                found.append(used)
    if any(is_temporary_schema(view.schema) for view in found):
        raise not_supported("SUBSCRIBE to a temporary view", position)
    return tuple(sorted(found, key=lambda view: view.oid))


def _check_resumed(plan: Plan, position: int | None) -> None:
    """Only an answer that is unique can be gone on from."""
    part = undetermined_part(plan)
    if part is not None:
        what = f"SUBSCRIBE without a snapshot to a query with {part}"
        detail = "Such a query has several right answers, and another may have been told before."
        raise SqlError("0A000", f"{what} is not supported", position, detail=detail)


# --- how it is told ------------------------------------------------------------------------------


def _told_columns(
    columns: Sequence[OutputColumn], envelope: ChangeEnvelope | None, *, progress: bool
) -> tuple[OutputColumn, ...]:
    about = (_TS, _PROGRESSED) if progress else (_TS,)
    if envelope is None:
        return (*about, _DIFF, *columns)
    key = [columns[place] for place in envelope.key]
    others = [column for place, column in enumerate(columns) if place not in envelope.key]
    if envelope.is_upsert:
        return (*about, _STATE, *key, *others)
    before = [OutputColumn(f"before_{column.name}", column.type) for column in others]
    after = [OutputColumn(f"after_{column.name}", column.type) for column in others]
    return (*about, _STATE, *key, *before, *after)


def _envelope(node: EnvelopeNode, columns: Sequence[PlanColumn]) -> ChangeEnvelope:
    key: list[int] = []
    for name in node.key:
        position = name.place + 1
        places = [place for place, column in enumerate(columns) if column.name == name.text]
        if not places:
            raise SqlError("42703", f'column "{name.text}" in KEY does not exist', position)
        if len(places) > 1:
            raise SqlError("42702", f'column "{name.text}" in KEY is ambiguous', position)
        if places[0] in key:
            raise SqlError("42701", f'column "{name.text}" appears twice in KEY', position)
        type_ = columns[places[0]].type
        if type_.name not in _KEY_TYPES and not is_enum(type_.name):
            raise not_supported(f"KEY of a column of type {format_type(type_.bare())}", position)
        key.append(places[0])
    return ChangeEnvelope(node.style == "upsert", tuple(key))


def _order(binding: Binding, select: Node, result: SelectResult) -> ChangeOrder:
    """The keys of WITHIN TIMESTAMP ORDER BY, over the query's columns and meridian_diff."""
    diff = binding.new_column(_DIFF.name, INT8)
    columns = [*result.columns, diff]
    pairs = [(column.name, column_reference(column)) for column in columns]
    ids = {column.id for column in columns}
    scope = Scope(items=[FromItem(None, pairs)], ids=ids, clause="ORDER BY")
    targets = [TargetEntry(name, expr, select) for name, expr in pairs]
    keys: list[SortKey] = []
    for item in select.sortClause:
        position = node_position(item.node)
        target = sort_target(binding, scope, targets, item.node, computed=True)
        expr = settle_target(binding, target)
        check_ordering(expr.type, position)
        if scope.aggregates:
            message = "aggregate functions are not allowed in WITHIN TIMESTAMP ORDER BY"
            raise SqlError("42803", message, position)
        what = "a window function" if scope.windows else None
        if scope.set_calls:
            what = "a set-returning function"
        if has_subquery(expr):
            what = "a subquery"
        elif is_volatile_expression(expr):
            what = "a volatile function"
        if what is not None:
            raise not_supported(f"{what} in WITHIN TIMESTAMP ORDER BY", position)
        keys.append(SortKey(expr, *sort_direction(item)))
    return ChangeOrder(diff, tuple(keys))
