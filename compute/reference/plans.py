"""Compile plans to Python iterators over rows.

    compile_plan(plan, frame) ─▶ source; source() ─▶ a new iterator of rows, in the plan's column
    order

Groups are lists: this evaluator is for small inputs and for tests. `joins.py` has the joins.

INVARIANTS
  J1  a source can be run again and again (correlated subqueries, inner sides of joins); inputs are
      read once.
  J2  rows stay in order unless a node reorders them; the same input gives the same order.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from typing import TypeAlias, assert_never

from compute.reference.expressions import (
    DEPTH_MAX,
    Evaluator,
    Frame,
    OuterRowCell,
    Row,
    Source,
    compile_expression,
    subquery_frame,
)
from compute.reference.functions.ordering import Key, row_key
from compute.reference.groups import (
    compile_aggregate,
    compile_expressions,
    compile_sort_keys,
    sort_rows,
)
from compute.reference.joins import JoinSides, equal_places, joined_rows
from compute.reference.set_returning import compile_set_calls
from compute.reference.windows import compile_windows
from sql.errors import SqlError, not_supported, statement_too_complex
from sql.plan.constant_items import ConstantRows
from sql.plan.nodes import (
    BoolOp,
    ColumnId,
    ColumnRef,
    Const,
    CteId,
    CteScan,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Logical,
    Param,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    Scan,
    SetOp,
    SetOpKind,
    SetScan,
    Sort,
    Values,
    Window,
    With,
    output_columns,
)
from sql.plan.widening_casts import without_widening
from sql.types.sql_type import SqlType, Value

ReadScan: TypeAlias = Callable[[Scan], Sequence[Row]]
"""All rows of a scan: its columns, then their identity if the scan wants it."""


@dataclass(frozen=True, slots=True)
class PlanCompiler:
    """Compiles plans over inputs that `read` provides."""

    read: ReadScan
    parameters: Sequence[Value]
    ctes: dict[CteId, Sequence[Row]] = field(default_factory=dict[CteId, Sequence[Row]])
    """What a CteScan that begins now reads."""

    def compile(self, plan: Plan) -> Source:
        """Compile the whole plan of a run."""
        return self._plan(plan, Frame({}, self.parameters, self._plan))

    def expression(self, expr: Expr) -> Evaluator:
        """Compile an expression without columns."""
        return compile_expression(expr, Frame({}, self.parameters, self._plan))

    def _plan(self, plan: Plan, frame: Frame) -> Source:
        if frame.depth >= DEPTH_MAX:
            raise statement_too_complex()
        frame = replace(frame, depth=frame.depth + 1)
        match plan:
            case Scan():
                return self._scan(plan)
            case Values():
                return _values(plan, frame)
            case Project():
                return self._project(plan, frame)
            case Filter():
                return self._filter(plan, frame)
            case Join():
                return self._join(plan, frame)
            case GroupBy():
                return self._group_by(plan, frame)
            case Window():
                return compile_windows(
                    plan, self._plan(plan.input, frame), _over(frame, plan.input)
                )
            case DistinctRows():
                return self._distinct(plan, frame)
            case DistinctOn():
                return self._distinct_on(plan, frame)
            case SetOp():
                return self._set_operation(plan, frame)
            case Sort():
                return self._sort(plan, frame)
            case Limit():
                return self._limit(plan, frame)
            case SetScan():
                return compile_set_calls(plan, frame)
            case With():
                return self._with(plan, frame)
            case CteScan():
                return lambda: iter(self.ctes[plan.cte])
            case Recursive():
                return self._recursive(plan, frame)
            case _:
                assert_never(plan)

    def _scan(self, plan: Scan) -> Source:
        rows: list[Sequence[Row]] = []

        def run() -> Iterator[Row]:
            if not rows:
                rows.append(self.read(plan))
            return iter(rows[0])

        return run

    def _project(self, plan: Project, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        over = _over(frame, plan.input)
        places = [over.columns.get(e.id) if isinstance(e, ColumnRef) else None for e in plan.exprs]
        if len(places) > 1 and None not in places:
            # Columns alone, as ORDER BY and LIMIT have below them.
            chosen = itemgetter(*places)
            return lambda: map(chosen, source())
        exprs = compile_expressions(plan.exprs, over)
        return lambda: (tuple([expr(row) for expr in exprs]) for row in source())

    def _filter(self, plan: Filter, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        over = _over(frame, plan.input)
        place = _negated_column(plan.predicate, over)
        if place is not None:
            # As a queue asks for what is not done, for every row: with little ado.
            return lambda: (row for row in source() if row[place] is False)
        predicate = compile_expression(plan.predicate, over)
        return lambda: (row for row in source() if predicate(row) is True)

    def _join(self, plan: Join, frame: Frame) -> Source:
        left = self._plan(plan.left, frame)
        cell = OuterRowCell()
        right_frame = subquery_frame(_over(frame, plan.left), cell) if plan.lateral else frame
        right = self._plan(plan.right, right_frame)
        both = _layout((*output_columns(plan.left), *output_columns(plan.right)))
        condition: Evaluator = lambda _row: True  # noqa: E731
        if plan.condition is not None:
            condition = compile_expression(plan.condition, replace(frame, columns=both))
        if plan.lateral and plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            raise not_supported(f"LATERAL in a {plan.kind.value} join")
        sides = JoinSides(
            left,
            right,
            condition,
            equal_places(plan),
            (None,) * len(output_columns(plan.left)),
            (None,) * len(output_columns(plan.right)),
            cell if plan.lateral else None,
        )
        return lambda: joined_rows(plan.kind, sides)

    def _group_by(self, plan: GroupBy, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        inside = _over(frame, plan.input)
        keys = compile_expressions(plan.keys, inside)
        key_of = row_key([key.type for key in plan.keys])
        sets = [tuple(range(len(keys)))] if plan.sets is None else plan.sets
        folds = [compile_aggregate(call, inside) for call in plan.aggregates]

        def run() -> Iterator[Row]:
            inputs = [(tuple([key(row) for key in keys]), row) for row in source()]
            for one in sets:
                bits = _grouping_bits(plan, one)
                for values, rows in _groups(inputs, one, len(keys), key_of):
                    yield (*values, *[fold(rows) for fold in folds], *bits)

        return run

    def _distinct(self, plan: DistinctRows, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        key_of = row_key(_types(output_columns(plan.input)))

        def run() -> Iterator[Row]:
            seen: set[Key] = set()
            for row in source():
                key = key_of(row)
                if key not in seen:
                    seen.add(key)
                    yield row

        return run

    def _distinct_on(self, plan: DistinctOn, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        inside = _over(frame, plan.input)
        keys = compile_expressions(plan.keys, inside)
        key_of = row_key([key.type for key in plan.keys])
        order = compile_sort_keys(plan.order, inside)

        def run() -> Iterator[Row]:
            first: dict[Key, Row] = {}
            for row in sort_rows(list(source()), order):
                first.setdefault(key_of([key(row) for key in keys]), row)
            return iter(first.values())

        return run

    def _with(self, plan: With, frame: Frame) -> Source:
        definition = self._plan(plan.definition, frame)
        source = self._plan(plan.input, frame)
        made: list[Sequence[Row]] = []

        def run() -> Iterator[Row]:
            if not made:
                made.append(list(definition()))
            self.ctes[plan.cte] = made[0]
            return source()

        return run

    def _recursive(self, plan: Recursive, frame: Frame) -> Source:
        base, step = self._plan(plan.base, frame), self._plan(plan.step, frame)
        key_of = row_key(_types(plan.columns))

        def run() -> Iterator[Row]:
            seen: set[Key] = set()
            rows = list(base())
            while rows:
                if not plan.all:
                    rows = _unseen(rows, seen, key_of)
                yield from rows
                # Read to its end at once, before another use of the same plan can go on.
                self.ctes[plan.cte] = rows
                rows = list(step())

        return run

    def _set_operation(self, plan: SetOp, frame: Frame) -> Source:
        left, right = self._plan(plan.left, frame), self._plan(plan.right, frame)
        key_of = row_key(_types(plan.columns))
        return lambda: _combined(plan, left(), right(), key_of)

    def _sort(self, plan: Sort, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        keys = compile_sort_keys(plan.keys, _over(frame, plan.input))
        return lambda: iter(sort_rows(list(source()), keys))

    def _limit(self, plan: Limit, frame: Frame) -> Source:
        source = self._plan(plan.input, frame)
        limit, offset = (
            None if expr is None else compile_expression(expr, frame)
            for expr in (plan.limit, plan.offset)
        )

        ties = isinstance(plan.input, Sort) and plan.ties
        keys = plan.input.keys if isinstance(plan.input, Sort) and plan.ties else ()
        values = compile_expressions([key.expr for key in keys], _over(frame, plan.input))
        key_of = row_key([key.expr.type for key in keys])

        def peers_of(row: Row) -> Key:
            return key_of([value(row) for value in values])

        def run() -> Iterator[Row]:
            skipped = None if offset is None else _count(offset(()), "2201X", "OFFSET")
            count = None if limit is None else _count(limit(()), "2201W", "LIMIT")
            first = skipped or 0
            if count is None or not ties:
                end = None if count is None else min(first + count, sys.maxsize)
                return islice(source(), first, end)
            return _with_ties(islice(source(), first, None), count, peers_of)

        return run


# --- rows --------------------------------------------------------------------------------------


def _layout(columns: Sequence[PlanColumn]) -> dict[ColumnId, int]:
    return {column.id: index for index, column in enumerate(columns)}


def _negated_column(expr: Expr, frame: Frame) -> int | None:
    """Where the column is of which an expression is the negation."""
    if not isinstance(expr, Logical) or expr.op is not BoolOp.NOT:
        return None
    (only,) = expr.args
    return frame.columns.get(only.id) if isinstance(only, ColumnRef) else None


def _over(frame: Frame, plan: Plan) -> Frame:
    """The frame of expressions over the rows of a plan."""
    return replace(frame, columns=_layout(output_columns(plan)))


def _types(columns: Sequence[PlanColumn]) -> list[SqlType]:
    return [column.type for column in columns]


def _values(plan: Values, frame: Frame) -> Source:
    """Rows of constants or of parameters, by far the most common, are not compiled."""
    if isinstance(plan.rows, ConstantRows):
        known = plan.rows.values
        return lambda: iter(known)
    makers = [_row_maker(exprs, frame) for exprs in plan.rows]
    given = frame.parameters
    return lambda: (make(given) for make in makers)


def _row_maker(exprs: Sequence[Expr], frame: Frame) -> Callable[[Sequence[Value]], Row]:
    """One row, made of the parameters."""
    constants = [expr.value for expr in exprs if isinstance(expr, Const)]
    if len(constants) == len(exprs):
        known = tuple(constants)
        return lambda _: known
    bare = map(without_widening, exprs)
    places = [expr.index - 1 for expr in bare if isinstance(expr, Param)]
    if len(places) == len(exprs) > 1:
        return itemgetter(*places)
    made = compile_expressions(exprs, frame)
    return lambda _: tuple([expr(()) for expr in made])


def _count(value: Value, sqlstate: str, clause: str) -> int | None:
    assert value is None or isinstance(value, int), f"{clause} is an int8"
    if value is not None and value < 0:
        raise SqlError(sqlstate, f"{clause} must not be negative")
    return value


# --- groups, sets, order -----------------------------------------------------------------------


def _grouping_bits(plan: GroupBy, one: Sequence[int]) -> Row:
    """The values of the GROUPING calls in rows of this grouping set."""
    return tuple(
        [
            sum((number not in one) << bit for bit, number in enumerate(reversed(numbers)))
            for numbers in plan.groupings
        ]
    )


def _groups(
    inputs: Sequence[tuple[Row, Row]],
    one: Sequence[int],
    keys: int,
    key_of: Callable[[Sequence[Value]], Key],
) -> Iterable[tuple[Row, list[Row]]]:
    """The groups of one grouping set: its keys, NULL for the others, and the rows."""
    groups: dict[Key, tuple[Row, list[Row]]] = {}
    if not one:
        nothing: Row = (None,) * keys
        return [(nothing, [row for _, row in inputs])]
    kept = [number in one for number in range(keys)]
    for values, row in inputs:
        shown = tuple([v if keep else None for v, keep in zip(values, kept, strict=True)])
        groups.setdefault(key_of(shown), (shown, []))[1].append(row)
    return groups.values()


def _with_ties(rows: Iterator[Row], count: int, peers_of: Callable[[Row], Key]) -> Iterator[Row]:
    """The first rows and the peers of the last of them."""
    last: Key = None
    for number, row in enumerate(rows):
        if number >= count and (count == 0 or peers_of(row) != last):
            return
        last = peers_of(row)
        yield row


def _unseen(
    rows: Sequence[Row], seen: set[Key], key_of: Callable[[Sequence[Value]], Key]
) -> list[Row]:
    fresh: list[Row] = []
    for row in rows:
        key = key_of(row)
        if key not in seen:
            seen.add(key)
            fresh.append(row)
    return fresh


def _combined(
    plan: SetOp, left: Iterator[Row], right: Iterator[Row], key_of: Callable[[Row], Key]
) -> Iterator[Row]:
    if plan.kind is SetOpKind.UNION:
        seen: set[Key] = set()
        for side in (left, right):
            for row in side:
                key = key_of(row)
                if plan.all or key not in seen:
                    seen.add(key)
                    yield row
        return
    wanted = plan.kind is SetOpKind.INTERSECT
    counts = Counter(key_of(row) for row in right)
    done: set[Key] = set()
    for row in left:
        key = key_of(row)
        if plan.all:
            present = counts[key] > 0
            counts[key] -= present
            if present is wanted:
                yield row
        elif key not in done and (counts[key] > 0) is wanted:
            done.add(key)
            yield row
