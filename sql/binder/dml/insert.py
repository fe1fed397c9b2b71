"""INSERT: turn VALUES, a query or DEFAULT VALUES into a source plan of the table's columns.

The result is described in `sql/statements/bound.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pglast.enums import OnConflictAction

from sql.binder.dml.assignment import (
    DEFAULT_NODE,
    assigned_value,
    assignment_cast,
    check_value_count,
    insert_columns,
)
from sql.binder.dml.check_option import view_checks
from sql.binder.dml.clustering import sorted_by_clustering
from sql.binder.dml.on_conflict import on_conflict
from sql.binder.dml.overriding import takes_given_value
from sql.binder.dml.returning import ReturningRows, returning, scanned_tables
from sql.binder.dml.target_relation import TargetRelation, resolve_target
from sql.binder.dml.updatable_views import WriteEvent
from sql.binder.queries.select import bind_query, bind_with
from sql.binder.resolve.query_result import retype_column
from sql.binder.state import Binding, Scope, SelectResult
from sql.binder.stored.column_expressions import default_value, per_row_default
from sql.catalog.catalog import Column, Table
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, node_position
from sql.plan.nodes import ColumnRef, Expr, Plan, Project, Values
from sql.plan.pruning import prune_columns
from sql.statements.bound import Modify, ModifyKind, OnConflict
from sql.types.sql_type import SqlType

_CLAUSES: Final = ("sortClause", "limitCount", "limitOffset", "lockingClause", "withClause")
"""VALUES with one of them are a query."""


def insert(binding: Binding, node: Node, known: Mapping[str, SelectResult] | None = None) -> Modify:
    """INSERT INTO .. VALUES | SELECT | DEFAULT VALUES. `known`: WITH queries of the whole
    statement.
    """
    scope = Scope(ctes=dict(known or {}))
    if node.withClause is not None:
        bind_with(binding, scope, node.withClause)
    written = resolve_target(binding, node.relation, WriteEvent.INSERT)
    table = written.table
    targets = insert_columns(written, node.cols)
    select = node.selectStmt
    binding.makes_rows = True
    if select is None:
        source: Plan = single_row_insert(binding, written.defaults, {})
    elif select.valuesLists and not any(getattr(select, clause) for clause in _CLAUSES):
        source = _values(binding, scope, written, targets, select.valuesLists, node)
    else:
        binding.makes_rows = False
        binding.acts_in = select
        source = _select(binding, scope, written, targets, select, node)
        if node.returningClause is None and node.onConflictClause is None:
            source = sorted_by_clustering(table, source)
    binding.makes_rows = False
    check_row_defaults(binding, table)
    source = prune_columns(source)
    conflict = _conflict(binding, scope, written, node)
    rows = ReturningRows(
        ModifyKind.INSERT, old=conflict is not None and conflict.update is not None
    )
    returned = returning(binding, scope, written, node, rows)
    return Modify(
        ModifyKind.INSERT,
        table,
        source,
        scanned_tables(binding, source),
        returned.plan,
        returned.columns,
        returning_old=returned.old,
        returning_tables=returned.tables,
        xmins=returned.xmins,
        conflict=conflict,
        view_checks=view_checks(binding, written),
    )


def check_row_defaults(binding: Binding, table: Table) -> None:
    """Refuse per-row defaults that two parts of a statement would compute for one table.

    They are recorded by table, so they could not be told apart.
    """
    if table.oid in binding.inserted and table.oid in binding.filled:
        raise not_supported("several INSERTs into one table with a sequence in one statement")
    binding.inserted.add(table.oid)


def _conflict(
    binding: Binding, scope: Scope, written: TargetRelation, node: Node
) -> OnConflict | None:
    clause = node.onConflictClause
    if clause is None or clause.action == OnConflictAction.ONCONFLICT_NONE:
        return None
    return on_conflict(binding, scope, written, node)


def _values(
    binding: Binding,
    scope: Scope,
    written: TargetRelation,
    targets: Sequence[int],
    lists: Sequence[Sequence[Node]],
    node: Node,
) -> Plan:
    scope.clause = "VALUES"
    width = len(lists[0])
    for row in lists:
        if len(row) != width:
            message = "VALUES lists must all be the same length"
            raise SqlError("42601", message, node_position(row[0]))
    check_value_count(node.cols, targets, lists[0])
    columns = written.defaults.columns
    ordinals = written.ordinals(targets[:width], WriteEvent.INSERT)
    constants = {
        ordinal: default_value(binding, column)
        for ordinal, column in enumerate(columns)
        if column.expression is None and not (column.sequence or column.identity)
    }
    rows: list[tuple[Expr, ...]] = []
    for row in lists:
        given = {
            ordinals[index]: assigned_value(binding, scope, item, written.columns[targets[index]])
            for index, item in enumerate(row)
            if takes_given_value(
                columns[ordinals[index]], node.override, default=type(item) is DEFAULT_NODE
            )
        }
        # Defaults that are computed are computed for each row.
        values = [
            given.get(ordinal) or constants.get(ordinal) or default_value(binding, column)
            for ordinal, column in enumerate(columns)
        ]
        rows.append(tuple(values))
    made = tuple([binding.new_column(column.name, column.type) for column in columns])
    return Values(made, tuple(rows))


def single_row_insert(binding: Binding, table: Table, given: dict[int, Expr]) -> Plan:
    """A single row of these values, and defaults for the other columns."""
    made = tuple([binding.table_column(column) for column in table.columns])
    row = [
        given.get(ordinal) or default_value(binding, column)
        for ordinal, column in enumerate(table.columns)
    ]
    return Values(made, (tuple(row),))


def _select(
    binding: Binding,
    scope: Scope,
    written: TargetRelation,
    targets: Sequence[int],
    select: Node,
    node: Node,
) -> Project:
    result = bind_query(binding, select, Scope(ctes=dict(scope.ctes)))
    check_value_count(node.cols, targets, result.nodes)
    table = written.table
    ordinals = written.ordinals(targets[: len(result.columns)], WriteEvent.INSERT)
    given = {
        ordinal: _selected(binding, result, index, written.columns[targets[index]])
        for index, ordinal in enumerate(ordinals)
        if takes_given_value(table.columns[ordinal], node.override, default=False)
    }
    exprs = [
        given.get(ordinal) or per_row_default(binding, written.defaults, ordinal)
        for ordinal in range(len(table.columns))
    ]
    made = tuple([binding.table_column(column) for column in table.columns])
    return Project(result.plan, made, tuple(exprs))


def _selected(binding: Binding, result: SelectResult, index: int, column: Column) -> Expr:
    if index in result.unknown:
        retype_column(binding, result, index, _read_as(column.type))
    made = result.columns[index]
    expr = ColumnRef(made.id, made.type)
    return assignment_cast(binding, expr, result.nodes[index], column)


def _read_as(type_: SqlType) -> SqlType:
    """What a literal for a column is read as: a number of an interval is one of its last field."""
    match type_.name:
        case "interval":
            return type_
        case "numeric":
            return type_.bare()
        case name:
            return SqlType(name)
