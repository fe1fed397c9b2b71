"""RETURNING: a plan over the rows that a statement has written (transformReturningClause).

    relation `new`:  the table's columns │ their old values │ columns of other tables

A column name means the row's current value, in DELETE the deleted value. `new.` and `old.`, or
their aliases of WITH, name the two versions, which are NULL if missing. Columns of FROM, USING and
MERGE's source come from the source plan.

INVARIANTS
  T1  the source plan hands over only columns that RETURNING names.
  T2  xmin of a new row is known when the statement has been committed. It may therefore be shown,
      and nothing may be computed from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast.enums import ReturningOptionKind

from sql.binder.dml.target_relation import TargetRelation
from sql.binder.queries.target_list import settle_target, target_list
from sql.binder.resolve.coercion import is_exact
from sql.binder.scanned_tables import ScannedTable
from sql.binder.state import Binding, FromItem, Scope, check_conflicts
from sql.catalog.catalog import Table
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.plan.nodes import (
    Case,
    ColumnRef,
    Const,
    Expr,
    IsTest,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    Test,
)
from sql.plan.system_columns import XMIN
from sql.plan.traverse import column_ids, scans, substitute_columns
from sql.statements.bound import ModifyKind, OutputColumn
from sql.types.sql_type import BOOL, INT8

_LOCKED: Final = 1
"""PostgreSQL's xid of what is older than all transactions."""

NEW_ROWS_RELATION = RelationId("new")


@dataclass(frozen=True, slots=True)
class BoundReturning:
    """A bound RETURNING. `extras`: columns of the source plan that it needs (T1)."""

    plan: Plan | None = None
    columns: tuple[OutputColumn, ...] = ()
    old: bool = False
    extras: tuple[PlanColumn, ...] = ()
    tables: tuple[Table, ...] = ()
    xmins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturningRows:
    """The rows that RETURNING sees.

    `others`: items of the source plan, whose columns are `offered`; `others_first`: `*` begins with
    them. `old`: rows have an old version beside the new one. `was_deleted`: whether MERGE deleted
    the row; `action`: the action of MERGE. `gone`: the table of rows that were deleted, which have
    system columns still.
    """

    kind: ModifyKind
    others: Sequence[FromItem] = ()
    offered: Sequence[PlanColumn] = ()
    old: bool = False
    was_deleted: Expr | None = None
    action: Expr | None = None
    others_first: bool = False
    gone: ScannedTable | None = None


def returning(
    binding: Binding, outer: Scope, written: TargetRelation, node: Node, rows: ReturningRows
) -> BoundReturning:
    """Bind the RETURNING clause of a statement, if it has one."""
    clause = node.returningClause
    if clause is None:
        return BoundReturning()
    table = written.table
    now, before = _columns(binding, table), _columns(binding, table)
    row = written.item(binding, now, node.relation.alias)
    if not written.levels:
        row.scanned = _table_of(written, rows, before)
    # A row of MERGE may have none beside it.
    alone = rows.kind is ModifyKind.MERGE
    others = [_beside(item, alone=alone) for item in rows.others]
    items = [*others, row] if rows.others_first else [row, *others]
    scope = Scope(None, items, dict(outer.ctes), clause="RETURNING", merge_action=rows.action)
    scope.items.extend(_versions(scope, clause.options or (), written, rows, now, before))
    scope.ids.update([column.id for column in (*now, *before, *rows.offered)])
    targets = target_list(binding, scope, clause.exprs)
    for target in targets:
        settle_target(binding, target)
    exprs, xmins = _without_xmin(row.scanned, [target.expr for target in targets])
    used = {id_ for expr in exprs for id_ in column_ids(expr)}
    old = rows.old and not used.isdisjoint(column.id for column in before)
    if old:
        _check_old(written, rows, before)
    there = [side.there for side in outer.sides if side.there is not None]
    system = [column for one in outer.scanned for column in one.columns.values()]
    offered = dict.fromkeys([*rows.offered, *there, *system])
    extras = tuple([column for column in offered if column.id in used])
    input_ = _input(binding, table, now, before if old else (), extras)
    by = dict(zip([column.id for column in extras], _last(input_, len(extras)), strict=True))
    made = tuple([binding.new_column(target.name, target.expr.type) for target in targets])
    for column, expr in zip(made, exprs, strict=True):
        if expr.type.name == "numeric" and not is_exact(binding, expr):
            binding.inexact.add(column.id)
    plan = Project(input_, made, tuple([substitute_columns(expr, by) for expr in exprs]))
    described = tuple([_described(binding, target.name, target.expr) for target in targets])
    return BoundReturning(plan, described, old, extras, scanned_tables(binding, plan), xmins)


