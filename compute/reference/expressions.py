"""Compile bound expressions to Python closures over a row.

INVARIANTS
  C1  compiling happens once per run and recursion is bounded (54001); evaluating a constant or a
      column costs one call.
  C2  arguments of AND, OR, CASE and COALESCE are evaluated from the left and only as far as needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final, TypeAlias

from compute.reference.function_table import implementations
from compute.reference.functions.ordering import Key, ordering_key, row_key
from compute.reference.registry import element_function
from sql.errors import SqlError, not_supported, statement_too_complex
from sql.plan.array_calls import compare_element, element_type
from sql.plan.constant_items import ConstantItems
from sql.plan.folded_calls import is_folded_call
from sql.plan.nodes import (
    AnyAll,
    BoolOp,
    Call,
    Case,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    Distinct,
    Expr,
    Extreme,
    InList,
    InRows,
    IsTest,
    Logical,
    Param,
    Plan,
    Subquery,
    SubqueryKind,
    Test,
    output_columns,
)
from sql.plan.renumbering import cte_scans, free_columns
from sql.plan.widening_casts import WIDENING_CASTS
from sql.rewrite.volatile_calls import unconditional_repeated_calls, with_call_columns
from sql.types.sql_type import Value

Row: TypeAlias = tuple[Value, ...]
Evaluator: TypeAlias = Callable[[Row], Value]
Source: TypeAlias = Callable[[], Iterator[Row]]
DEPTH_MAX: Final = 200
"""Levels of expressions and plans; each costs a few Python frames when compiled and one when
run.
"""


@dataclass(slots=True)
class OuterRowCell:
    """Holds the row of an outer query while a subquery of it runs."""

    row: Row = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """The visible columns: those of the current row, and those of the rows of outer queries.

    `subplan` compiles a subquery; it closes the circle with `reference/plans.py`.
    """

    columns: Mapping[ColumnId, int]
    parameters: Sequence[Value]
    subplan: "Callable[[Plan, Frame], Source]"
    outer: Mapping[ColumnId, tuple[OuterRowCell, int]] = field(
        default_factory=dict[ColumnId, tuple[OuterRowCell, int]]
    )
    depth: int = 0


def compile_expression(expr: Expr, frame: Frame, depth: int = 0) -> Evaluator:
    """The expression as a function of a row (C1)."""
    if depth + frame.depth > DEPTH_MAX:
        raise statement_too_complex()
    match expr:
        case Const(value=value):
            return lambda _row: value
        case Param(index=index):
            parameters, place = frame.parameters, index - 1
            # Looked up when it runs: what is kept between runs gets other values (`Prepared`).
            return lambda _row: parameters[place]
        case ColumnRef(id=id_):
            return _column(id_, frame)
        case Call():
            return _call(expr, frame, depth + 1)
        case Logical():
            return _logical(expr, frame, depth + 1)
        case IsTest():
            return _test(expr, frame, depth + 1)
        case Distinct():
            return _distinct(expr, frame, depth + 1)
        case Case():
            return _case(expr, frame, depth + 1)
        case Coalesce():
            return _coalesce(expr, frame, depth + 1)
        case Extreme():
            return _extreme(expr, frame, depth + 1)
        case InList():
            return _in_list(expr, frame, depth + 1)
        case InRows():
            return _in_rows(expr, frame, depth + 1)
        case AnyAll():
            return _any_all(expr, frame, depth + 1)
        case Subquery():
            return _subquery(expr, frame, depth + 1)


def _all(exprs: Sequence[Expr], frame: Frame, depth: int) -> tuple[Evaluator, ...]:
    return tuple(compile_expression(expr, frame, depth) for expr in exprs)


def _column(id_: ColumnId, frame: Frame) -> Evaluator:
    index = frame.columns.get(id_)
    if index is not None:
        return itemgetter(index)
    cell, position = frame.outer[id_]
    return lambda _row: cell.row[position]


def _call(expr: Call, frame: Frame, depth: int) -> Evaluator:
    if expr.function.id in WIDENING_CASTS:
        return compile_expression(expr.args[0], frame, depth)
    maker = implementations().get(expr.function.id)
    if maker is None:
        raise not_supported(f"{expr.function.kind.value} {expr.function.id}")
    function = maker(expr)
    args = _all(expr.args, frame, depth)
    if not expr.function.strict:
        return lambda row: function(*[arg(row) for arg in args])
    if len(args) == 1:
        (only,) = args

        def unary(row: Row) -> Value:
            value = only(row)
            return None if value is None else function(value)

        return unary
    if len(args) == 2:
        left, right = args

        def binary(row: Row) -> Value:
            a, b = left(row), right(row)
            return None if a is None or b is None else function(a, b)

        return binary

    if is_folded_call(expr):
        return _folded(function, args)

    def strict(row: Row) -> Value:
        values = [arg(row) for arg in args]
        return None if None in values else function(*values)

    return strict


def _folded(function: Callable[..., Value], args: Sequence[Evaluator]) -> Evaluator:
    """A function of two, from left to right over all arguments."""

    def run(row: Row) -> Value:
        first, *others = args
        result = first(row)
        for other in others:
            value = other(row)
            result = None if result is None or value is None else function(result, value)
        return result

    return run


def _logical(expr: Logical, frame: Frame, depth: int) -> Evaluator:
    args = _all(expr.args, frame, depth)
    if expr.op is BoolOp.NOT:
        (only,) = args

        def negation(row: Row) -> Value:
            value = only(row)
            return None if value is None else not value

        return negation
    decisive = expr.op is BoolOp.OR

    def connective(row: Row) -> Value:
        unknown = False
        for arg in args:
            value = arg(row)
            if value is decisive:
                return decisive
            unknown = unknown or value is None
        return None if unknown else not decisive

    return connective


_TESTS: Final[dict[Test, Callable[[Value], bool]]] = {
    Test.IS_NULL: lambda value: value is None,
    Test.IS_NOT_NULL: lambda value: value is not None,
    Test.IS_TRUE: lambda value: value is True,
    Test.IS_NOT_TRUE: lambda value: value is not True,
    Test.IS_FALSE: lambda value: value is False,
    Test.IS_NOT_FALSE: lambda value: value is not False,
}


def _test(expr: IsTest, frame: Frame, depth: int) -> Evaluator:
    test, arg = _TESTS[expr.test], compile_expression(expr.arg, frame, depth)
    return lambda row: test(arg(row))


def _distinct(expr: Distinct, frame: Frame, depth: int) -> Evaluator:
    left, right = _all((expr.left, expr.right), frame, depth)
    key, negated = ordering_key(expr.left.type), expr.negated

    def run(row: Row) -> bool:
        a, b = left(row), right(row)
        if a is None or b is None:
            return (a is b) is negated
        return (key(a) == key(b)) is negated

    return run


def _case(expr: Case, frame: Frame, depth: int) -> Evaluator:
    calls = unconditional_repeated_calls(expr)
    if calls:
        return _with_calls(expr, calls, frame, depth)
    whens = [
        (compile_expression(when, frame, depth), compile_expression(then, frame, depth))
        for when, then in expr.whens
    ]
    otherwise = compile_expression(expr.otherwise, frame, depth)

    def run(row: Row) -> Value:
        for when, then in whens:
            if when(row) is True:
                return then(row)
        return otherwise(row)

    return run


def _with_calls(expr: Expr, calls: Sequence[Call], frame: Frame, depth: int) -> Evaluator:
    """The expression over a row extended by the values of calls that are evaluated once for it."""
    made = _all(calls, frame, depth)
    width = max(frame.columns.values(), default=-1) + 1
    places = {call.instance: width + number for number, call in enumerate(calls)}
    inside = replace(frame, columns={**frame.columns, **places})
    value = compile_expression(with_call_columns(expr, calls), inside, depth)
    return lambda row: value((*row[:width], *[call(row) for call in made]))


def _coalesce(expr: Coalesce, frame: Frame, depth: int) -> Evaluator:
    args = _all(expr.args, frame, depth)

    def run(row: Row) -> Value:
        for arg in args:
            value = arg(row)
            if value is not None:
                return value
        return None

    return run


def _extreme(expr: Extreme, frame: Frame, depth: int) -> Evaluator:
    args, key = _all(expr.args, frame, depth), ordering_key(expr.type)
    choose = max if expr.greatest else min

    def run(row: Row) -> Value:
        values = [value for arg in args if (value := arg(row)) is not None]
        return choose(values, key=key) if values else None

    return run


def _in_list(expr: InList, frame: Frame, depth: int) -> Evaluator:
    """Constants are looked up; what has to be computed is compared one by one, behind them."""
    arg, key = compile_expression(expr.arg, frame, depth), ordering_key(expr.arg.type)
    items = expr.items
    constants: Sequence[Value]
    if isinstance(items, ConstantItems):
        constants, items = items.values, ()
    else:
        constants = [item.value for item in items if isinstance(item, Const)]
    computed = _all([item for item in items if not isinstance(item, Const)], frame, depth)
    known = frozenset([key(value) for value in constants if value is not None])
    has_null, negated = None in constants, expr.negated

    def run(row: Row) -> Value:
        value = arg(row)
        if value is None:
            return None
        wanted, unknown = key(value), has_null
        if wanted in known:
            return not negated
        for item in computed:
            found = item(row)
            if found is None:
                unknown = True
            elif key(found) == wanted:
                return not negated
        return None if unknown else negated

    return run


def _in_rows(expr: InRows, frame: Frame, depth: int) -> Evaluator:
    """Rows are looked up; for a row with NULLs, the others of its columns decide."""
    args, negated = _all(expr.args, frame, depth), expr.negated
    keys = [ordering_key(arg.type) for arg in expr.args]
    rows = list(zip(*[_values_of(column) for column in expr.columns], strict=True))
    known = {tuple([key(value) for key, value in zip(keys, row, strict=True)]) for row in rows}
    partly: dict[tuple[int, ...], set[Row]] = {}

    def run(row: Row) -> Value:
        values = [arg(row) for arg in args]
        at = tuple([place for place, value in enumerate(values) if value is not None])
        wanted = tuple([keys[place](values[place]) for place in at])
        if len(at) == len(values):
            return (wanted in known) is not negated
        if at not in partly:
            partly[at] = {tuple([one[place] for place in at]) for one in known}
        return None if wanted in partly[at] else negated

    return run


def _values_of(items: Sequence[Expr]) -> Sequence[Value]:
    if isinstance(items, ConstantItems):
        return items.values
    return [item.value for item in items if isinstance(item, Const)]


def _any_all(expr: AnyAll, frame: Frame, depth: int) -> Evaluator:
    left, array, *rest = _all(expr.args, frame, depth)
    element = Const(None, element_type(expr.args[1].type))
    compare, decisive = element_function(compare_element(expr, element)), not expr.all

    def run(row: Row) -> Value:
        value, items = left(row), array(row)
        if items is None:
            return None
        assert isinstance(items, tuple), "an array"
        unknown = False
        for item in items:
            if value is None or item is None:
                unknown = True
            elif compare(value, item, *[arg(row) for arg in rest]) is decisive:
                return decisive
        return None if unknown else not decisive

    return run


# --- subqueries --------------------------------------------------------------------------------


def subquery_frame(frame: Frame, cell: OuterRowCell) -> Frame:
    """The frame of a subquery, in which this frame's row is an outer row."""
    outer = {**frame.outer, **{id_: (cell, at) for id_, at in frame.columns.items()}}
    return Frame({}, frame.parameters, frame.subplan, outer, frame.depth + 1)


