"""Write aggregate calls as DuckDB SQL.

INVARIANTS
  A1  integers are summed as HUGEINT and cast to PostgreSQL's result type, an average is one
      division of exact sums (D1 of `duckdb/numbers.py`): all engines get the same digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sql.emit.duckdb.arrays import compares_natively
from sql.emit.duckdb.evaluator_calls import evaluator_call_over
from sql.emit.duckdb.quotients import quotient
from sql.emit.duckdb.types import duckdb_type, error, unsupported
from sql.emit.enums import enum_min_or_max, label_position
from sql.emit.state import Scope
from sql.emit.templates import (
    OVERFLOWING_DISTANCE,
    AggregateSurroundings,
    fill_template,
    function_description,
    sort_key_text,
)
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.nodes import Aggregate, Const, Expr, Param, SortKey
from sql.rewrite.guard_expressions import with_guarded_arguments
from sql.types.enums import is_enum
from sql.types.sql_type import computed_numeric, format_type

_ORDERED: Final = (
    "@any_value",
    "@deviation",
    "@float_average",
    "@float_sum",
    "@in_order",
    "@reference",
)
"""Templates of aggregates that hang on the order that DISTINCT brings, or are the evaluator's."""
_NARROW_DIGITS: Final = 18
"""Of a decimal that is 64 bits in DuckDB."""


def aggregate(call: Aggregate, scope: Scope, over: str = "") -> str:
    """The text of an aggregate call, cast to its type. `over`: the text of its window."""
    template = call.function.duckdb
    if template is None:
        raise unsupported(function_description(call.function))
    call = with_guarded_arguments(call)
    if call.function.name in ("min", "max"):
        call = replace(call, distinct=False)
    if call.distinct and call.function.name == "count":
        return (
            f"count(distinct {scope.key(call.args[0], 'DISTINCT of')}){_filter(call, scope)}{over}"
        )
    lists = _in_lists(call, template)
    if call.distinct and not lists and not compares_natively(call.args[0].type):
        raise unsupported(f"DISTINCT of values of type {format_type(call.args[0].type)}")
    around = AggregateSurroundings(
        "distinct " if call.distinct else "", _filter(call, scope) + over, bool(over)
    )
    if lists:
        text = _lists(call, scope, around)
    elif template.startswith("@"):
        text = _SPECIALS[template[1:]](call, scope, around)
    else:
        text = around.of(fill_template(template, [scope.emit(arg) for arg in call.args], error))
    return f"cast({text} as {duckdb_type(call.type)})"


def _in_lists(call: Aggregate, template: str) -> bool:
    """Whether DISTINCT is the evaluator's: of several arguments, and where an aggregate hangs on
    the order that it brings.
    """
    several = len(call.function.args) > 1 and template != "@string_agg"
    return call.distinct and (several or template in _ORDERED)


def _filter(call: Aggregate, scope: Scope) -> str:
    return "" if call.filter is None else f" filter (where {scope.emit(call.filter)})"