def _without_xmin(
    row: ScannedTable | None, exprs: Sequence[Expr]
) -> tuple[Sequence[Expr], tuple[int, ...]]:
    """The expressions with NULL for xmin of the new row, and the places where it stands (T2)."""
    asked = None if row is None or row.scan is not None else row.columns.get(XMIN)
    if asked is None:
        return exprs, ()
    places = [
        place
        for place, expr in enumerate(exprs)
        if isinstance(expr, ColumnRef) and expr.id == asked.id
    ]
    made = [Const(None, INT8) if n in places else expr for n, expr in enumerate(exprs)]
    if any(id_ == asked.id for expr in made for id_ in column_ids(expr)):
        raise not_supported("an expression with xmin in RETURNING", None)
    return made, tuple(places)


def _table_of(
    written: TargetRelation, rows: ReturningRows, before: Sequence[PlanColumn]
) -> ScannedTable:
    gone = rows.gone
    if gone is None:
        return ScannedTable(
            written.table,
            None,
            set(),
            xmax=_xmax(written, rows, before),
            written=rows.kind in (ModifyKind.INSERT, ModifyKind.UPDATE),
        )
    return ScannedTable(written.table, gone.scan, gone.ids, gone.columns, deleted=True)


def _xmax(
    written: TargetRelation, rows: ReturningRows, before: Sequence[PlanColumn]
) -> Expr | None:
    """Programs ask DO UPDATE for `xmax = 0`: PostgreSQL has locked a row that it updates, and not
    one that it inserts. None: unknown.
    """
    if rows.kind is ModifyKind.UPDATE or (rows.kind is ModifyKind.INSERT and not rows.old):
        return Const(0, INT8)
    marker = _marker(written, before)
    if rows.kind is not ModifyKind.INSERT or marker is None:
        return None
    new = IsTest(Test.IS_NULL, ColumnRef(marker.id, marker.type), BOOL)
    return Case(((new, Const(0, INT8)),), Const(_LOCKED, INT8), INT8)


def _beside(item: FromItem, *, alone: bool) -> FromItem:
    """An item beside the row. `alone`: there may be none, and its plan was made already."""
    return replace(item, nullable=True, side=None) if alone else item


def scanned_tables(binding: Binding, *plans: Plan) -> tuple[Table, ...]:
    """The tables that these plans scan."""
    relations = {scan.relation for plan in plans for scan in scans(plan)}
    return tuple(t for t in binding.tables.values() if RelationId(t.shard) in relations)


def _columns(binding: Binding, table: Table) -> tuple[PlanColumn, ...]:
    made = [binding.table_column(column) for column in table.columns]
    for ordinal, column in enumerate(made):
        binding.origins[column.id] = (table.oid, table.number_of(ordinal))
    return tuple(made)


def _input(
    binding: Binding,
    table: Table,
    now: tuple[PlanColumn, ...],
    before: tuple[PlanColumn, ...],
    extras: Sequence[PlanColumn],
) -> Scan:
    given: list[PlanColumn] = []
    for column in extras:
        made = binding.new_column(column.name, column.type)
        if column.id in binding.inexact:
            binding.inexact.add(made.id)
        given.append(made)
    columns = (*now, *before, *given)
    return Scan(NEW_ROWS_RELATION, table.name, columns, tuple(range(len(columns))))


def _last(scan: Scan, count: int) -> list[Expr]:
    kept = scan.columns[len(scan.columns) - count :]
    return [ColumnRef(column.id, column.type) for column in kept]


def _described(binding: Binding, name: str, expr: Expr) -> OutputColumn:
    origin = binding.origins.get(expr.id, (0, 0)) if isinstance(expr, ColumnRef) else (0, 0)
    return OutputColumn(name, binding.shown.of(expr) or expr.type, *origin)


# --- OLD and NEW -------------------------------------------------------------------------------


