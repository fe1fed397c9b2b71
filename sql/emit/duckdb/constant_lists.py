"""Write many constants as one string that is bound, and that DuckDB reads as a list.

x in (1, .., 50000)   ─▶  x in (select unnest(cast($a1 as integer[])))         $a1: '[1,..,50000]'
array[1, .., 50000]   ─▶  cast($a1 as integer[])
values (1, 'a'), ..   ─▶  select unnest(cast($a1 as integer[])), unnest(string_split($a2, ..))

DuckDB takes 20 to 50 microseconds for each constant of a text, and its Python module parses texts
with the GIL. A list that is bound costs a fiftieth of that, and IN becomes a join.

INVARIANTS
  K1  the list has the values that `literal` of `types.py` writes, of the same type.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from sql.emit.duckdb.types import bind_variable, duckdb_type
from sql.emit.state import Scope
from sql.plan.constant_items import ITEMS_MIN, ConstantItems, ConstantRows
from sql.plan.nodes import Const, Expr, InList, Param
from sql.rewrite.guard_expressions import may_fail
from sql.types.enums import storage_type_name
from sql.types.sql_type import SqlType, Value

LIST_MIN: Final = ITEMS_MIN
"""Constants. Fewer are written: DuckDB prunes files by them, and caches the statement."""

_SEPARATOR: Final = "\x1f"
_NULL: Final = "\x1e"

_INSTANTS: Final = {
    "date": ("integer[]", "(date '1970-01-01' + {})"),
    "timestamp": ("bigint[]", "make_timestamp({})"),
    "timestamptz": ("bigint[]", "make_timestamptz({})"),
}


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return ("-inf" if value < 0 else "inf") if math.isinf(value) else repr(value)


_TEXTS: Final[dict[type, Callable[..., str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: lambda value: f"{value:f}",
    type(None): lambda _: "NULL",
}


def constant_list(values: Sequence[Value], type_: SqlType, scope: Scope) -> str | None:
    """Many values as a list (K1); None if they are few, or of a type that is written otherwise."""
    if len(values) < LIST_MIN or type_.element is not None:
        return None
    kinds = set(map(type, values))
    if str in kinds:
        return _strings(values, type_, scope) if kinds <= {str, type(None)} else None
    if not kinds <= _TEXTS.keys() or kinds == {type(None)}:
        return None
    if kinds == {int}:
        texts = ",".join(map(str, values))
    else:
        texts = ",".join([_TEXTS[type(value)](value) for value in values])
    bound = scope.statement.string(f"[{texts}]")
    instant = _INSTANTS.get(storage_type_name(type_.name))
    if instant is None:
        return f"cast({bound} as {duckdb_type(type_)}[])"
    name = scope.variable()
    made = instant[1].format(name)
    return f"list_transform(cast({bound} as {instant[0]}), lambda {name}: {made})"


def _strings(values: Sequence[Value], type_: SqlType, scope: Scope) -> str | None:
    if duckdb_type(type_) != "varchar":
        return None
    texts = [_NULL if value is None else str(value) for value in values]
    joined = _SEPARATOR.join(texts)
    if joined.count(_SEPARATOR) != len(texts) - 1:
        return None
    has_null = None in values
    if has_null and joined.count(_NULL) != values.count(None):
        return None
    split = f"string_split({scope.statement.string(joined)}, chr({ord(_SEPARATOR)}))"
    if not has_null:
        return split
    name = scope.variable()
    return f"list_transform({split}, lambda {name}: nullif({name}, chr({ord(_NULL)})))"


def constant_array(value: Value, type_: SqlType, scope: Scope) -> str | None:
    """A constant that is a long array; None for any other."""
    if not isinstance(value, tuple) or len(value) < LIST_MIN or type_.element is None:
        return None
    found = constant_list(value, type_.element, scope)
    return None if found is None else f"cast({found} as {duckdb_type(type_)})"


def array_parameter(param: Param, scope: Scope) -> str | None:
    """A parameter whose value is a long array; None for any other."""
    value = scope.statement.parameters[param.index - 1]
    found = constant_array(value, param.type, scope)
    if found is not None:
        scope.statement.types[param.index] = param.type
        scope.statement.written.add(param.index)
    return found


def constants_of(exprs: Sequence[Expr]) -> Sequence[Value] | None:
    """The values of expressions that are all constants."""
    if isinstance(exprs, ConstantItems):
        return exprs.values
    values: list[Value] = []
    for expr in exprs:
        if not isinstance(expr, Const):
            return None
        values.append(expr.value)
    return values


def in_constant_list(
    subject: Expr, values: Sequence[Value], type_: SqlType, scope: Scope, *, negated: bool
) -> str | None:
    """`subject [NOT] IN` many constants, as a join; None where that cannot be one."""
    # A join computes the subject for all rows, DuckDB's lambdas have no subqueries, and outer joins
    # with one lose conditions (`Select.fragile`).
    if scope.in_lambda or scope.joining or len(values) < LIST_MIN or may_fail(subject):
        return None
    found = constant_list(values, type_, scope)
    if found is None:
        return None
    word = "not in" if negated else "in"
    return f"({scope.emit(subject)} {word} (select unnest({found})))"


_JOINED_MIN: Final = 5
"""Constants of IN from which on DuckDB makes a join of it, measured on 2.0."""


def in_known_list(expr: InList, values: Sequence[Value], scope: Scope) -> str | None:
    """IN of constants for a subject that may fail: a join would compute it for all rows, also in a
    branch that is not taken. None for few constants.
    """
    if len(values) < _JOINED_MIN:
        return None
    type_, known = expr.arg.type, [value for value in values if value is not None]
    items = constant_list(known, type_, scope)
    if items is None:
        texts = [scope.statement.constant(value, type_) for value in known]
        items = f"cast(list_value({', '.join(texts)}) as {duckdb_type(type_)}[])"
    name = scope.variable()
    otherwise = "false" if len(known) == len(values) else "cast(null as boolean)"
    body = (
        f"case when {name} is null then cast(null as boolean)"
        f" when list_contains({items}, {name}) then true else {otherwise} end"
    )
    found = bind_variable(name, scope.emit(expr.arg), body)
    return f"(not {found})" if expr.negated else f"({found})"


def constant_rows(rows: Sequence[Sequence[Expr]], scope: Scope) -> Sequence[str] | None:
    """The columns of many rows of constants, as lists; None for other rows."""
    if len(rows) < LIST_MIN or not rows[0]:
        return None
    lists: list[str] = []
    if isinstance(rows, ConstantRows):
        texts = [constant_list(items.values, items.type, scope) for items in rows.columns]
        lists = [text for text in texts if text is not None]
        return lists if len(lists) == len(texts) else None
    for exprs in zip(*rows, strict=True):
        values = constants_of(exprs)
        if values is None or len({duckdb_type(expr.type) for expr in exprs}) > 1:
            return None
        found = constant_list(values, exprs[0].type, scope)
        if found is None:
            return None
        lists.append(found)
    return lists
