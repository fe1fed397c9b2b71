"""Make one part of a plan of many comparisons of the same columns with constants.

    id = 1 OR id = 2 OR ..                  ─▶  InRows((id), ((1, 2, ..)))
    (a = 1 AND b = 5) OR (a = 2 AND ..) ..  ─▶  InRows((a, b), ((1, 2, ..), (5, ..)))
    (a, b) IN ((1, 5), (2, ..))             ─▶  the same
    a <> 1 AND a <> 2 AND ..                ─▶  InRows((a), ((1, 2, ..)), negated)
    CASE WHEN a = 1 THEN 'x' WHEN ..        ─▶  Case(ConstantWhens(a, (1, 2, ..), ('x', ..)))

INVARIANTS
  N1  it is the condition that it is made of for every row, NULL included.
  N2  comparisons that are not side by side are put together only beside conditions that cannot
      fail, which need not be asked in order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, overload

from sql.functions.table import Function, FunctionKind, function_by_id
from sql.plan.constant_items import ITEMS_MIN, ConstantItems, ConstantRows, packed_items
from sql.plan.nodes import (
    BoolOp,
    Call,
    Case,
    ColumnRef,
    Const,
    Expr,
    InList,
    InRows,
    Logical,
    Plan,
    Values,
)
from sql.types.sql_type import BOOL, SqlType, Value

_TYPES: Final = frozenset(
    {"int2", "int4", "int8", "text", "varchar", "date", "timestamp", "timestamptz"}
)
"""Types whose values are equal if they look so; engines compare rows of them as such."""

_WHOLE: Final = {"int2": 1, "int4": 2, "int8": 3}

_Compared: TypeAlias = tuple[tuple[Function, ColumnRef], ...]
_Found: TypeAlias = tuple[_Compared, Sequence[Value]]


def conditions_as_rows(op: BoolOp, parts: Sequence[Expr]) -> list[Expr]:
    """The operands of AND or OR, many comparisons of the same columns as one (N1)."""
    if len(parts) < ITEMS_MIN:
        return [*parts]
    found = [_row(op, part) for part in parts]
    groups: dict[_Compared, list[int]] = {}
    for at, row in enumerate(found):
        if row is not None:
            groups.setdefault(row[0], []).append(at)
    many = {key: places for key, places in groups.items() if len(places) >= ITEMS_MIN}
    others = sum(1 for row in found if row is None)
    if not many or (others and not _cannot_fail([*parts], found)):
        return [*parts]
    made: list[Expr] = []
    for at, (part, row) in enumerate(zip(parts, found, strict=True)):
        places = None if row is None else many.get(row[0])
        if places is None or row is None:
            made.append(part)
        elif places[0] == at:
            rows = [known[1] for place in places if (known := found[place]) is not None]
            made.append(_as_rows(op, row[0], rows))
    return made


def _cannot_fail(parts: Sequence[Expr], found: Sequence[_Found | None]) -> bool:
    """Whether all others are comparisons by operators of plain columns and constants (N2)."""
    pairs = zip(parts, found, strict=True)
    return all(_is_plain(part) for part, row in pairs if row is None)


def _is_plain(part: Expr) -> bool:
    if isinstance(part, Logical):
        return all(map(_is_plain, part.args))
    return (
        isinstance(part, Call)
        and part.function.kind is FunctionKind.OPERATOR
        and part.function.name in _NEVER_FAIL
        and all(isinstance(arg, ColumnRef | Const) for arg in part.args)
    )


_NEVER_FAIL: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


def _row(op: BoolOp, part: Expr) -> _Found | None:
    """The columns of `a = 1 AND b = 2` in OR, of `a <> 1 OR b <> 2` in AND, and the constants."""
    name, within = ("=", BoolOp.AND) if op is BoolOp.OR else ("<>", BoolOp.OR)
    if isinstance(part, Call):
        args: Sequence[Expr] = (part,)
    elif isinstance(part, Logical) and part.op is within:
        args = part.args
    else:
        return None
    compared: list[tuple[Function, ColumnRef]] = []
    values: list[Value] = []
    for arg in args:
        if not isinstance(arg, Call) or len(arg.args) != 2 or arg.function.name != name:
            return None
        column, constant = arg.args
        if type(column) is Const:
            column, constant = constant, column
        if type(column) is not ColumnRef or type(constant) is not Const:
            return None
        function = _function(arg.function, column.type, constant)
        if function is None:
            return None
        compared.append((function, column))
        values.append(constant.value)
    if len({column.id for _, column in compared}) < len(compared):
        return None
    return tuple(compared), values


def _function(function: Function, type_: SqlType, constant: Const) -> Function | None:
    """The operator for two values of the column's type, to which the constant may be widened."""
    if type_.name not in _TYPES or constant.value is None:
        return None
    if type_ == constant.type:
        return function
    wider = _WHOLE.get(type_.name, 0) > _WHOLE.get(constant.type.name, 9)
    return function_by_id(f"{type_.name} {function.name} {type_.name}") if wider else None