def _versions(
    scope: Scope,
    options: Sequence[Node],
    written: TargetRelation,
    rows: ReturningRows,
    now: Sequence[PlanColumn],
    before: Sequence[PlanColumn],
) -> list[FromItem]:
    """The items `old` and `new`, under the names that the clause gives them."""
    given: dict[str, tuple[str, Node]] = {}
    for option in options:
        word = "OLD" if option.option == ReturningOptionKind.RETURNING_OPTION_OLD else "NEW"
        if word in given:
            message = f"{word} cannot be specified multiple times"
            raise SqlError("42601", message, offset_to_position(option.location))
        given[word] = (option.value, option)
    visible = {item.name for item in scope.items if item.names_visible}
    items: list[FromItem] = []
    was = rows.kind in (ModifyKind.UPDATE, ModifyKind.DELETE)
    stays = rows.kind is not ModifyKind.DELETE and rows.was_deleted is None
    for word, columns, maybe in (
        ("OLD", _old(written, rows, now, before), not was),
        ("NEW", _new(written, rows, now), not stays),
    ):
        name = given[word][0] if word in given else word.lower()
        if word not in given and name in visible:
            continue
        item = FromItem(name, columns, columns_visible=False, nullable=maybe, again=True)
        if not written.levels:
            item.scanned = ScannedTable(written.table, None, set())
        if word in given:
            _check_name([*scope.items, *items], item, given[word][1])
        items.append(item)
    return items


def _check_name(items: Sequence[FromItem], item: FromItem, option: Node) -> None:
    try:
        check_conflicts(items, [item])
    except SqlError as error:
        raise error.at(offset_to_position(option.location)) from None


def _old(
    written: TargetRelation,
    rows: ReturningRows,
    now: Sequence[PlanColumn],
    before: Sequence[PlanColumn],
) -> list[tuple[str, Expr]]:
    if rows.kind is ModifyKind.DELETE:
        return _named(written, now)
    if rows.old:
        return _where_there(written, rows, before)
    return _nulls(written)


def _where_there(
    written: TargetRelation, rows: ReturningRows, before: Sequence[PlanColumn]
) -> list[tuple[str, Expr]]:
    """What a view computes of a row that was there, and NULL of one that was not."""
    named, marker = _named(written, before), _marker(written, before)
    if rows.kind is ModifyKind.UPDATE or marker is None:
        return named
    gone = IsTest(Test.IS_NULL, ColumnRef(marker.id, marker.type), BOOL)
    return [
        (name, expr)
        if isinstance(expr, ColumnRef)
        else (name, Case(((gone, Const(None, expr.type)),), expr, expr.type))
        for name, expr in named
    ]


def _marker(written: TargetRelation, before: Sequence[PlanColumn]) -> PlanColumn | None:
    """A column that only a row has that was not there before is NULL in."""
    columns = zip(written.table.columns, before, strict=True)
    return next((made for column, made in columns if column.not_null), None)


def _check_old(written: TargetRelation, rows: ReturningRows, before: Sequence[PlanColumn]) -> None:
    """0A000 where it would not be known whether there was a row for a view to compute from."""
    computed = any(not isinstance(expr, ColumnRef) for expr in written.shown(before))
    may_be_new = rows.kind in (ModifyKind.INSERT, ModifyKind.MERGE)
    if computed and may_be_new and _marker(written, before) is None:
        raise not_supported("OLD in RETURNING of this view, over a table without NOT NULL", None)


def _new(
    written: TargetRelation, rows: ReturningRows, now: Sequence[PlanColumn]
) -> list[tuple[str, Expr]]:
    if rows.kind is ModifyKind.DELETE:
        return _nulls(written)
    named = _named(written, now)
    gone = rows.was_deleted
    if gone is None:
        return named
    return [
        (name, Case(((gone, Const(None, expr.type)),), expr, expr.type)) for name, expr in named
    ]


def _named(written: TargetRelation, columns: Sequence[PlanColumn]) -> list[tuple[str, Expr]]:
    shown = written.shown(columns)
    return [(column.name, expr) for column, expr in zip(written.columns, shown, strict=True)]


def _nulls(written: TargetRelation) -> list[tuple[str, Expr]]:
    return [(column.name, Const(None, column.type)) for column in written.columns]
