"""UPDATE and DELETE: join the target's rows and identities with FROM or USING.

The result is described in `sql/statements/bound.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pglast import ast

from sql.binder.dml.assignment import assignments
from sql.binder.dml.check_option import view_checks
from sql.binder.dml.returning import BoundReturning, ReturningRows, returning, scanned_tables
from sql.binder.dml.target_relation import TargetRelation, resolve_target
from sql.binder.dml.updatable_views import WriteEvent
from sql.binder.expressions.expression import condition
from sql.binder.queries.from_clause import from_clause
from sql.binder.queries.select import bind_with
from sql.binder.resolve.column_lookup import hidden_target
from sql.binder.resolve.outer_join_presence import with_presence_columns
from sql.binder.resolve.relations import table_scan
from sql.binder.resolve.system_columns import with_system_columns
from sql.binder.scanned_tables import ScannedTable
from sql.binder.state import Binding, FromItem, Scope, SelectResult
from sql.binder.stored.table_changes import with_generated_columns
from sql.binder.stored.unique_indexes import unique_index_columns
from sql.catalog.catalog import Table
from sql.parser.syntax import Node, is_a
from sql.plan.nodes import (
    ColumnRef,
    Expr,
    Filter,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    Scan,
    output_columns,
)
from sql.plan.pruning import prune_columns
from sql.plan.traverse import (
    plan_column_ids,
)
from sql.statements.bound import Modify, ModifyKind


@dataclass(slots=True)
class _Target:
    """The table to change, and the rows of the statement so far; `item`: the target's."""

    scope: Scope
    written: TargetRelation
    table: Table
    scan: Scan
    plan: Plan
    item: FromItem

    @property
    def others(self) -> list[FromItem]:
        """What FROM or USING makes visible."""
        return [item for item in self.scope.items if item is not self.item]


def update(binding: Binding, node: Node, known: Mapping[str, SelectResult] | None = None) -> Modify:
    """UPDATE .. SET .. [FROM ..] [WHERE ..]. `known`: WITH queries of the whole statement."""
    target = _target(binding, node, node.fromClause or (), Scope(ctes=dict(known or {})))
    scope, table = target.scope, target.table
    old = {column.name: ColumnRef(column.id, column.type) for column in target.scan.columns}
    _filter(binding, target, node)  # PostgreSQL looks at WHERE first, too.
    scope.clause = "UPDATE"
    scope.acts = True
    changes = assignments(binding, scope, target.written, node.targetList, WriteEvent.UPDATE)
    scope.acts = False
    exprs = [changes.get(index, old[column.name]) for index, column in enumerate(table.columns)]
    returned = _returned(binding, target, node, ModifyKind.UPDATE)
    every = tuple(range(len(table.columns)))
    kept = every if returned.old else with_generated_columns(table, changes)
    return _modify(binding, target, ModifyKind.UPDATE, exprs, kept, returned)


def delete(binding: Binding, node: Node, known: Mapping[str, SelectResult] | None = None) -> Modify:
    """DELETE FROM .. [USING ..] [WHERE ..]. `known`: WITH queries of the whole statement."""
    target = _target(binding, node, node.usingClause or (), Scope(ctes=dict(known or {})))
    _filter(binding, target, node)
    returned = _returned(binding, target, node, ModifyKind.DELETE)
    every = tuple(range(len(target.table.columns)))
    kept = every if returned.plan is not None else _cheap_columns(binding, target)
    return _modify(binding, target, ModifyKind.DELETE, (), kept, returned)


def _filter(binding: Binding, target: _Target, node: Node) -> None:
    if node.whereClause is not None:
        target.scope.clause = "WHERE"
        where = condition(binding, target.scope, node.whereClause, "WHERE")
        target.plan = Filter(target.plan, where)


def _returned(binding: Binding, target: _Target, node: Node, kind: ModifyKind) -> BoundReturning:
    rows = ReturningRows(
        kind,
        target.others,
        output_columns(target.plan) if target.others else (),
        old=kind is ModifyKind.UPDATE,
        gone=target.item.scanned if kind is ModifyKind.DELETE else None,
    )
    return returning(binding, target.scope, target.written, node, rows)