def _subquery(expr: Subquery, frame: Frame, depth: int) -> Evaluator:
    cell = OuterRowCell()
    inner = subquery_frame(frame, cell)
    if inner.depth + depth > DEPTH_MAX:
        raise statement_too_complex()
    source = frame.subplan(expr.plan, inner)
    if _is_alone(expr.plan):
        return _once(expr, frame, source, depth)
    answer = _answer(expr, frame, source, depth)

    def run(row: Row) -> Value:
        before, cell.row = cell.row, row
        try:
            return answer(row)
        finally:
            cell.row = before

    return run


def _is_alone(plan: Plan) -> bool:
    """Whether the subquery is surely the same for every row, so that PostgreSQL runs it once. A
    WITH query that it scans may change with each iteration of a recursion.
    """
    return not free_columns(plan) and next(cte_scans(plan), None) is None


def _once(expr: Subquery, frame: Frame, source: Source, depth: int) -> Evaluator:
    """The first row that needs the subquery runs it; compiled code belongs to one run of the
    statement. IN caches the rows, because each row looks for another value among them.
    """
    if expr.kind in (SubqueryKind.IN, SubqueryKind.NOT_IN):
        kept: list[list[Row]] = []

        def rows() -> Iterator[Row]:
            if not kept:
                kept.append(list(source()))
            return iter(kept[0])

        return _answer(expr, frame, rows, depth)
    answer, found = _answer(expr, frame, source, depth), list[Value]()

    def run(row: Row) -> Value:
        if not found:
            found.append(answer(row))
        return found[0]

    return run


