"""Meridian's extension statements: timelines, read holds, OPTIMIZE and VACUUM."""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.binder.ddl.create import create_table
from sql.binder.expressions.time_expressions import logical_time_expression, time_expression
from sql.binder.resolve.catalog_lookup import refuse_system_change, undefined_relation
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.catalog.catalog import SYSTEM_TIMELINE, Table, Timeline
from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import (
    AdvanceReadHoldNode,
    AdvanceTimelineNode,
    CreateReadHoldNode,
    CreateTableInNode,
    CreateTimelineNode,
    DropReadHoldNode,
    DropTimelineNode,
    Identifier,
    OptimizeNode,
)
from sql.parser.option_values import option_boolean
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.statements.bound import (
    CreateTable,
)
from sql.statements.maintenance import MaintenanceKind, MaintenanceStatement
from sql.statements.timelines import (
    AdvanceReadHold,
    AdvanceTimeline,
    CreateReadHold,
    CreateTimeline,
    DropReadHold,
    DropTimeline,
)

_CLOCKS: Final = frozenset({"system"})


# --- timelines ---------------------------------------------------------------------------------


def create_timeline(binding: Binding, node: CreateTimelineNode) -> CreateTimeline:
    """CREATE TIMELINE [IF NOT EXISTS]."""
    if node.clock is not None and node.clock.text not in _CLOCKS:
        hint = "The only clock is system."
        message = f'clock "{node.clock.text}" does not exist'
        raise SqlError("42704", message, node.clock.place + 1, hint=hint)
    exists = node.name.text in binding.context.catalog.timelines
    if exists and not node.if_not_exists:
        raise SqlError("42710", f'timeline "{node.name.text}" already exists')
    return CreateTimeline(Timeline(node.name.text, manual=node.clock is None), exists)


def drop_timeline(binding: Binding, node: DropTimelineNode) -> DropTimeline:
    """DROP TIMELINE [IF EXISTS]; 2BP01 while it has tables."""
    names: list[str] = []
    missing: list[str] = []
    for name in node.names:
        if name.text == SYSTEM_TIMELINE.name:
            message = (
                f"cannot drop timeline {name.text} because it is required by the database system"
            )
            raise SqlError("2BP01", message)
        if name.text in binding.context.catalog.timelines:
            _check_unused(binding, name.text)
            names.append(name.text)
        elif node.missing_ok:
            missing.append(name.text)
        else:
            raise _undefined_timeline(name)
    return DropTimeline(tuple(dict.fromkeys(names)), tuple(missing))


def _check_unused(binding: Binding, timeline: str) -> None:
    catalog = binding.context.catalog
    tables = [table for table in catalog.tables.values() if table.timeline == timeline]
    holds = [hold for hold in catalog.read_holds.values() if hold.timeline == timeline]
    if not (tables or holds):
        return
    found = [f"table {table.schema}.{table.name}" for table in tables]
    found += [f"read hold {hold.name}" for hold in holds]
    detail = "\n".join(f"{what} depends on timeline {timeline}" for what in sorted(found))
    message = f"cannot drop timeline {timeline} because other objects depend on it"
    raise SqlError("2BP01", message, detail=detail)


def advance_timeline(binding: Binding, node: AdvanceTimelineNode) -> AdvanceTimeline:
    """ADVANCE TIMELINE; 55000 for a timeline that follows a clock."""
    timeline = _timeline(binding, node.name)
    if not timeline.manual:
        hint = "Only a timeline that was created MANUAL can be advanced."
        raise SqlError("55000", f'timeline "{timeline.name}" follows a clock', hint=hint)
    return AdvanceTimeline(timeline.name, logical_time_expression(binding, node.to.node, "TO"))


def create_table_in(binding: Binding, node: CreateTableInNode) -> CreateTable:
    """CREATE TABLE .. IN TIMELINE."""
    create = node.create.node
    if not is_a(create, ast.CreateStmt):
        raise not_supported("CREATE TABLE AS", None)
    timeline = _timeline(binding, node.timeline)
    return create_table(binding, create, timeline.name)


def _timeline(binding: Binding, name: Identifier) -> Timeline:
    timeline = binding.context.catalog.timelines.get(name.text)
    if timeline is None:
        raise _undefined_timeline(name)
    return timeline


def _undefined_timeline(name: Identifier) -> SqlError:
    return SqlError("42704", f'timeline "{name.text}" does not exist', name.place + 1)


# --- read holds --------------------------------------------------------------------------------


def create_read_hold(binding: Binding, node: CreateReadHoldNode) -> CreateReadHold:
    """CREATE READ HOLD; the default timeline is `system`."""
    if node.name.text in binding.context.catalog.read_holds:
        raise SqlError("42710", f'read hold "{node.name.text}" already exists')
    timeline = SYSTEM_TIMELINE if node.timeline is None else _timeline(binding, node.timeline)
    if node.at is None:
        return CreateReadHold(node.name.text, timeline.name)
    bind_at = logical_time_expression if timeline.manual else time_expression
    return CreateReadHold(node.name.text, timeline.name, bind_at(binding, node.at.node, "AT"))


