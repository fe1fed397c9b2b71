"""Calls that act once per result row: split nextval() and others off the engine's plan.

    select a, 'x' || nextval('s') from t      Project(a, 'x' || nextval('s'))
      ─▶ plan: Project(a)    calls: c1 = nextval('s')    after: Project(a, 'x' || c1) over `called`

An engine computes the rows of the plan. The session then makes the calls, row by row and from left
to right. Expressions that depend on the calls are evaluated over the resulting rows in process.

INVARIANTS
  W1  a call is made once for each row that the statement yields, in the order of the rows. It must
      stand above everything that filters or sorts rows; any other position is refused.
  W2  a call under a condition (CASE, COALESCE, AND, OR) is made where the condition holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from sql.binder.expressions.acting_calls import ROW_CALL_FUNCTIONS
from sql.binder.state import Binding
from sql.binder.stored.sequence_values import SEQUENCE_FUNCTIONS, constant_sequence
from sql.errors import not_supported
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    DistinctOn,
    DistinctRows,
    Expr,
    IsTest,
    Limit,
    Logical,
    Param,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    Sort,
    Subquery,
    Test,
    With,
    output_columns,
)
from sql.plan.traverse import (
    child_expressions,
    column_ids,
    inputs,
    plan_expressions,
    rewrite_children,
    substitute_columns,
)
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyOut,
    CreateTableAs,
    Explain,
    Modify,
    ModifyingWith,
    RefreshMaterializedView,
    RowCall,
    RowCalls,
)
from sql.types.sql_type import BOOL

ROW_CALL_RESULTS: Final = RelationId("called")
"""The relation of result rows, with the values of the calls."""

S = TypeVar(
    "S",
    BoundQuery,
    Modify,
    BoundQuery | Modify,
    BoundQuery | Modify | CreateTableAs | RefreshMaterializedView,
)


def split_row_calls(binding: Binding, bound: BoundStatement) -> BoundStatement:
    """The statement, with its per-row calls separated from the plan."""
    if not binding.acts:
        return bound
    match bound:
        case BoundQuery() | Modify() | CreateTableAs() | RefreshMaterializedView():
            return _divided(binding, bound)
        case ModifyingWith():
            parts = tuple([replace(p, modify=_divided(binding, p.modify)) for p in bound.parts])
            return replace(bound, parts=parts, main=_divided(binding, bound.main))
        case CopyOut():
            return replace(bound, query=_divided(binding, bound.query))
        case Explain():
            inner = split_row_calls(binding, bound.statement)
            assert isinstance(inner, BoundQuery | Modify | ModifyingWith | CreateTableAs), (
                "as it was"
            )
            return replace(bound, statement=inner)
        case _:
            raise AssertionError("calls are bound in statements that have rows")


def _divided(binding: Binding, bound: S) -> S:
    if isinstance(bound, BoundQuery):
        plan, calls = _split(binding, bound.plan)
        return replace(bound, plan=plan, calls=calls)
    assert bound.source is not None, "calls are found in it"
    plan, calls = _split(binding, bound.source)
    return replace(bound, source=plan, calls=calls)


def _split(binding: Binding, plan: Plan) -> tuple[Plan, RowCalls | None]:
    if not acts_in(plan):
        return plan, None
    splitting = _Splitting(binding)
    made, found = splitting.plan(plan)
    if acts_in(made):
        raise not_supported("a function that acts for each row here")
    columns = output_columns(plan)
    called = [call.column for call in splitting.calls]
    below = (*output_columns(made), *called)
    rows = Scan(ROW_CALL_RESULTS, ROW_CALL_RESULTS, below, tuple(range(len(below))))
    after = Project(rows, columns, tuple([found[column.id] for column in columns]))
    return made, RowCalls(tuple(splitting.calls), after)


@dataclass(frozen=True, slots=True)
class _Condition:
    """What must be true: over the columns that are made, and as an engine may compute it."""

    told: Expr
    computed: Expr | None


@dataclass(slots=True)
class _Splitting:
    """One plan that is taken apart."""

    binding: Binding
    calls: list[RowCall] = field(default_factory=list[RowCall])
    _instances: dict[ColumnId, ColumnRef] = field(default_factory=dict[ColumnId, ColumnRef])
    """What stands several times in an expression, and is one call (V1 of `volatile_calls.py`)."""
    _pieces: list[tuple[PlanColumn, Expr]] = field(default_factory=list[tuple[PlanColumn, Expr]])

    def plan(self, plan: Plan) -> tuple[Plan, dict[ColumnId, Expr]]:
        """The plan without calls, and what its columns are over its own and the calls'."""
        match plan:
            case Project() if any(map(_acts, plan.exprs)):
                return self._leaf(plan)
            case Project():
                made, found = self.plan(plan.input)
                pairs = zip(plan.columns, plan.exprs, strict=True)
                return made, {column.id: substitute_columns(expr, found) for column, expr in pairs}
            case Sort():
                made, found = self.plan(plan.input)
                if any(_is_made(found[id_], id_) for id_ in _sorted_by(plan)):
                    raise not_supported("ORDER BY a function that acts")
                return replace(plan, input=made), found
            case Limit() if plan.offset is None:
                made, found = self.plan(plan.input)
                return replace(plan, input=made), found
            case With():
                made, found = self.plan(plan.input)
                return replace(plan, input=made), found
            case Limit():
                raise not_supported("OFFSET over a function that acts")
            case DistinctRows() | DistinctOn():
                raise not_supported("DISTINCT over a function that acts")
            case _:
                raise not_supported("a function that acts for each row here")

    def _leaf(self, plan: Project) -> tuple[Plan, dict[ColumnId, Expr]]:
        found: dict[ColumnId, Expr] = {}
        for column, expr in zip(plan.columns, plan.exprs, strict=True):
            if not _acts(expr):
                self._pieces.append((column, expr))
                found[column.id] = ColumnRef(column.id, column.type)
        for column, expr in zip(plan.columns, plan.exprs, strict=True):
            if column.id not in found:
                found[column.id] = self._lifted(expr, ())
        if not self._pieces:
            # Engines have no rows without columns.
            self._piece(Const(True, BOOL))
        columns, exprs = zip(*self._pieces, strict=True)
        return Project(plan.input, columns, exprs), found

    def _piece(self, expr: Expr) -> ColumnRef:
        """The column of an expression that an engine computes."""
        column = self.binding.new_column("piece", expr.type)
        self._pieces.append((column, expr))
        return ColumnRef(column.id, column.type)

    def _lifted(self, expr: Expr, under: Sequence[_Condition]) -> Expr:
        """The expression over columns. `under`: what must hold for it to be computed (W2)."""
        if isinstance(expr, Const | Param):
            return expr
        if not _acts(expr):
            return self._piece(_guarded(expr, under))
        match expr:
            case Call() if expr.instance in self._instances:
                return self._instances[expr.instance]
            case Call() if expr.function.name in ROW_CALL_FUNCTIONS:
                args = tuple([self._lifted(arg, under) for arg in expr.args])
                column = self.binding.new_column(expr.function.name, expr.type)
                guard = conjunction([condition.told for condition in under]) if under else None
                named = args and expr.function.name in SEQUENCE_FUNCTIONS
                known = constant_sequence(self.binding, args[0]) if named else None
                self.calls.append(RowCall(expr.function.name, known, args, guard, column))
                self._instances[expr.instance] = ColumnRef(column.id, column.type)
                return self._instances[expr.instance]
            case Case():
                return self._case(expr, under)
            case Coalesce():
                return replace(expr, args=self._in_turn(expr.args, under, Test.IS_NULL))
            case Logical(op=BoolOp.AND | BoolOp.OR):
                goes_on = Test.IS_NOT_FALSE if expr.op is BoolOp.AND else Test.IS_NOT_TRUE
                return replace(expr, args=self._in_turn(expr.args, under, goes_on))
            case Subquery():
                raise not_supported("a function that acts beside a subquery")
            case _:
                return rewrite_children(expr, lambda part: self._lifted(part, under))

    def _case(self, expr: Case, under: Sequence[_Condition]) -> Expr:
        whens: list[tuple[Expr, Expr]] = []
        for when, then in expr.whens:
            told = self._lifted(when, under)
            holds = _condition(Test.IS_TRUE, told, when)
            whens.append((told, self._lifted(then, (*under, holds))))
            under = (*under, _condition(Test.IS_NOT_TRUE, told, when))
        return replace(expr, whens=tuple(whens), otherwise=self._lifted(expr.otherwise, under))

    def _in_turn(
        self, args: Sequence[Expr], under: Sequence[_Condition], goes_on: Test
    ) -> tuple[Expr, ...]:
        """Arguments of which the next is looked at if a test is true of those before it."""
        made: list[Expr] = []
        for arg in args:
            made.append(self._lifted(arg, under))
            under = (*under, _condition(goes_on, made[-1], arg))
        return tuple(made)


