"""Evaluate the read conditions of a scan over changed rows, to detect read-write conflicts.

    plan ─read_conditions─▶ conditions, parameters ─▶ RowPredicate ─┬─ points   keys it looks up
                                                                    ├─ matches  rows in memory
                                                                    └─ files    by statistics

Implements the core's `ReadPredicate`. The reference engine evaluates the conditions in three-valued
logic: NULL is no match.

INVARIANTS
  M1  a condition that cannot be evaluated (function not implemented here, unknown column, error)
      counts as true: `matches` errs on the side of a match.
  M2  points and bounds are implied by the conditions: a row that is not among them does not match.
  M3  at most ROWS_MAX rows are evaluated at once; of more within the bounds one counts as a match.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from compute.arrow import arrow_type
from compute.identity_cache import IdentityCache
from compute.reference.arrow import to_values
from compute.reference.expressions import Evaluator, Frame, Source, compile_expression
from sql.catalog.catalog import Column, Table
from sql.errors import SqlError
from sql.explain.plan_tree import expression_text
from sql.functions.table import FunctionKind
from sql.plan.array_calls import element_type
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.constant_items import ConstantItems
from sql.plan.nodes import (
    AnyAll,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    InList,
    InRows,
    Param,
    Plan,
)
from sql.plan.plan_constants import constant_parts
from sql.plan.read_conditions import ReadCondition, is_equality
from sql.plan.traverse import column_ids, rewrite_children
from sql.types.sql_type import REG_TYPES, Value
from storage.batch import DataFile
from storage.delta.statistics import column_bounds
from storage.errors import Corrupt
from storage.known_rows import Bound, Interval, KnownRows, Points

ROWS_MAX: Final = 1_000
"""Larger: longer stalls of the loop. Smaller: more false conflicts with bulk writes."""

KEYS_MAX: Final = 1_000
"""Keys that one predicate looks up; a longer IN list is evaluated row by row."""

_EQUAL_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", *REG_TYPES), "integer"),
    **dict.fromkeys(("text", "varchar", "name", "char"), "text"),
    **{name: name for name in ("bool", "uuid", "date", "timestamp", "timestamptz", "numeric")},
}
"""Types whose values are equal and ordered in PostgreSQL exactly when they are in Python, by the
family within which they compare."""

_UNORDERED: Final = frozenset({"bool", "uuid"})
_COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class _Part:
    """One condition of a conjunction, ready to run over the columns `ordinals`."""

    ordinals: tuple[int, ...]
    run: Evaluator


@dataclass(slots=True)
class _Conjunction:
    """Conditions that must all hold, and the points and bounds that they imply (M2)."""

    exprs: Sequence[Expr]
    points: Points | None
    _bounds: Mapping[int, Interval] | None = None
    _parts: tuple[_Part, ...] | None = None

    @property
    def bounds(self) -> Mapping[int, Interval]:
        """The bounds of columns, by ordinal."""
        if self._bounds is None:
            bounds: dict[int, Interval] = {}
            for expr in self.exprs:
                limit = _limits(expr)
                if limit is not None:
                    bounds[limit[0]] = _narrowed(bounds.get(limit[0], (None, None)), limit[1])
            self._bounds = bounds
        return self._bounds

    @property
    def parts(self) -> tuple[_Part, ...]:
        """The conditions that can be evaluated; compiled at the first use, which may never come."""
        if self._parts is None:
            parts = (_part(expr) for expr in self.exprs)
            self._parts = tuple(part for part in parts if part is not None)
        return self._parts


class RowPredicate:
    """See the module. Two are equal if conditions, table definition and parameters are."""

    __slots__ = (
        "_columns",
        "_compiled",
        "_conditions",
        "_hash",
        "_nbytes",
        "_parameters",
        "_points",
        "_shape",
    )

    def __init__(
        self, table: Table, conditions: tuple[ReadCondition, ...], parameters: tuple[Value, ...]
    ) -> None:
        self._columns = table.columns
        self._conditions = conditions
        self._parameters = parameters
        self._compiled: tuple[_Conjunction, ...] | None = None
        self._points: Points | None = None
        self._shape = shape = _shape_of(conditions)
        self._hash = hash((parameters, shape.constants))
        values = sum([len(p) if isinstance(p, str | bytes) else 32 for p in parameters])
        self._nbytes = 256 + shape.nbytes + values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowPredicate):
            return NotImplemented
        return (
            self._parameters == other._parameters
            and self._conditions == other._conditions
            and self._columns == other._columns
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"RowPredicate({self.describe()})"

    @property
    def nbytes(self) -> int:
        """See ReadPredicate."""
        return self._nbytes

    @property
    def look_up(self) -> None:
        """See ReadPredicate."""
        return None

    def describe(self) -> str:
        """See ReadPredicate."""
        names = {ColumnId(at): column.name for at, column in enumerate(self._columns)}
        return " OR ".join(
            " AND ".join(expression_text(_filled(e, self._parameters), names) for e in cond.all_of)
            for cond in self._conditions
        )

    @property
    def points(self) -> Points | None:
        """See ReadPredicate."""
        if self._points is None and self._compiled is None:
            self._points = self._shape.points(self._parameters)
        if self._points is None:
            self._conjunctions()
        return self._points

    def matches(self, rows: KnownRows) -> bool:
        """See ReadPredicate (M1)."""
        try:
            return rows.count > 0 and any(
                _holds(c, rows, self._columns) for c in self._conjunctions()
            )
        except Exception:  # whatever a function makes of a row of others: P3, M1
            return True

    def may_match_file(self, file: DataFile) -> bool:
        """See ReadPredicate (M1)."""
        try:
            return any(self._may_hold(c, file.stats_json) for c in self._conjunctions())
        except (Corrupt, TypeError, ArithmeticError):
            return True

    def _may_hold(self, conjunction: _Conjunction, stats: str) -> bool:
        for ordinal, (low, high) in conjunction.bounds.items():
            column = self._columns[ordinal]
            least, greatest = column_bounds(stats, column.field, arrow_type(column.type))
            if low is not None and greatest is not None and greatest < low:  # type: ignore[operator]
                return False
            if high is not None and least is not None and least > high:  # type: ignore[operator]
                return False
        return True

    def _conjunctions(self) -> tuple[_Conjunction, ...]:
        if self._compiled is None:
            try:
                compiled = tuple(
                    _compiled([_filled(e, self._parameters) for e in cond.all_of])
                    for cond in self._conditions
                )
            except Exception:  # P3 of the core's predicates, M1: all rows, then
                compiled = (_Conjunction((), None),)
            self._compiled = compiled
            self._points = _common_points([c.points for c in compiled])
        return self._compiled


# --- compiling ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shape:
    """What conditions say whatever the parameters are. `constants`: those in them; conditions are
    deep, and these tell predicates apart well enough. `key`: the columns that must be equal to a
    value each, in their order, if that is all; otherwise empty.
    """

    constants: tuple[Hashable, ...]
    nbytes: int
    key: tuple[tuple[int, Const | Param], ...]

    @classmethod
    def of(cls, conditions: tuple[ReadCondition, ...]) -> "_Shape":
        found = [each for cond in conditions for each in constant_parts(cond.all_of)]
        constants = [str(each.value) for each in found if isinstance(each, Const)]
        lists = [each for each in found if isinstance(each, ConstantItems)]
        nbytes = 128 * len(constants) + sum(map(len, constants))
        nbytes += sum([items.nbytes for items in lists])
        return cls((*constants, *lists), nbytes, _key(conditions))

    def points(self, parameters: tuple[Value, ...]) -> Points | None:
        """The one key that these conditions look up; None: they must be looked at."""
        values = [
            value.value if isinstance(value, Const) else parameters[value.index - 1]
            for _, value in self.key
        ]
        if not values or None in values:
            return None
        return Points(tuple([at for at, _ in self.key]), frozenset([tuple(values)]), only=True)


def _key(conditions: tuple[ReadCondition, ...]) -> tuple[tuple[int, Const | Param], ...]:
    if len(conditions) != 1:
        return ()
    found: dict[int, Const | Param] = {}
    for expr in conditions[0].all_of:
        equal = column_equality(expr)
        if equal is None or equal[0] in found or equal[1].type.has_blanks:
            return ()
        found[equal[0]] = equal[1]
    return tuple(sorted(found.items()))


_shapes: IdentityCache[tuple[ReadCondition, ...], _Shape] = IdentityCache()
_REMEMBERED_BYTES_MAX: Final = 65_536
"""Of constants: longer conditions are full of literals, and seldom asked twice."""


def _shape_of(conditions: tuple[ReadCondition, ...]) -> _Shape:
    known = _shapes.get(conditions)
    if known is None:
        known = _Shape.of(conditions)
        if known.nbytes <= _REMEMBERED_BYTES_MAX:
            _shapes.put(conditions, known)
    return known


def _filled(expr: Expr, parameters: Sequence[Value]) -> Expr:
    """The expression with the values of its parameters."""
    if isinstance(expr, Param):
        return Const(parameters[expr.index - 1], expr.type)
    return rewrite_children(expr, lambda part: _filled(part, parameters))


def _compiled(exprs: Sequence[Expr]) -> _Conjunction:
    keys: dict[int, list[Value]] = {}
    others = 0
    for expr in exprs:
        found = _equal_to(expr)
        if found is not None and found[0] not in keys:
            keys[found[0]] = found[1]
        else:
            others += 1
    return _Conjunction(exprs, _points(keys, only=not others))


def _part(expr: Expr) -> _Part | None:
    ordinals = tuple(sorted({int(id_) for id_ in column_ids(expr)}))
    frame = Frame({ColumnId(at): place for place, at in enumerate(ordinals)}, (), _no_subquery)
    try:
        return _Part(ordinals, compile_expression(expr, frame))
    except SqlError:
        return None


def _no_subquery(_plan: Plan, _frame: Frame) -> Source:
    raise AssertionError("a read condition has no subquery")


_HARMLESS: Final = frozenset(
    {("int2", "int4"), ("int2", "int8"), ("int4", "int8"), ("varchar", "text"), ("name", "text"),
    ("char", "text"),
     ("text", "varchar"), ("name", "varchar"), *((name, "oid") for name in REG_TYPES)}
)  # fmt: skip
"""Casts that leave every value as it is. A cast to a narrower integer may fail, an oid wraps around
and a name is truncated: a row, or its failure, would be missed."""


def _bare(expr: Expr) -> ColumnRef | Const | Param | None:
    """The column, constant or parameter below harmless casts. A bpchar parameter keeps its padding:
    the reader of its value trims it.
    """
    if isinstance(expr, Call) and expr.function.id == "char_trimmed(bpchar)":
        value = trim_bpchar(expr.args[0])
        inner = expr.args[0] if isinstance(expr.args[0], Param) else value
        return inner if isinstance(inner, Const | Param) else None
    while isinstance(expr, Call) and expr.function.kind is FunctionKind.CAST:
        if (expr.function.args[0], expr.function.result) not in _HARMLESS:
            return None
        if expr.type.length is not None:
            return None
        expr = expr.args[0]
    return expr if isinstance(expr, ColumnRef | Const | Param) else None


def column_equality(expr: Expr) -> tuple[int, Const | Param] | None:
    """A column (by ordinal) and the only value for which the expression is true."""
    match expr:
        case InList(arg=one, items=(other,), negated=False) | Call(args=(one, other)):
            if isinstance(expr, Call) and not is_equality(expr):
                return None
        case _:
            return None
    for left, right in ((one, other), (other, one)):
        a, b = _bare(left), _bare(right)
        if isinstance(a, ColumnRef) and isinstance(b, Const | Param):
            family = _EQUAL_TYPES.get(a.type.name)
            if family is not None and family == _EQUAL_TYPES.get(b.type.name):
                return int(a.id), b
    return None


def _compared(left: Expr, right: Expr) -> tuple[ColumnRef, Const] | None:
    a, b = _bare(left), _bare(right)
    if not isinstance(a, ColumnRef) or not isinstance(b, Const):
        return None
    family = _EQUAL_TYPES.get(a.type.name)
    if family is None or family != _EQUAL_TYPES.get(b.type.name):
        return None
    return a, b


def _comparison(expr: Expr) -> tuple[ColumnRef, str, Const] | None:
    """`column op constant`, also if it is written the other way round."""
    if not isinstance(expr, Call) or expr.function.kind is not FunctionKind.OPERATOR:
        return None
    name = expr.function.name
    if name not in _COMPARISONS or len(expr.args) != 2:
        return None
    left, right = expr.args
    found = _compared(left, right)
    if found is not None:
        return found[0], name, found[1]
    found = _compared(right, left)
    if found is None:
        return None
    return found[0], {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(name, name), found[1]


def _equal_to(expr: Expr) -> tuple[int, list[Value]] | None:
    """A column, and the only values for which the expression is true."""
    if isinstance(expr, AnyAll):
        listed = _listed(expr)
        return None if listed is None else _equal_to(listed)
    if isinstance(expr, InRows) and len(expr.args) == 1:
        expr = InList(expr.args[0], expr.columns[0], expr.negated, expr.type)
    if isinstance(expr, InList):
        if expr.negated or len(expr.items) > KEYS_MAX:
            return None
        pairs = [_compared(expr.arg, item) for item in expr.items]
        known = [pair for pair in pairs if pair is not None]
        if len(known) != len(pairs):
            return None
        return int(known[0][0].id), [value.value for _, value in known if value.value is not None]
    found = _comparison(expr)
    if found is None or found[1] != "=":
        return None
    column, _, value = found
    return int(column.id), [] if value.value is None else [value.value]


def _listed(expr: AnyAll) -> InList | None:
    """`x = ANY (array)` of a known array, which is how drivers send a list."""
    left, array = expr.args[:2]
    if expr.all or expr.function.name != "=" or not isinstance(array, Const):
        return None
    if not isinstance(array.value, tuple) or not 0 < len(array.value) <= KEYS_MAX:
        return None
    element = element_type(array.type)
    return InList(left, tuple([Const(item, element) for item in array.value]), False, expr.type)


def _points(keys: Mapping[int, Sequence[Value]], *, only: bool) -> Points | None:
    if not keys:
        return None
    ordinals = tuple(sorted(keys))
    size = 1
    for ordinal in ordinals:
        size *= len(keys[ordinal])
    if size > KEYS_MAX:
        return None
    found: frozenset[tuple[Hashable, ...]] = frozenset(product(*(keys[at] for at in ordinals)))
    return Points(ordinals, found, only)


def _common_points(points: Sequence[Points | None]) -> Points | None:
    """One set of keys for alternatives, if all of them look up the same columns."""
    first = points[0] if points else None
    if first is None or len(points) == 1:
        return first
    known = [item for item in points if item is not None and item.ordinals == first.ordinals]
    if len(known) != len(points):
        return None
    keys = frozenset(key for item in known for key in item.keys)
    return Points(first.ordinals, keys, all(item.only for item in known))


def _limits(expr: Expr) -> tuple[int, Interval] | None:
    """A column, and bounds of the values for which the expression may be true."""
    equal = _equal_to(expr)
    if equal is not None:
        ordinal, values = equal
        ordered = [v for v in values if isinstance(v, Bound) and not isinstance(v, bool)]
        if not ordered or len(ordered) != len(values):
            return None
        return ordinal, (min(ordered), max(ordered))
    found = _comparison(expr)
    if found is None or found[0].type.name in _UNORDERED:
        return None
    column, name, constant = found
    value = constant.value
    if not isinstance(value, Bound) or isinstance(value, bool):
        return None
    at = int(column.id)
    return (at, (value, None)) if name in (">", ">=") else (at, (None, value))


def _narrowed(first: Interval, second: Interval) -> Interval:
    lows = [low for low in (first[0], second[0]) if low is not None]
    highs = [high for high in (first[1], second[1]) if high is not None]
    return (
        max(lows, default=None),
        min(highs, default=None),
    )


# --- running ------------------------------------------------------------------------------------


def _holds(conjunction: _Conjunction, rows: KnownRows, columns: Sequence[Column]) -> bool:
    """Whether some row may fulfil the conjunction (M1, M3)."""
    known = rows.columns.keys()
    parts = [part for part in conjunction.parts if known >= set(part.ordinals)]
    if not parts:
        return True
    if rows.count > ROWS_MAX:
        rows = rows.within(conjunction.bounds)
        if rows.count > ROWS_MAX:
            return True
    needed = sorted({at for part in parts for at in part.ordinals})
    values = {at: _values(rows, at, columns) for at in needed}
    alive: Sequence[int] = range(rows.count)
    for part in parts:
        run = part.run
        inputs = [values[at] for at in part.ordinals]
        if len(inputs) == 1:
            (only,) = inputs
            alive = [row for row in alive if run((only[row],)) is True]
        else:
            alive = [row for row in alive if run(tuple([c[row] for c in inputs])) is True]
        if not alive:
            return False
    return True


def _values(rows: KnownRows, at: int, columns: Sequence[Column]) -> Sequence[Value]:
    if columns[at].type.name == "interval":
        return to_values(rows.columns[at], columns[at].type)
    return rows.values(at)