def _modify(
    binding: Binding,
    target: _Target,
    kind: ModifyKind,
    exprs: Sequence[Expr],
    old: tuple[int, ...],
    returned: BoundReturning,
) -> Modify:
    source = prune_columns(_identified(binding, target, exprs, old=old, extras=returned.extras))
    return Modify(
        kind,
        target.table,
        source,
        scanned_tables(binding, source),
        returned.plan,
        returned.columns,
        old,
        len(returned.extras),
        returned.old,
        returned.tables,
        returned.xmins,
        view_checks=None if kind is ModifyKind.DELETE else view_checks(binding, target.written),
    )


def _cheap_columns(binding: Binding, target: _Target) -> tuple[int, ...]:
    """What a DELETE tells of the rows that go, so that few others conflict with it: what it looks
    at anyway, keys, and everything of a small fixed size.
    """
    table = target.table
    used = set(plan_column_ids(target.plan))
    keys = {ordinal for key in table.keys for ordinal in key.columns}
    keys |= unique_index_columns(binding.context.catalog, table)
    return tuple(
        ordinal
        for ordinal, (column, scanned) in enumerate(
            zip(table.columns, target.scan.columns, strict=True)
        )
        if ordinal in keys
        or scanned.id in used
        or column.type.size > 0
        or column.type.name == "numeric"
    )


def _target(binding: Binding, node: Node, more: Sequence[Node], scope: Scope) -> _Target:
    """The table to change with its rows' identities, joined with FROM or USING."""
    if node.withClause is not None:
        bind_with(binding, scope, node.withClause)
    event = WriteEvent.UPDATE if is_a(node, ast.UpdateStmt) else WriteEvent.DELETE
    written = resolve_target(binding, node.relation, event)
    table = written.table
    binding.tables[table.schema, table.name] = table
    target = table_scan(binding, table, identity=True)
    item = written.item(binding, target.columns, node.relation.alias)
    if not written.levels:
        item.scanned = ScannedTable(table, target, scope.ids)
        scope.scanned = [item.scanned]
    plan = written.seen(target, target.columns)
    if more:
        # FROM cannot see the target, not even by LATERAL; the target comes first in the namespace.
        inner = Scope(None, [hidden_target(item)], dict(scope.ctes))
        right = from_clause(binding, inner, more)
        del inner.items[0]
        scope.items, scope.ids, scope.sides = [item, *inner.items], inner.ids, inner.sides
        scope.scanned += inner.scanned
        for one in scope.scanned:
            one.ids = scope.ids
        plan = Join(JoinKind.CROSS, plan, right, None)
    else:
        scope.items = [item]
    scope.ids.update([column.id for column in target.columns])
    return _Target(scope, written, table, target, plan, item)


def _identified(
    binding: Binding,
    target: _Target,
    exprs: Sequence[Expr],
    *,
    old: Sequence[int],
    extras: Sequence[PlanColumn],
) -> Plan:
    """source, index, then the table's columns if new values are given, then some old values, then
    what RETURNING needs of other tables.
    """
    table, scanned = target.table, target.scan
    assert scanned.identity is not None, "the target is scanned with its rows' identities"
    who = [replace(column, id=binding.new_id()) for column in scanned.identity]
    made: list[PlanColumn] = []
    if exprs:
        made = [binding.table_column(column) for column in table.columns]
    before = [scanned.columns[ordinal] for ordinal in old]
    made += [binding.new_column(f"old {column.name}", column.type) for column in before]
    made += [binding.new_column(column.name, column.type) for column in extras]
    refs = [ColumnRef(c.id, c.type) for c in scanned.identity]
    handed = [ColumnRef(column.id, column.type) for column in (*before, *extras)]
    scope = target.scope
    joined = with_presence_columns(target.plan, scope.sides)
    joined = with_system_columns(joined, scope.scanned)
    return Project(joined, (*who, *made), (*refs, *exprs, *handed))