def _sum(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    return _total(call.args[0], call.type.scale or 0, scope, around)


def _total(arg: Expr, scale: int, scope: Scope, around: AggregateSurroundings) -> str:
    """The exact sum of numbers as decimal(38,scale), their own scale. DuckDB adds up narrow ones in
    128 bits by itself, in half the time that wide ones take.
    """
    x, type_ = scope.emit(arg), arg.type
    if type_.name != "numeric":
        return f"cast({around.of(f'sum({x})')} as decimal(38,0))"
    narrow = (type_.precision or 0) <= _NARROW_DIGITS and type_.scale == scale
    return around.of(f"sum({x})" if narrow else f"sum(cast({x} as decimal(38,{scale})))")


def _average(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x, type_ = scope.emit(call.args[0]), call.args[0].type
    scale = type_.scale if type_.name == "numeric" else 0
    total = _total(call.args[0], scale or 0, scope, around)
    count = around.of(f"count({x})")
    # PostgreSQL's and Spark's sums are exact too: the division is the only rounding.
    types = (computed_numeric(38, scale or 0, trim=type_.trim), computed_numeric(19, 0, trim=False))
    # count is 0 only where sum is NULL, and a division by zero would come first.
    divisor = f"cast(nullif({count}, 0) as {duckdb_type(types[1])})"
    return quotient((total, types[0]), (divisor, types[1]), scope)


def _float_sum(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """An infinity that no input is is an overflow; the sum of -0 alone is -0."""
    if call.type.name == "float4" or around.windowed or call.order:
        return _in_order(call, scope, around)
    x = scope.emit(call.args[0])
    total = around.of(f"sum(cast({x} as double))")
    # One more aggregate, not two: 2 for an infinity, 0 if all are -0.
    kind = f"case when {x} is null then null when isinf({x}) then 2"
    inputs = around.of(f"max({kind} when {x} = 0 and signbit({x}) then 0 else 1 end)")
    failure = error("22003", "value out of range: overflow")
    overflow = f"when isinf({total}) and {inputs} < 2 then {failure}"
    return f"case {overflow} when {inputs} = 0 then cast('-0' as double) else {total} end"


def _float_average(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """An overflow of the sum, or of the square of a distance, which PostgreSQL sums up as well."""
    if around.windowed or call.order:
        return _in_order(call, scope, around)
    x = f"cast({scope.emit(call.args[0])} as double)"
    total, least, greatest = (around.of(f"{name}({x})") for name in ("avg", "min", "max"))
    far = f"{greatest} - {least} > cast('{OVERFLOWING_DISTANCE}' as double)"
    failure = error("22003", "value out of range: overflow")
    return (
        f"case when isnan({total}) or isinf({greatest}) or isinf({least}) then {total}"
        f" when isinf({total}) or {far} then {failure} else {total} end"
    )


def _string_agg(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    delimiter = scope.statement.known(call.args[1])
    if delimiter is None:
        raise unsupported("string_agg with a computed delimiter")
    x, joint, wrapped = scope.emit(call.args[0]), str(delimiter[0] or ""), False
    if call.type.name == "bytea":
        # As hexadecimal text, which sorts like the bytes.
        x, wrapped = f"hex({x})", True
        joint = delimiter[0].hex() if isinstance(delimiter[0], bytes) else ""
    if call.distinct:
        found = f"array_to_string({_sorted(call, x, around)}, {scope.statement.string(joint)})"
        return f"from_hex({found})" if wrapped else found
    ordered = _ordered(call, scope)
    separator = scope.statement.string(joint)
    found = f"string_agg({x}, {separator}{ordered}){around.behind}"
    return f"from_hex({found})" if wrapped else found


def _sorted(call: Aggregate, x: str, around: AggregateSurroundings) -> str:
    """The values of an aggregate with DISTINCT, which PostgreSQL sorts. An ORDER BY can only be of
    the same values; DuckDB takes it for the same where it sees that, not in a lambda or CASE.
    """
    key = call.order[0] if call.order else None
    direction = "DESC" if key is not None and key.descending else "ASC"
    nulls = "FIRST" if key is not None and key.nulls_first else "LAST"
    return f"list_sort(list(distinct {x}){around.behind}, '{direction}', 'NULLS {nulls}')"


def _array_agg(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """All values, NULL too."""
    x = scope.emit(call.args[0])
    if call.distinct and not is_enum(call.args[0].type.name):
        return _sorted(call, x, around)
    ordered = _ordered(call, scope)
    return f"list({around.distinct}{x}{ordered}){around.behind}"


def _in_order(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """By the reference evaluator, of the list of all values, NULL too."""
    return evaluator_call_over(call, [_array_agg(call, scope, around)], scope)


def _array_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """The least or greatest array, if DuckDB compares their elements as PostgreSQL."""
    # DuckDB makes zeros of one sign of those within.
    floats = call.type.name in ("_float4", "_float8")
    if floats or not compares_natively(call.type):
        return _reference(call, scope, around)
    return around.of(f"{call.function.name}({scope.emit(call.args[0])})")


def _reference(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """By the reference evaluator, of the list of all values."""
    values = around.of(f"list({scope.emit(call.args[0])})")
    return evaluator_call_over(call, [values], scope)


def _lists(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """By the reference evaluator, of lists of the values of all arguments, in one order."""
    ordered = "" if call.distinct else _ordered(call, scope)
    args = call.args[: len(call.function.args)]
    lists = [f"list({scope.emit(arg)}{ordered}){around.behind}" for arg in args]
    return evaluator_call_over(call, lists, scope)


def _any_value(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    return around.of(f"any_value({scope.emit(call.args[0])}{_ordered(call, scope)})")


def _enum_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    return f"{enum_min_or_max(call, scope, ('arg_min', 'arg_max'))}{around.behind}"


def _char_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x, name = call.args[0], call.function.name
    if not x.type.has_blanks:
        return around.of(f"{name}({scope.emit(x)})")
    return around.of(f"arg_{name}({scope.emit(x)}, {scope.emit(trim_bpchar(x))})")


def _ordered(call: Aggregate, scope: Scope) -> str:
    """The order of an aggregate's input. DuckDB takes no constants there but integers."""
    keys = [key for key in call.order if not isinstance(key.expr, Const | Param)]
    return f" order by {order_by(keys, scope)}" if keys else ""


def order_by(keys: Sequence[SortKey], scope: Scope) -> str:
    """ORDER BY keys with their NULL order."""
    return ", ".join(sort_key_text(_key_text(key, scope), key) for key in keys)


def _key_text(key: SortKey, scope: Scope) -> str:
    if is_enum(key.expr.type.name):
        return label_position(scope.emit(key.expr), key.expr.type, scope)
    return scope.key(key.expr, "ordering by")


_SPECIALS: Final[dict[str, Callable[[Aggregate, Scope, AggregateSurroundings], str]]] = {
    "sum": _sum,
    "array_agg": _array_agg,
    "array_extreme": _array_extreme,
    "any_value": _any_value,
    "average": _average,
    "char_extreme": _char_extreme,
    "deviation": _in_order,
    "enum_extreme": _enum_extreme,
    "float_average": _float_average,
    "float_sum": _float_sum,
    "in_order": _in_order,
    "lists": _lists,
    "reference": _reference,
    "string_agg": _string_agg,
}
