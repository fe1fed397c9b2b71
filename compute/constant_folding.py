"""Fold constants when a statement is planned, as PostgreSQL's eval_const_expressions does.

    case when false then 1/0 else a end  ─▶  a              decided branches are removed
    select 1/0 from t                    ─▶  22012          even if t has no rows
    d < date '1994-01-01' + interval '1 year'
      ─▶  d < timestamp '1995-01-01'     a computed operand becomes a constant

A statement whose constants cannot be computed fails before it runs. A branch that a constant rules
out is never evaluated, nor is a subquery in it. A constant that is no operand stays as it was bound
and engines compute it: they would take a number in GROUP BY for the position of a column.

INVARIANTS
  K1  only immutable functions of constants are computed, by PostgreSQL's volatility marks.
      Parameters are no constants, as in PostgreSQL's generic plans. Values that the binder took
      from the session or the clock are none either: `fold_constants` is not called for such
      statements.
  K2  operands are examined from the left, and none after the one that decides AND, OR, CASE or
      COALESCE.
  K3  columns that nobody reads are not computed, nor the select list of EXISTS. Constant columns
      of a subquery are known above it where PostgreSQL would pull the subquery up.
  K4  an error that only Meridian has (0A000, numbers and times out of its range) is not raised
      here: it is raised where the value is computed at run time.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from compute.computed_values import COMPUTED_BYTES_MAX, grows
from compute.needed_columns import needed_columns
from compute.reference.executor import evaluate
from compute.reference.function_table import implementations
from sql.errors import OutOfEngineRange, SqlError
from sql.functions.table import Function, is_immutable
from sql.plan.constant_items import packed_items, packed_rows
from sql.plan.constant_rows import ConstantWhens, rows_as_conditions
from sql.plan.nodes import (
    AnyAll,
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    CteScan,
    Distinct,
    Expr,
    Extreme,
    Filter,
    GroupBy,
    InList,
    InRows,
    IsTest,
    Join,
    JoinKind,
    Logical,
    Param,
    Plan,
    Project,
    Scan,
    SetScan,
    Subquery,
    SubqueryKind,
    Values,
    Window,
)
from sql.plan.traverse import (
    column_ids,
    is_volatile_anywhere,
    rewrite_aggregate,
    rewrite_children,
    rewrite_inputs,
    rewrite_node,
    rewrite_window_call,
)
from sql.rewrite.simplify_exists import simplify_exists
from sql.types.sql_type import BOOL, Value

_Known: TypeAlias = tuple[Value] | None
"""The value of an expression in a tuple of one; None if it is no constant."""
_Constants: TypeAlias = Mapping[ColumnId, tuple[Value]]

_OUTER: Final = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)

_VALUES_MAX: Final = 64
"""Rows of VALUES that are folded. Longer ones are data, which the engine computes when it runs."""

_WRITTEN: Final = frozenset(
    {"bool", "int2", "int4", "int8", "float8", "numeric", "date", "timestamp", "interval", "text"}
)
"""Types whose values can be written exactly as literals of an engine."""
_OURS: Final = frozenset({"0A000", "54001", "53200"})


def fold_constants(plan: Plan) -> Plan:
    """The plan with its constants folded; raises SqlError if one cannot be computed."""
    return _plan(plan, {}, needed_columns(plan))[0]


# --- plans -------------------------------------------------------------------------------------


def _plan(plan: Plan, outer: _Constants, needed: frozenset[ColumnId]) -> tuple[Plan, _Constants]:
    """The folded plan, and which of its columns are constants (K3)."""
    below: dict[ColumnId, tuple[Value]] = {}

    def inside(part: Plan) -> Plan:
        found, constants = _plan(part, outer, needed)
        below.update(constants)
        return found

    if isinstance(plan, Join):
        return _join(plan, outer, needed)
    plan = rewrite_inputs(plan, inside)
    known = {**outer, **below}

    def rewrite(expr: Expr) -> Expr:
        return _fold(expr, known)[0]

    match plan:
        case Project():
            return _project(plan, known, needed)
        case Filter():
            return replace(plan, predicate=rewrite(plan.predicate)), below
        case GroupBy():
            aggregates = tuple(
                [
                    rewrite_aggregate(call, rewrite) if column.id in needed else call
                    for column, call in zip(plan.aggregate_columns, plan.aggregates, strict=True)
                ]
            )
            return replace(plan, keys=tuple(map(rewrite, plan.keys)), aggregates=aggregates), {}
        case Window():
            calls = tuple(
                [
                    rewrite_window_call(call, rewrite) if column.id in needed else call
                    for column, call in zip(plan.columns, plan.calls, strict=True)
                ]
            )
            return replace(plan, calls=calls), {}
        case Values() if len(plan.rows) > _VALUES_MAX:
            return replace(plan, rows=packed_rows(plan.rows)), {}
        case Values() if len(plan.rows) == 1:
            return _one_row(plan, known)
        case _:
            return rewrite_node(plan, rewrite), {}


def _one_row(plan: Values, known: _Constants) -> tuple[Plan, _Constants]:
    pairs = [_fold(expr, known) for expr in plan.rows[0]]
    # PostgreSQL pulls up all of it or nothing (is_simple_values).
    drawn = any(map(is_volatile_anywhere, plan.rows[0]))
    constants: dict[ColumnId, tuple[Value]] = (
        {}
        if drawn
        else {
            column.id: value
            for column, (_, value) in zip(plan.columns, pairs, strict=True)
            if value is not None
        }
    )
    return replace(plan, rows=(tuple([made for made, _ in pairs]),)), constants


def _project(
    plan: Project, known: _Constants, needed: frozenset[ColumnId]
) -> tuple[Plan, _Constants]:
    exprs: list[Expr] = []
    constants: dict[ColumnId, tuple[Value]] = {}
    # Below LATERAL what refers to a row is evaluated for each row, whoever reads it.
    drawn = any(map(is_volatile_anywhere, plan.exprs))
    for column, expr in zip(plan.columns, plan.exprs, strict=True):
        if column.id in needed:
            made, value = _fold(expr, known)
            exprs.append(made)
            if value is not None:
                constants[column.id] = value
        else:
            kept = drawn and (is_volatile_anywhere(expr) or any(column_ids(expr)))
            exprs.append(expr if kept else Const(None, expr.type))
    return replace(plan, exprs=tuple(exprs)), constants if _is_pulled_up(plan.input) else {}


def _is_pulled_up(plan: Plan) -> bool:
    """Whether PostgreSQL merges a subquery that computes columns of this into the outer query."""
    if isinstance(plan, Filter | Project):
        return _is_pulled_up(plan.input)
    return isinstance(plan, Scan | CteScan | SetScan | Values | Join)


def _join(plan: Join, outer: _Constants, needed: frozenset[ColumnId]) -> tuple[Plan, _Constants]:
    """Constants of the null-supplying side of an outer join are no constants above it."""
    left, of_left = _plan(plan.left, outer, needed)
    if plan.kind in _OUTER and _is_values(plan.left):
        of_left = {}
    seen = {**outer, **of_left} if plan.lateral else outer
    right, of_right = _plan(plan.right, seen, needed)
    if plan.kind in _OUTER and _is_values(plan.right):
        of_right = {}
    condition = plan.condition
    if condition is not None:
        condition = _fold(condition, {**outer, **of_left, **of_right})[0]
    constants: dict[ColumnId, tuple[Value]] = {}
    if plan.kind not in (JoinKind.RIGHT, JoinKind.FULL):
        constants.update(of_left)
    if plan.kind not in (JoinKind.LEFT, JoinKind.FULL):
        constants.update(of_right)
    return replace(plan, left=left, right=right, condition=condition), constants


def _is_values(plan: Plan) -> bool:
    """Whether it is VALUES, which PostgreSQL does not pull up below an outer join."""
    if isinstance(plan, Filter | Project):
        return _is_values(plan.input)
    return isinstance(plan, Values) and bool(plan.columns)


# --- expressions -------------------------------------------------------------------------------


def _fold(expr: Expr, known: _Constants) -> tuple[Expr, _Known]:
    """The expression without decided branches, and its value if it is a constant."""
    match expr:
        case Const():
            return expr, (expr.value,)
        case ColumnRef():
            return expr, known.get(expr.id)
        case Case():
            return _case(expr, known)
        case Coalesce():
            return _coalesce(expr, known)
        case Logical() if expr.op is not BoolOp.NOT:
            return _logical(expr, known)
        case InRows() if any(arg.id in known for arg in expr.args if isinstance(arg, ColumnRef)):
            return _logical(rows_as_conditions(expr), known)
        case Subquery():
            return _subquery(expr, known), None
        case _:
            return _computed(expr, known)


def _computed(expr: Expr, known: _Constants) -> tuple[Expr, _Known]:
    """Fold an expression that always evaluates all of its parts."""
    values: list[_Known] = []
    constants: list[Expr] = []

    def part(inner: Expr) -> Expr:
        made, value = _fold(inner, known)
        values.append(value)
        same = value is None or isinstance(made, Const)
        constant = made if value is None or same else Const(value[0], inner.type)
        constants.append(constant)
        return constant if isinstance(made, Call) and made.type.name in _WRITTEN else made

    made = rewrite_children(expr, part)
    if isinstance(expr, Call) and expr.function.strict and (None,) in values:
        # What has nothing to compute stays: rows are found by `id = null`, without an engine.
        plain = all(isinstance(arg, ColumnRef | Const | Param) for arg in expr.args)
        return made if plain else Const(None, expr.type), (None,)
    if isinstance(made, InList):
        made = replace(made, items=packed_items(made.items))
    if not values or None in values or not _is_immutable(expr):
        return made, None
    if any(value is not None and _is_large(value[0]) for value in values):
        return made, None
    rest = iter(constants)
    return made, _value(rewrite_children(expr, lambda _: next(rest)))


def _is_large(value: Value) -> bool:
    """Whether computing with the value may take long, which would stall the event loop."""
    return isinstance(value, str | bytes | tuple) and len(value) > COMPUTED_BYTES_MAX


def _is_immutable(expr: Expr) -> bool:
    match expr:
        case Call() | AnyAll():
            # What may take long, or give much, is computed at run time.
            return _is_folded(expr.function) and not grows(expr)
        case Logical() | IsTest() | Distinct() | Extreme() | InList():
            return True
        case _:
            return False


def _is_folded(function: Function) -> bool:
    """K1."""
    return is_immutable(function) and function.id in implementations()


def _value(expr: Expr) -> _Known:
    try:
        return (evaluate(expr),)
    except SqlError as error:
        ours = error.sqlstate == "22003" and expr.type.name == "numeric" and expr.type.typmod < 0
        if ours or isinstance(error, OutOfEngineRange) or error.sqlstate in _OURS:
            return None
        raise


def _case(expr: Case, known: _Constants) -> tuple[Expr, _Known]:
    """Branches that are never taken are not examined (K2)."""
    whens: list[tuple[Expr, Expr]] = []
    if isinstance(expr.whens, ConstantWhens) and _fold(expr.whens.subject, known)[1] is None:
        return replace(expr, otherwise=_fold(expr.otherwise, known)[0]), None
    for when, then in expr.whens:
        condition, decided = _fold(when, known)
        if decided is None:
            whens.append((condition, _fold(then, known)[0]))
        elif decided[0]:
            otherwise, value = _fold(then, known)
            break
    else:
        otherwise, value = _fold(expr.otherwise, known)
    if whens:
        return replace(expr, whens=tuple(whens), otherwise=otherwise), None
    if otherwise.type != expr.type:
        # Another scale of numeric: the type of a CASE is said by it.
        return Case(((Const(True, BOOL), otherwise),), Const(None, expr.type), expr.type), value
    return otherwise, value


def _coalesce(expr: Coalesce, known: _Constants) -> tuple[Expr, _Known]:
    args: list[Expr] = []
    only: _Known = None
    for arg in expr.args:
        made, value = _fold(arg, known)
        if value == (None,):
            continue
        args.append(made)
        if value is not None:
            only = value if len(args) == 1 else None
            break
    if not args:
        return Const(None, expr.type), (None,)
    if len(args) == 1 and args[0].type == expr.type:
        return args[0], only
    return replace(expr, args=tuple(args)), only


def _logical(expr: Logical, known: _Constants) -> tuple[Expr, _Known]:
    """AND and OR: nothing after the operand that decides is examined (K2)."""
    deciding = expr.op is BoolOp.OR
    args: list[Expr] = []
    values: list[_Known] = []
    for arg in expr.args:
        made, value = _fold(arg, known)
        if value == (deciding,):
            return Const(deciding, BOOL), (deciding,)
        if value == (not deciding,):
            continue
        args.append(made)
        values.append(value)
    if not args:
        return Const(not deciding, BOOL), (not deciding,)
    unknown = all(value == (None,) for value in values)
    made = args[0] if len(args) == 1 else replace(expr, args=tuple(args))
    return made, (None,) if unknown else None


def _subquery(expr: Subquery, known: _Constants) -> Expr:
    args = tuple([_fold(arg, known)[0] for arg in expr.args])
    plan = simplify_exists(expr.plan) if expr.kind is SubqueryKind.EXISTS else expr.plan
    needed = needed_columns(plan, nothing=expr.kind is SubqueryKind.EXISTS)
    return replace(expr, args=args, plan=_plan(plan, known, needed)[0])