def advance_read_hold(binding: Binding, node: AdvanceReadHoldNode) -> AdvanceReadHold:
    """ADVANCE READ HOLD .. TO: of whom it keeps history for, and needs less of it."""
    hold = binding.context.catalog.read_holds.get(node.name.text)
    if hold is None:
        raise _undefined_hold(node.name)
    timeline = binding.context.catalog.timelines[hold.timeline]
    bind_to = logical_time_expression if timeline.manual else time_expression
    return AdvanceReadHold(hold.name, bind_to(binding, node.to.node, "TO"))


def _undefined_hold(name: Identifier) -> SqlError:
    return SqlError("42704", f'read hold "{name.text}" does not exist', name.place + 1)


def drop_read_hold(binding: Binding, node: DropReadHoldNode) -> DropReadHold:
    """DROP READ HOLD [IF EXISTS]."""
    names: list[str] = []
    missing: list[str] = []
    for name in node.names:
        if name.text in binding.context.catalog.read_holds:
            names.append(name.text)
        elif node.missing_ok:
            missing.append(name.text)
        else:
            raise _undefined_hold(name)
    return DropReadHold(tuple(dict.fromkeys(names)), tuple(missing))


# --- maintenance -------------------------------------------------------------------------------


def optimize(binding: Binding, node: OptimizeNode) -> MaintenanceStatement:
    """OPTIMIZE relation."""
    return MaintenanceStatement(
        MaintenanceKind.OPTIMIZE, (_maintained(binding, node.relation.node),)
    )


def vacuum(binding: Binding, node: Node) -> MaintenanceStatement:
    """VACUUM and ANALYZE, of all tables or some.

    ANALYZE is a no-op, because statistics are written with each file. It is accepted, alone and as
    an option of VACUUM, because scripts end with it.
    """
    kind = MaintenanceKind.VACUUM if node.is_vacuumcmd else MaintenanceKind.ANALYZE
    analyzes = _analyzes(kind, node.options or ())
    if any(item.va_cols for item in node.rels or ()) and not analyzes:
        message = "ANALYZE option must be specified when a column list is provided"
        raise SqlError("0A000", message)
    if not node.rels:
        return MaintenanceStatement(kind, None)
    try:
        tables = [_maintained(binding, item.relation, item.va_cols) for item in node.rels]
    except SqlError as problem:
        # Inside of a transaction block something else is wrong with it.
        return MaintenanceStatement(kind, (), problem)
    return MaintenanceStatement(kind, tuple(dict.fromkeys(tables)))


_SWITCHES: Final = frozenset({"freeze", "full", "disable_page_skipping", "only_database_stats"})
"""Options of VACUUM that are off if nobody asks for them, and are not there."""
_REFUSED: Final = _SWITCHES | {
    "index_cleanup", "process_main", "process_toast", "truncate", "parallel", "skip_database_stats",
    "buffer_usage_limit",
}  # fmt: skip


def _analyzes(kind: MaintenanceKind, options: Sequence[Node]) -> bool:
    """Whether it is ANALYZE or VACUUM with it. Raises 42601, 0A000."""
    found = kind is MaintenanceKind.ANALYZE
    for option in options:
        name = option.defname
        if name == "buffer_usage_limit" or (name in _REFUSED and kind is MaintenanceKind.VACUUM):
            if name not in _SWITCHES or option_boolean(option):
                hint = "Use OPTIMIZE to rewrite a table." if name == "full" else None
                what = f"{kind.value} ({name.upper()})"
                raise not_supported(what, offset_to_position(option.location), hint=hint)
        elif name in ("verbose", "skip_locked"):
            option_boolean(option)
        elif name == "analyze" and kind is MaintenanceKind.VACUUM:
            found = option_boolean(option)
        else:
            message = f'unrecognized {kind.value} option "{name}"'
            raise SqlError("42601", message, offset_to_position(option.location))
    return found


def _maintained(binding: Binding, relation: Node, columns: Sequence[Node] | None = None) -> Table:
    try:
        table = find_table(binding, relation)
    except SqlError as error:
        if error.sqlstate != "42P01":
            raise
        raise undefined_relation(binding, relation) from None
    refuse_system_change(table)
    names = string_values(columns)
    for place, name in enumerate(names):
        shown = f'column "{name}" of relation "{table.name}"'
        if table.column(name) is None:
            raise SqlError("42703", f"{shown} does not exist")
        if name in names[:place]:
            raise SqlError("42701", f"{shown} appears more than once")
    return table