def _as_rows(op: BoolOp, compared: _Compared, rows: Sequence[Sequence[Value]]) -> InRows:
    columns = tuple(
        [
            ConstantItems(values, column.type)
            for (_, column), values in zip(compared, zip(*rows, strict=True), strict=True)
        ]
    )
    functions = tuple([function for function, _ in compared])
    args = tuple([column for _, column in compared])
    return InRows(functions, args, columns, op is BoolOp.AND, BOOL)


def rows_as_conditions(expr: InRows) -> Logical:
    """The condition that it stands for (N1)."""
    op, within = (BoolOp.AND, BoolOp.OR) if expr.negated else (BoolOp.OR, BoolOp.AND)
    parts: list[Expr] = []
    for row in zip(*expr.columns, strict=True):
        both = zip(expr.functions, expr.args, row, strict=True)
        pairs = [Call(function, (arg, item), BOOL) for function, arg, item in both]
        parts.append(pairs[0] if len(pairs) == 1 else Logical(within, tuple(pairs), BOOL))
    return Logical(op, tuple(parts), BOOL)


class ConstantWhens(Sequence[tuple[Expr, Expr]]):
    """`WHEN a = 1 THEN 'x' WHEN a = 2 THEN ..`: branches that look a value up. Walks see the first
    one (M1 of `constant_items.py`).
    """

    def __init__(
        self, function: Function, subject: Expr, keys: ConstantItems, results: ConstantItems
    ) -> None:
        self.function: Final = function
        self.subject: Final = subject
        self.keys: Final = keys
        self.results: Final = results

    def rewritten(self, rewrite: Callable[[Expr], Expr]) -> "ConstantWhens | None":
        """The same, rewritten, if at most the subject becomes another; else None."""
        when, then = self[0]
        made, result = rewrite(when), rewrite(then)
        if result != then or not isinstance(made, Call) or len(made.args) != 2:
            return None
        other = ConstantWhens(self.function, made.args[0], self.keys, self.results)
        return other if made == other[0][0] else None

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> tuple[Expr, Expr]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[Expr, Expr]]: ...
    def __getitem__(self, at: int | slice) -> tuple[Expr, Expr] | Sequence[tuple[Expr, Expr]]:
        if isinstance(at, slice):
            return tuple(self)[at]
        return Call(self.function, (self.subject, self.keys[at]), BOOL), self.results[at]

    def __iter__(self) -> Iterator[tuple[Expr, Expr]]:
        for key, result in zip(self.keys, self.results, strict=True):
            yield Call(self.function, (self.subject, key), BOOL), result

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ConstantWhens):
            mine, theirs = (self.function, self.subject), (other.function, other.subject)
            return mine == theirs and (self.keys, self.results) == (other.keys, other.results)
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.subject, self.keys, self.results))


def packed_whens(whens: Sequence[tuple[Expr, Expr]]) -> Sequence[tuple[Expr, Expr]]:
    """The branches of a CASE as one part of a plan, if they are many that look a value up."""
    if len(whens) < ITEMS_MIN:
        return whens
    results = packed_items([then for _, then in whens])
    if not isinstance(results, ConstantItems):
        return whens
    compared: _Compared | None = None
    keys: list[Value] = []
    for when, _ in whens:
        found = _row(BoolOp.OR, when) if isinstance(when, Call) else None
        if found is None or (compared or found[0]) != found[0]:
            return whens
        compared = found[0]
        keys.append(found[1][0])
    assert compared is not None, "there are some"
    ((function, subject),) = compared
    return ConstantWhens(function, subject, ConstantItems(keys, subject.type), results)


def size_of_node(node: Plan | Expr) -> int:
    """1, and the constants that no walk finds."""
    if isinstance(node, InList) and isinstance(node.items, ConstantItems):
        return len(node.items)
    if isinstance(node, Case) and isinstance(node.whens, ConstantWhens):
        return 4 * len(node.whens)
    if isinstance(node, InRows):
        return len(node.columns) * len(node.columns[0])
    if isinstance(node, Values) and isinstance(node.rows, ConstantRows):
        return len(node.rows) * len(node.columns)
    return 1