def _condition(test: Test, told: Expr, expr: Expr) -> _Condition:
    return _Condition(IsTest(test, told, BOOL), None if _acts(expr) else IsTest(test, expr, BOOL))


def _guarded(expr: Expr, under: Sequence[_Condition]) -> Expr:
    """What an engine computes of an expression behind conditions (W2)."""
    if not under or isinstance(expr, ColumnRef):
        return expr
    known = [condition.computed for condition in under if condition.computed is not None]
    if len(known) < len(under):
        raise not_supported("an expression behind a condition on a function that acts")
    return Case(((conjunction(known), expr),), Const(None, expr.type), expr.type)


def _sorted_by(plan: Sort) -> list[ColumnId]:
    return [id_ for key in plan.keys for id_ in column_ids(key.expr)]


def _is_made(expr: Expr, id_: ColumnId) -> bool:
    """Whether a column is of something else than the plan that is left."""
    return not isinstance(expr, ColumnRef) or expr.id != id_


def _acts(expr: Expr) -> bool:
    if isinstance(expr, Call) and expr.function.name in ROW_CALL_FUNCTIONS:
        return True
    return any(map(_acts, child_expressions(expr)))


def acts_in(plan: Plan) -> bool:
    """Whether it calls something that acts, also in a subquery."""
    return any(map(_acts_deep, plan_expressions(plan))) or any(map(acts_in, inputs(plan)))


def _acts_deep(expr: Expr) -> bool:
    if isinstance(expr, Subquery) and acts_in(expr.plan):
        return True
    return _acts(expr) or any(map(_acts_deep, child_expressions(expr)))
