"""INSERT, UPDATE, DELETE and RETURNING: statements to a source plan of a fixed shape
(`sql/statements.py`).
"""

from collections.abc import Sequence
from dataclasses import replace

from pglast import ast
from pglast.enums import OnConflictAction

from sql.bind_expressions import condition
from sql.bind_from import find_table, from_clause, scan, table_item
from sql.bind_queries import SelectResult, bind_query, bind_with
from sql.bind_targets import settled, target_list
from sql.binding import Binding
from sql.catalog import Column, Table
from sql.coerce import ASSIGNMENT, coerce, float_literal, stored
from sql.column_expressions import NEW_ROWS, default_value
from sql.errors import SqlError, mismatch, not_supported
from sql.look_up import refuse_system_write
from sql.plan import (
    ColumnRef,
    Const,
    Expr,
    Filter,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    Scan,
    Values,
)
from sql.scope import Item, Scope, check_conflicts
from sql.statements import Modify, ModifyKind, OutputColumn
from sql.syntax import Node, at, is_a, position
from sql.traverse import plan_column_ids, pruned, scans
from sql.types import SqlType, display

_DEFAULT = ast.SetToDefault


def assigned(binding: Binding, expr: Expr, node: Node, column: Column) -> Expr:
    """A value as its column stores it; 42804 if there is no assignment cast."""
    # The commonest case by far: a constant that is already what the column wants.
    if expr.type == column.type and type(expr) is Const:
        return expr
    done = coerce(binding, expr, node, column.type, ASSIGNMENT)
    if done is None:
        shown = display(SqlType(expr.type.name))
        wanted = display(SqlType(column.type.name))
        message = f'column "{column.name}" is of type {wanted} but expression is of type {shown}'
        hint = "You will need to rewrite or cast the expression."
        raise mismatch(message, position(node), hint=hint)
    return stored(binding, done, column.type)


# --- INSERT ------------------------------------------------------------------------------------


def insert(binding: Binding, node: Node) -> Modify:
    """INSERT INTO .. VALUES | SELECT | DEFAULT VALUES."""
    scope = Scope()
    if node.withClause is not None:
        bind_with(binding, scope, node.withClause)
    _refuse_conflict_clause(node)
    table = find_table(binding, node.relation)
    refuse_system_write(table)
    targets = _insert_columns(table, node)
    select = node.selectStmt
    if select is None:
        source: Plan = _one_row(binding, table, {})
    elif select.valuesLists and not (
        select.sortClause or select.limitCount or select.limitOffset or select.withClause
    ):
        source = _insert_values(binding, scope, table, targets, select.valuesLists, node)
    else:
        source = _insert_select(binding, scope, table, targets, select, node)
    tables = tuple(binding.tables.values())
    returning, columns = _returning(binding, scope, table, node)
    return Modify(ModifyKind.INSERT, table, pruned(source), tables, returning, columns)


def _refuse_conflict_clause(node: Node) -> None:
    clause = node.onConflictClause
    if clause is not None and clause.action != OnConflictAction.ONCONFLICT_NONE:
        raise not_supported("ON CONFLICT", at(clause.location))
    if node.override is not None and int(node.override) != 0:
        raise not_supported("OVERRIDING", None)


def _insert_columns(table: Table, node: Node) -> list[int]:
    """The ordinals that values are given for, in the statement's order."""
    if not node.cols:
        return list(range(len(table.columns)))
    by_name = {column.name: index for index, column in enumerate(table.columns)}
    ordinals: list[int] = []
    for target in node.cols:
        if target.indirection:
            raise not_supported("assigning to a part of a column", at(target.location))
        ordinal = by_name.get(target.name)
        if ordinal is None:
            message = f'column "{target.name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, at(target.location))
        if ordinal in ordinals:
            message = f'column "{target.name}" specified more than once'
            raise SqlError("42701", message, at(target.location))
        ordinals.append(ordinal)
    return ordinals