def _answer(expr: Subquery, frame: Frame, source: Source, depth: int) -> Evaluator:
    match expr.kind:
        case SubqueryKind.SCALAR:
            return lambda _row: _scalar(source())
        case SubqueryKind.EXISTS:
            return lambda _row: next(source(), None) is not None
        case SubqueryKind.ARRAY:
            return lambda _row: tuple([found[0] for found in source()])
        case SubqueryKind.IN | SubqueryKind.NOT_IN:
            args = _all(expr.args, frame, depth)
            key = row_key([column.type for column in output_columns(expr.plan)])
            negated = expr.kind is SubqueryKind.NOT_IN

            def member(row: Row) -> Value:
                found = _member(key(tuple([arg(row) for arg in args])), source(), key)
                return found if found is None else found is not negated

            return member


def _scalar(rows: Iterator[Row]) -> Value:
    first = next(rows, None)
    if first is None:
        return None
    if next(rows, None) is not None:
        raise SqlError("21000", "more than one row returned by a subquery used as an expression")
    return first[0]


def _member(wanted: Key, rows: Iterator[Row], key: Callable[[Sequence[Value]], Key]) -> bool | None:
    """Whether a row equals the wanted one; None when NULLs leave it open."""
    unknown = False
    for row in rows:
        pairs = list(zip(wanted, key(row), strict=True))
        if any(a is not None and b is not None and a != b for a, b in pairs):
            continue
        if all(a is not None and b is not None for a, b in pairs):
            return True
        unknown = True
    return None if unknown else False
