"""Bind SUBSCRIBE: what is followed, the columns of the changes, the options.

A subscription tells of each commit the rows that came and the rows that went. A query is computed
over these alone if each of its rows is made of one row of one table, the same way at all times:
such are filters and projections. All others are refused (0A000).
"""

from typing import Final

from sql.binder.dml.copy import copy_to_options
from sql.binder.expressions.time_expressions import time_expression
from sql.binder.queries.select import bind_query
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import RELATION_SPACE
from sql.catalog.system_catalogs import is_system_catalog
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import CopySubscribeNode, SubscribeNode
from sql.parser.option_values import option_boolean, options_by_name
from sql.parser.syntax import offset_to_position
from sql.plan.nodes import (
    CteScan,
    DistinctOn,
    DistinctRows,
    Filter,
    GroupBy,
    Join,
    Limit,
    Plan,
    Project,
    Recursive,
    Scan,
    SetOp,
    SetScan,
    Sort,
    Values,
    Window,
    With,
)
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import (
    is_volatile_plan,
    plan_has_subquery,
    plan_nodes,
    prune_columns,
)
from sql.statements.bound import BoundQuery, CopySubscription, OutputColumn, Subscribe
from sql.types.sql_type import BOOL, INT8

_TS: Final = OutputColumn("meridian_ts", INT8)
_PROGRESSED: Final = OutputColumn("meridian_progressed", BOOL)
_DIFF: Final = OutputColumn("meridian_diff", INT8)

_REASONS: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    ((Join,), "a join"),
    ((GroupBy,), "aggregates or GROUP BY"),
    ((Window,), "window functions"),
    ((DistinctRows, DistinctOn), "DISTINCT"),
    ((SetOp,), "UNION, INTERSECT or EXCEPT"),
    ((Limit,), "LIMIT or OFFSET"),
    ((Sort,), "ORDER BY"),
    ((SetScan,), "a set-returning function"),
    ((With, CteScan, Recursive), "WITH"),
)


def subscribe(binding: Binding, node: SubscribeNode) -> Subscribe:
    """SUBSCRIBE. Raises 0A000 with the reason for what cannot be followed."""
    options = options_by_name(node.options)
    for name, option in options.items():
        if name not in ("snapshot", "progress"):
            message = f'unrecognized SUBSCRIBE option "{name}"'
            raise SqlError("42601", message, offset_to_position(option.location))
    snapshot = "snapshot" not in options or option_boolean(options["snapshot"])
    progress = "progress" in options and option_boolean(options["progress"])
    query = _followed(binding, node)
    table = query.tables[0]
    # Behind the query: what is said of its clock is not said of these.
    up_to = None if node.up_to is None else time_expression(binding, node.up_to.node, "UP TO")
    about = (_TS, _PROGRESSED, _DIFF) if progress else (_TS, _DIFF)
    return Subscribe(query, table, (*about, *query.columns), snapshot, progress, up_to)


def copy_subscription(binding: Binding, node: CopySubscribeNode) -> CopySubscription:
    """COPY (SUBSCRIBE ..) TO STDOUT."""
    followed = subscribe(binding, node.subscribe)
    columns = [column.name for column in followed.columns]
    return CopySubscription(followed, copy_to_options(node.copy.node, columns))


def _followed(binding: Binding, node: SubscribeNode) -> BoundQuery:
    position = node.place + 1
    select = node.followed.node
    if select.intoClause is not None:
        raise not_supported("SUBSCRIBE to SELECT INTO", position)
    result = bind_query(binding, select, None)
    resolve_unknown_columns(binding, result)
    plan = prune_columns(result.plan)
    reason = _reason(binding, plan)
    if reason is not None:
        raise not_supported(f"SUBSCRIBE to {reason}", position)
    (table,) = binding.tables.values()
    _check_table(table, position)
    columns = tuple([OutputColumn(column.name, column.type) for column in result.columns])
    return BoundQuery(plan, columns, (table,))


def _reason(binding: Binding, plan: Plan) -> str | None:
    """Why the query cannot be followed."""
    if binding.locking:
        return "a query that locks rows"
    if any(use.space == RELATION_SPACE for use in binding.uses):
        return "a view"
    for below in plan_nodes(plan):
        for kinds, what in _REASONS:
            if isinstance(below, kinds):
                return f"a query with {what}"
    if plan_has_subquery(plan):
        return "a query with a subquery"
    leaf = _leaf(plan)
    if leaf is None or isinstance(leaf, Values) or len(binding.tables) != 1:
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


def _leaf(plan: Plan) -> Plan | None:
    """What rows come from, through filters and projections only."""
    while isinstance(plan, Project | Filter):
        plan = plan.input
    return plan if isinstance(plan, Scan | Values) else None


def _check_table(table: Table, position: int) -> None:
    if is_temporary_schema(table.schema):
        raise not_supported("SUBSCRIBE to a temporary table", position)
    if table.query is not None and table.query.on_commit:
        raise not_supported("SUBSCRIBE to a materialized view that follows its inputs", position)
    if is_server_state(table) or is_system_catalog(table):
        raise not_supported("SUBSCRIBE to a system relation", position)