def _check_width(node: Node, targets: Sequence[int], count: int, nodes: Sequence[Node]) -> None:
    """42601 for more values than columns, or fewer than a given column list."""
    if count > len(targets):
        message = "INSERT has more expressions than target columns"
        raise SqlError("42601", message, position(nodes[len(targets)]))
    if node.cols and count < len(targets):
        message = "INSERT has more target columns than expressions"
        raise SqlError("42601", message, at(node.cols[count].location))


def _insert_values(
    binding: Binding,
    scope: Scope,
    table: Table,
    targets: Sequence[int],
    lists: Sequence[Sequence[Node]],
    node: Node,
) -> Plan:
    scope.clause = "VALUES"
    width = len(lists[0])
    for row in lists:
        if len(row) != width:
            message = "VALUES lists must all be the same length"
            raise SqlError("42601", message, position(row[0]))
    _check_width(node, targets, width, lists[0])
    columns = table.columns
    missing = [default_value(binding, column) for column in columns]
    rows: list[tuple[Expr, ...]] = []
    for row in lists:
        values: list[Expr] = list(missing)
        for index, item in enumerate(row):
            if type(item) is _DEFAULT:
                continue
            ordinal = targets[index]
            column = columns[ordinal]
            literal: Expr | None = float_literal(binding, item, column.type)
            expr = binding.bind_expression(binding, scope, item) if literal is None else literal
            values[ordinal] = assigned(binding, expr, item, column)
        rows.append(tuple(values))
    made = tuple([binding.new_column(column.name, column.type) for column in columns])
    return Values(made, tuple(rows))


def _one_row(binding: Binding, table: Table, given: dict[int, Expr]) -> Plan:
    made = tuple([binding.new_column(column.name, column.type) for column in table.columns])
    row = [
        given.get(index) or default_value(binding, column)
        for index, column in enumerate(table.columns)
    ]
    return Values(made, (tuple(row),))


def _insert_select(
    binding: Binding,
    scope: Scope,
    table: Table,
    targets: Sequence[int],
    select: Node,
    node: Node,
) -> Plan:
    result = bind_query(binding, select, Scope(ctes=dict(scope.ctes)))
    _check_width(node, targets, len(result.columns), result.nodes)
    exprs: list[Expr] = [default_value(binding, column) for column in table.columns]
    for index, ordinal in enumerate(targets[: len(result.columns)]):
        exprs[ordinal] = _selected(binding, result, index, table.columns[ordinal])
    made = tuple([binding.new_column(column.name, column.type) for column in table.columns])
    return Project(result.plan, made, tuple(exprs))


def _selected(binding: Binding, result: SelectResult, index: int, column: Column) -> Expr:
    if index in result.unknown:
        result.retype(
            binding,
            index,
            SqlType(column.type.name) if column.type.name != "numeric" else column.type.bare(),
        )
    made = result.columns[index]
    expr = ColumnRef(made.id, made.type)
    return assigned(binding, expr, result.nodes[index], column)


# --- UPDATE and DELETE -------------------------------------------------------------------------


def update(binding: Binding, node: Node) -> Modify:
    """UPDATE .. SET .. [FROM ..] [WHERE ..]."""
    scope, table, target, plan, item = _target(binding, node, node.fromClause or ())
    old = {column.name: ColumnRef(column.id, column.type) for column in target.columns}
    scope.clause = "UPDATE"
    changes = _assignments(binding, scope, table, node.targetList)
    if node.whereClause is not None:
        scope.clause = "WHERE"
        plan = Filter(plan, condition(binding, scope, node.whereClause, "WHERE"))
    exprs = [changes.get(index, old[column.name]) for index, column in enumerate(table.columns)]
    assigned_to = tuple(sorted(changes))
    source = _identified(binding, plan, target, table, exprs, old=assigned_to)
    returning, columns = _returning(binding, scope, table, node, item, refuse=bool(node.fromClause))
    tables = tuple(binding.tables.values())
    return Modify(ModifyKind.UPDATE, table, pruned(source), tables, returning, columns, assigned_to)


