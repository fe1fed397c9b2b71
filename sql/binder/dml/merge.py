"""MERGE: join source and target once, and choose an action for each row (transformMergeStmt).

    source ⟗ target ─▶ clause: the first WHEN that applies ─▶ identity, action, new, old, extras

The kind of the join depends on the WHEN clauses: it preserves unmatched rows of the source, of the
target, of both or of neither.

INVARIANTS
  M1  an expression of a clause is evaluated only for the rows of that clause.
  M2  a target row whose columns are all NULL differs from a missing one by its identity, a source
      row by a column that the join adds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast.enums import CmdType, MergeMatchKind

from sql.binder.dml.assignment import (
    DEFAULT_NODE,
    assigned_value,
    assignments,
    check_value_count,
    insert_columns,
)
from sql.binder.dml.check_option import view_checks
from sql.binder.dml.insert import check_row_defaults
from sql.binder.dml.overriding import takes_given_value
from sql.binder.dml.returning import ReturningRows, returning, scanned_tables
from sql.binder.dml.target_relation import TargetRelation, resolve_target
from sql.binder.dml.updatable_views import WriteEvent
from sql.binder.expressions.expression import condition
from sql.binder.queries.from_clause import from_item
from sql.binder.queries.select import bind_with
from sql.binder.resolve.outer_join_presence import with_presence_columns
from sql.binder.resolve.relations import table_scan
from sql.binder.resolve.system_columns import with_system_columns
from sql.binder.scanned_tables import ScannedTable
from sql.binder.state import Binding, FromItem, Scope, SelectResult
from sql.binder.stored.column_expressions import per_row_default
from sql.catalog.catalog import Table
from sql.errors import SqlError, not_supported
from sql.functions.table import operators
from sql.parser.syntax import Node
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    Filter,
    InList,
    IsTest,
    Join,
    JoinKind,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Scan,
    Test,
    Values,
    output_columns,
)
from sql.plan.pruning import prune_columns
from sql.plan.traverse import (
    substitute_columns,
)
from sql.statements.bound import MergeAction, Modify, ModifyKind
from sql.types.sql_type import BOOL, INT4, TEXT, SqlType

_BY_TARGET: Final = MergeMatchKind.MERGE_WHEN_NOT_MATCHED_BY_TARGET
_BY_SOURCE: Final = MergeMatchKind.MERGE_WHEN_NOT_MATCHED_BY_SOURCE
_ACTIONS: Final = {
    CmdType.CMD_INSERT: MergeAction.INSERT,
    CmdType.CMD_UPDATE: MergeAction.UPDATE,
    CmdType.CMD_DELETE: MergeAction.DELETE,
}

_EVENTS: Final = {
    MergeAction.INSERT: WriteEvent.INSERT,
    MergeAction.UPDATE: WriteEvent.UPDATE,
    MergeAction.DELETE: WriteEvent.DELETE,
}


@dataclass(frozen=True, slots=True)
class _When:
    """One clause. `action` None: DO NOTHING. `values`: the new row, by ordinal."""

    kind: MergeMatchKind
    condition: Expr | None
    action: MergeAction | None
    values: Sequence[Expr]


@dataclass(frozen=True, slots=True)
class _Sides:
    """Target and source, and what they make visible. `present`: true for a row of the source; None
    if every row of the join has one.
    """

    written: TargetRelation
    target: Scan
    seen: Plan
    item: FromItem
    source: Plan
    items: Sequence[FromItem]
    present: PlanColumn | None
    scope: Scope

    @property
    def table(self) -> Table:
        """The table whose rows it is about."""
        return self.written.table

    def there(self, kind: MergeMatchKind) -> Expr:
        """Whether a row of the join is of this kind (M2)."""
        assert self.target.identity is not None, "the target is scanned with its identity"
        who = self.target.identity[0]
        has_target = IsTest(Test.IS_NOT_NULL, ColumnRef(who.id, who.type), BOOL)
        if kind == _BY_TARGET:
            return IsTest(Test.IS_NULL, ColumnRef(who.id, who.type), BOOL)
        if self.present is None:
            return has_target
        here = ColumnRef(self.present.id, BOOL)
        if kind == _BY_SOURCE:
            return IsTest(Test.IS_NULL, here, BOOL)
        return Logical(BoolOp.AND, (has_target, IsTest(Test.IS_NOT_NULL, here, BOOL)), BOOL)

    def seen_by(self, kind: MergeMatchKind) -> list[FromItem]:
        """What a clause of this kind may name; the rest is known and hidden."""
        hidden = [replace(self.item, lateral_only=True, lateral_ok=False)]
        if kind == _BY_TARGET:
            return [*hidden, *self.items]
        if kind == _BY_SOURCE:
            return [
                self.item,
                *[replace(item, lateral_only=True, lateral_ok=False) for item in self.items],
            ]
        return [self.item, *self.items]


def merge(binding: Binding, node: Node, known: Mapping[str, SelectResult] | None = None) -> Modify:
    """MERGE INTO .. USING .. ON .. WHEN .. [RETURNING ..]. `known`: WITH queries of the whole
    statement.
    """
    sides = _sides(binding, node, Scope(ctes=dict(known or {})))
    _check_reachable(node.mergeWhenClauses)
    scope = sides.scope
    scope.items = [sides.item, *sides.items]
    scope.clause = "JOIN/ON"
    on = condition(binding, scope, node.joinCondition, "JOIN/ON")
    whens = [_when(binding, sides, clause) for clause in node.mergeWhenClauses]
    _check_filled(binding, sides.table, whens)
    joined = with_presence_columns(
        Join(_join_kind(whens), sides.source, sides.seen, on), scope.sides
    )
    joined = with_system_columns(joined, scope.scanned)
    extra = binding.new_column("action", INT4)
    action = ColumnRef(extra.id, INT4)
    rows = ReturningRows(
        ModifyKind.MERGE,
        sides.items,
        (extra, *output_columns(joined)),
        old=True,
        was_deleted=_is(action, MergeAction.DELETE),
        action=_action_name(action),
        others_first=True,
    )
    returned = returning(binding, scope, sides.written, node, rows)
    source = prune_columns(_source(binding, sides, joined, whens, extra, returned.extras))
    return Modify(
        ModifyKind.MERGE,
        sides.table,
        source,
        scanned_tables(binding, source),
        returned.plan,
        returned.columns,
        tuple(range(len(sides.table.columns))),
        len(returned.extras),
        returned.old,
        returned.tables,
        view_checks=view_checks(binding, sides.written),
    )


# --- source and target -------------------------------------------------------------------------


def _sides(binding: Binding, node: Node, scope: Scope) -> _Sides:
    if node.withClause is not None:
        if node.withClause.recursive:
            raise SqlError("0A000", "WITH RECURSIVE is not supported for MERGE statement")
        bind_with(binding, scope, node.withClause)
    written = resolve_target(binding, node.relation, WriteEvent.MERGE, _events(node))
    table = written.table
    binding.tables[table.schema, table.name] = table
    target = table_scan(binding, table, identity=True)
    item = written.item(binding, target.columns, node.relation.alias)
    seen = written.seen(target, target.columns)
    inner = Scope(ctes=dict(scope.ctes))
    source, items = from_item(binding, inner, node.sourceRelation)
    scope.sides = inner.sides
    if not written.levels:
        item.scanned = ScannedTable(table, target, scope.ids)
        scope.scanned = [item.scanned]
    scope.scanned += inner.scanned
    for one in scope.scanned:
        one.ids = scope.ids
    _check_names(item, items)
    marked, present = _marked(binding, source, node.mergeWhenClauses)
    scope.ids.update([*inner.ids, *[column.id for column in target.columns]])
    return _Sides(written, target, seen, item, marked, items, present, scope)


def _marked(
    binding: Binding, source: Plan, clauses: Sequence[Node]
) -> tuple[Plan, PlanColumn | None]:
    """The source, and what tells its rows from those that it lacks. Where none lack one there is
    nothing to tell: Spark fails over a subquery that refers to a constant.
    """
    if all(clause.matchKind != _BY_SOURCE for clause in clauses):
        return source, None
    present = binding.new_column("present", BOOL)
    one = Values((present,), ((Const(True, BOOL),),))
    return Join(JoinKind.CROSS, source, one, None), present


def _events(node: Node) -> list[WriteEvent]:
    """What the clauses do, in their order."""
    actions = [_ACTIONS.get(clause.commandType) for clause in node.mergeWhenClauses]
    return [_EVENTS[action] for action in actions if action is not None]


def _check_names(target: FromItem, items: Sequence[FromItem]) -> None:
    if any(item.names_visible and item.name == target.name for item in items):
        detail = "The name is used both as MERGE target table and data source."
        message = f'name "{target.name}" specified more than once'
        raise SqlError("42712", message, detail=detail)


def _check_reachable(clauses: Sequence[Node]) -> None:
    settled: set[int] = set()
    for clause in clauses:
        if clause.matchKind in settled:
            message = "unreachable WHEN clause specified after unconditional WHEN clause"
            raise SqlError("42601", message)
        if clause.condition is None:
            settled.add(clause.matchKind)


def _join_kind(whens: Sequence[_When]) -> JoinKind:
    """The source stands left."""
    kinds = {when.kind for when in whens}
    if _BY_TARGET in kinds:
        return JoinKind.FULL if _BY_SOURCE in kinds else JoinKind.LEFT
    return JoinKind.RIGHT if _BY_SOURCE in kinds else JoinKind.INNER


# --- clauses -----------------------------------------------------------------------------------


def _when(binding: Binding, sides: _Sides, clause: Node) -> _When:
    scope = sides.scope
    scope.items = sides.seen_by(clause.matchKind)
    asked: Expr | None = None
    if clause.condition is not None:
        scope.clause = "MERGE WHEN conditions"
        asked = condition(binding, scope, clause.condition, "WHEN")
    action = _ACTIONS.get(clause.commandType)
    return _When(clause.matchKind, asked, action, _values(binding, sides, clause, action))


def _values(
    binding: Binding, sides: _Sides, clause: Node, action: MergeAction | None
) -> Sequence[Expr]:
    scope = sides.scope
    old = [ColumnRef(column.id, column.type) for column in sides.target.columns]
    match action:
        case MergeAction.INSERT:
            return _inserted(binding, scope, sides.written, clause)
        case MergeAction.UPDATE:
            scope.clause = "UPDATE"
            changes = assignments(
                binding, scope, sides.written, clause.targetList, WriteEvent.MERGE
            )
            return [changes.get(ordinal, ref) for ordinal, ref in enumerate(old)]
        case MergeAction.DELETE:
            return old
        case _:
            return ()


def _inserted(
    binding: Binding, scope: Scope, written: TargetRelation, clause: Node
) -> Sequence[Expr]:
    scope.clause = "VALUES"
    table = written.table
    targets = insert_columns(written, clause.targetList)
    items: Sequence[Node] = clause.values or ()
    if items:
        check_value_count(clause.targetList, targets, items)
    ordinals = written.ordinals(targets[: len(items)], WriteEvent.MERGE)
    given = {
        ordinal: assigned_value(binding, scope, item, written.columns[place])
        for ordinal, place, item in zip(ordinals, targets, items, strict=False)
        if takes_given_value(
            table.columns[ordinal], clause.override, default=type(item) is DEFAULT_NODE
        )
    }
    return [
        given.get(ordinal) or per_row_default(binding, written.defaults, ordinal)
        for ordinal in range(len(table.columns))
    ]


def _check_filled(binding: Binding, table: Table, whens: Sequence[_When]) -> None:
    """Values of sequences are filled in for all new rows of a table, or for none."""
    inserts = [when for when in whens if when.action is MergeAction.INSERT]
    for ordinal in binding.filled.get(table.oid, ()):
        if any(when.values[ordinal] != _no_value(table, ordinal) for when in inserts):
            raise not_supported("MERGE that gives values to a column with a sequence, or none")
    if inserts:
        check_row_defaults(binding, table)


def _no_value(table: Table, ordinal: int) -> Expr:
    return Const(None, table.columns[ordinal].type)


# --- the plan ----------------------------------------------------------------------------------


def _source(
    binding: Binding,
    sides: _Sides,
    joined: Plan,
    whens: Sequence[_When],
    extra: PlanColumn,
    extras: Sequence[PlanColumn],
) -> Plan:
    """The shape of `Modify.source`: first which clause applies, then its values (M1)."""
    chosen = binding.new_column("clause", INT4)
    known = output_columns(joined)
    kept = tuple([replace(column, id=binding.new_id()) for column in known])
    refs = [ColumnRef(column.id, column.type) for column in known]
    clause: Expr = Case(
        tuple((_applies(sides, when), Const(n, INT4)) for n, when in enumerate(whens)),
        Const(None, INT4),
        INT4,
    )
    if all(when.action is None for when in whens):
        clause = Const(None, INT4)
    told = Project(joined, (*kept, chosen), (*refs, clause))
    by: dict[ColumnId, Expr] = {
        column.id: ColumnRef(fresh.id, fresh.type)
        for column, fresh in zip(known, kept, strict=True)
    }
    which = ColumnRef(chosen.id, INT4)
    acting = Filter(told, _any_of(which, [n for n, w in enumerate(whens) if w.action is not None]))
    return _projected(binding, sides, acting, whens, which, by, extra, extras)


def _projected(
    binding: Binding,
    sides: _Sides,
    acting: Plan,
    whens: Sequence[_When],
    which: ColumnRef,
    by: Mapping[ColumnId, Expr],
    extra: PlanColumn,
    extras: Sequence[PlanColumn],
) -> Plan:
    assert sides.target.identity is not None, "the target is scanned with its identity"
    table = sides.table
    action = _one_of(
        [
            (_is(which, n), Const(int(when.action), INT4))
            for n, when in enumerate(whens)
            if when.action is not None
        ],
        INT4,
    )
    columns = [replace(column, id=binding.new_id()) for column in sides.target.identity]
    exprs: list[Expr] = [by[column.id] for column in sides.target.identity]
    columns.append(binding.new_column("action", INT4))
    exprs.append(action)
    for ordinal, column in enumerate(table.columns):
        cases = tuple(
            (_is(which, n), substitute_columns(when.values[ordinal], by))
            for n, when in enumerate(whens)
            if when.action is not None
        )
        columns.append(binding.new_column(column.name, column.type))
        exprs.append(_one_of(cases, column.type))
    for scanned in sides.target.columns:
        columns.append(binding.new_column(f"old {scanned.name}", scanned.type))
        exprs.append(by[scanned.id])
    for needed in extras:
        columns.append(binding.new_column(needed.name, needed.type))
        exprs.append(action if needed is extra else by[needed.id])
    return Project(acting, tuple(columns), tuple(exprs))


def _one_of(cases: Sequence[tuple[Expr, Expr]], type_: SqlType) -> Expr:
    """What the clause that applies says; without a question if all say the same."""
    said = {value for _, value in cases}
    if len(said) == 1:
        return said.pop()
    return Case(tuple(cases), Const(None, type_), type_) if cases else Const(None, type_)


def _applies(sides: _Sides, when: _When) -> Expr:
    kind = sides.there(when.kind)
    if when.condition is None:
        return kind
    return Logical(BoolOp.AND, (kind, when.condition), BOOL)


def _any_of(which: Expr, numbers: Sequence[int]) -> Expr:
    """One expression for all: an engine that looks into `which` looks once."""
    items = tuple([Const(int(number), INT4) for number in numbers])
    return InList(which, items, negated=False, type=BOOL) if items else Const(False, BOOL)


def _is(expr: Expr, number: int) -> Expr:
    row = next(row for row in operators("=") if row.args == ("int4", "int4"))
    return Call(row, (expr, Const(int(number), INT4)), BOOL)


def _action_name(action: Expr) -> Expr:
    named = tuple((_is(action, a), Const(a.name, TEXT)) for a in MergeAction)
    return Case(named, Const(None, TEXT), TEXT)