def delete(binding: Binding, node: Node) -> Modify:
    """DELETE FROM .. [USING ..] [WHERE ..]."""
    scope, table, target, plan, item = _target(binding, node, node.usingClause or ())
    if node.whereClause is not None:
        scope.clause = "WHERE"
        plan = Filter(plan, condition(binding, scope, node.whereClause, "WHERE"))
    returning, columns = _returning(
        binding, scope, table, node, item, refuse=bool(node.usingClause)
    )
    every = tuple(range(len(table.columns)))
    old = every if returning is not None else _cheap_columns(table, plan, target)
    source = _identified(binding, plan, target, table, (), old=old)
    tables = tuple(binding.tables.values())
    return Modify(ModifyKind.DELETE, table, pruned(source), tables, returning, columns, old)


def _cheap_columns(table: Table, plan: Plan, target: Scan) -> tuple[int, ...]:
    """What a DELETE tells of the rows that go, so that few others conflict with it: what it looks
    at anyway, keys, and everything of a small fixed size.
    """
    used = set(plan_column_ids(plan))
    keys = {ordinal for key in table.keys for ordinal in key.columns}
    return tuple(
        ordinal
        for ordinal, (column, scanned) in enumerate(zip(table.columns, target.columns, strict=True))
        if ordinal in keys
        or scanned.id in used
        or column.type.size > 0
        or column.type.name == "numeric"
    )


def _target(
    binding: Binding, node: Node, more: Sequence[Node]
) -> tuple[Scope, Table, Scan, Plan, Item]:
    """The table to change with its rows' identities, joined with FROM or USING."""
    scope = Scope()
    if node.withClause is not None:
        bind_with(binding, scope, node.withClause)
    table = find_table(binding, node.relation)
    refuse_system_write(table)
    binding.tables[table.schema, table.name] = table
    target = scan(binding, table, identity=True)
    item = table_item(target, table, node.relation.alias)
    plan: Plan = target
    if more:
        # FROM cannot see the target, not even by LATERAL; the target comes first in the namespace.
        inner = Scope(ctes=dict(scope.ctes))
        right = from_clause(binding, inner, more)
        check_conflicts([item], inner.items)
        scope.items, scope.ids = [item, *inner.items], inner.ids
        plan = Join(JoinKind.CROSS, target, right, None)
    else:
        scope.items = [item]
    scope.ids.update([column.id for column in target.columns])
    return scope, table, target, plan, item


def _identified(
    binding: Binding,
    plan: Plan,
    target: Scan,
    table: Table,
    exprs: Sequence[Expr],
    *,
    old: Sequence[int],
) -> Plan:
    """source, index, then the table's columns if new values are given, then some old values."""
    assert target.identity is not None, "the target is scanned with its rows' identities"
    who = [replace(column, id=binding.new_id()) for column in target.identity]
    refs = [ColumnRef(column.id, column.type) for column in target.identity]
    made: list[PlanColumn] = []
    if exprs:
        made = [binding.new_column(column.name, column.type) for column in table.columns]
    before = [target.columns[ordinal] for ordinal in old]
    made += [binding.new_column(f"old {column.name}", column.type) for column in before]
    values = [ColumnRef(column.id, column.type) for column in before]
    return Project(plan, (*who, *made), (*refs, *exprs, *values))


def _assignments(
    binding: Binding, scope: Scope, table: Table, nodes: Sequence[Node]
) -> dict[int, Expr]:
    by_name = {column.name: index for index, column in enumerate(table.columns)}
    changes: dict[int, Expr] = {}
    for target in nodes:
        value = target.val
        if is_a(value, ast.MultiAssignRef):
            value = _row_part(value, target)
        ordinal = by_name.get(target.name)
        if is_a(value, _DEFAULT):
            expr: Expr | None = None
        else:
            expr = (
                None
                if ordinal is None
                else float_literal(binding, value, table.columns[ordinal].type)
            )
            expr = expr or binding.expression(scope, value)
        if ordinal is None:
            message = f'column "{target.name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, at(target.location))
        if target.indirection:
            raise not_supported("assigning to a part of a column", at(target.location))
        column = table.columns[ordinal]
        if ordinal in changes:
            message = f'multiple assignments to same column "{target.name}"'
            raise SqlError("42601", message)
        changes[ordinal] = (
            default_value(binding, column)
            if expr is None
            else assigned(binding, expr, value, column)
        )
    return changes


def _row_part(value: Node, target: Node) -> Node:
    """One column of `(a, b) = (x, y)`."""
    source = value.source
    if not is_a(source, ast.RowExpr, ast.SubLink):
        message = (
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
        )
        raise SqlError("0A000", message, position(source))
    if is_a(source, ast.SubLink):
        raise not_supported("assigning a subquery to several columns", at(target.location))
    parts = source.args or ()
    if len(parts) != value.ncolumns:
        message = "number of columns does not match number of values"
        raise SqlError("42601", message, at(source.location))
    return parts[value.colno - 1]


# --- RETURNING ---------------------------------------------------------------------------------


def _returning(
    binding: Binding,
    outer: Scope,
    table: Table,
    node: Node,
    item: Item | None = None,
    *,
    refuse: bool = False,
) -> tuple[Plan | None, tuple[OutputColumn, ...]]:
    """RETURNING over the rows the statement made (or, for DELETE, removed)."""
    clause = node.returningClause
    if clause is None:
        return None, ()
    if clause.options:
        raise not_supported("RETURNING WITH", at(clause.options[0].location))
    rows = scan(binding, table, relation=NEW_ROWS)
    scope = Scope(ctes=dict(outer.ctes), clause="RETURNING")
    made = table_item(rows, table, node.relation.alias)
    scope.items = [made]
    if refuse and item is not None:
        # Other tables of the statement are out of reach here: the rows come from the session.
        others = [replace(other, lateral_only=True) for other in outer.items if other is not item]
        _refuse_others(clause.exprs, others)
    scope.ids.update([column.id for column in rows.columns])
    targets = target_list(binding, scope, clause.exprs)
    for target in targets:
        settled(binding, target)
    columns = tuple([binding.new_column(target.name, target.expr.type) for target in targets])
    described = []
    for target in targets:
        origin = (0, 0)
        if isinstance(target.expr, ColumnRef):
            origin = binding.origins.get(target.expr.id, (0, 0))
        described.append(OutputColumn(target.name, target.expr.type, *origin))
    plan = Project(rows, columns, tuple([target.expr for target in targets]))
    # The session has the new rows for this plan, and no other table.
    if any(read.relation != NEW_ROWS for read in scans(plan)):
        raise not_supported("a table in RETURNING", position(clause.exprs[0].val))
    return plan, tuple(described)


def _refuse_others(nodes: Sequence[Node], others: Sequence[Item]) -> None:
    names = {item.name for item in others}
    columns = {name for item in others for name, _ in item.columns}
    for node in nodes:
        for reference in _references(node.val):
            fields = reference.fields
            first = fields[0].sval if is_a(fields[0], ast.String) else None
            starred = first is None
            if starred or (first in names if len(fields) > 1 else first in columns):
                what = "RETURNING of columns of another table"
                raise not_supported(what, at(reference.location))


def _references(node: Node) -> Sequence[Node]:
    found: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if is_a(part, ast.ColumnRef):
            found.append(part)
        elif isinstance(part, tuple):
            waiting.extend(part)
        elif is_a(part, ast.Node):
            waiting.extend(getattr(part, name) for name in part)
    return found
