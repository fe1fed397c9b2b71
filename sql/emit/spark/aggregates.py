"""Write aggregate calls as Spark SQL.

INVARIANTS
  A1  integers are summed as decimals where PostgreSQL does (sum(bigint)), an average is one
      division of exact sums (`spark/quotients.py`): both engines get the same digits.
  A2  an aggregate without a template, or refused by it, is computed by the reference evaluator from
      the list of all rows: exact, and as large as the group (over a window: as each frame).
  A3  no template has nullif() around an aggregate or in its argument: Spark puts a projection of
      its own there, and a correlated subquery becomes a cross product.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sql.emit.enums import enum_min_or_max, label_position
from sql.emit.spark.arrays import array_sort_text, compares_natively
from sql.emit.spark.quotients import quotient
from sql.emit.spark.types import error, interval_key, spark_type, unsupported
from sql.emit.spark.worker_functions import NOT_SUPPORTED, NotComputable, aggregate_in_worker
from sql.emit.state import Scope
from sql.emit.templates import (
    OVERFLOWING_DISTANCE,
    AggregateSurroundings,
    fill_template,
    function_description,
    sort_key_text,
)
from sql.errors import SqlError
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.nodes import Aggregate, SortKey
from sql.rewrite.guard_expressions import with_guarded_arguments
from sql.types.enums import is_enum
from sql.types.sql_type import computed_numeric


def aggregate(call: Aggregate, scope: Scope, over: str = "") -> str:
    """The text of an aggregate call, cast to its type. `over`: the text of its window."""
    try:
        text = _native(call, scope, over)
    except NotComputable:
        raise
    except SqlError as error:
        if error.sqlstate != NOT_SUPPORTED or call.function.duckdb is None:
            # The evaluator has what an engine has.
            raise
        text = aggregate_in_worker(call, scope, over)
    return f"cast({text} as {spark_type(call.type)})"


def _native(call: Aggregate, scope: Scope, over: str) -> str:
    template = call.function.spark
    if template is None:
        raise unsupported(function_description(call.function))
    if call.distinct and not all(
        compares_natively(arg.type) or is_enum(arg.type.name) for arg in call.args
    ):
        raise unsupported("DISTINCT of values like these")
    # Spark computes what is to be DISTINCT, or what two calls share, before it looks at FILTER.
    call = with_guarded_arguments(call, by_overflow=call.distinct)
    where = "" if call.filter is None else f" filter (where {scope.emit(call.filter)})"
    around = AggregateSurroundings("distinct " if call.distinct else "", where + over, bool(over))
    if template.startswith("@"):
        return _SPECIALS[template[1:]](call, scope, around)
    if call.distinct and len(call.args) > 1:
        raise unsupported("DISTINCT of several values")
    return around.of(fill_template(template, [scope.emit(arg) for arg in call.args], error))


def _sum(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x = f"cast({scope.emit(call.args[0])} as decimal(38,{call.type.scale}))"
    return around.of(f"sum({x})")


def _only_value(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    several = error("21000", "more than one row returned by a subquery used as an expression")
    # first() and any_value() would be volatile for Spark.
    row = around.of(f"max_by({scope.emit(call.args[0])}, 1)")
    return f"case when {around.of('count(1)')} > 1L then {several} else {row} end"


def _average(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x, type_ = scope.emit(call.args[0]), call.args[0].type
    scale = (type_.scale or 0) if type_.name == "numeric" else 0
    total = around.of(f"sum(cast({x} as decimal(38,{scale})))")
    count = around.of(f"count({x})")
    # count is 0 only where sum is NULL, and a division by zero would come first.
    rows = f"cast(case when {count} <> 0L then {count} end as decimal(19,0))"
    types = (computed_numeric(38, scale, trim=type_.trim), computed_numeric(19, 0, trim=False))
    return quotient((total, types[0]), (rows, types[1]), scope)


def _float_sum(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """An infinity that no input is is an overflow; the sum of -0 alone is -0."""
    if call.order or call.distinct:
        raise unsupported("a sum in an order")
    if call.type.name == "float4" and not around.windowed:
        raise unsupported("a sum that is rounded at each step")
    x = scope.emit(call.args[0])
    total = around.of(f"sum(cast({x} as double))")
    # One more aggregate, not two: 2 for an infinity, 0 if all are -0.
    kind = f"case when {x} is null then null when abs({x}) = double('Infinity') then 2"
    negative = f"{x} = 0D and cast({x} as string) = '-0.0'"
    inputs = around.of(f"max({kind} when {negative} then 0 else 1 end)")
    failure = error("22003", "value out of range: overflow")
    overflow = f"when abs({total}) = double('Infinity') and {inputs} < 2 then {failure}"
    return f"case {overflow} when {inputs} = 0 then double('-0.0') else {total} end"


def _float_average(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """An overflow of the sum, or of the square of a distance, which PostgreSQL sums up as well."""
    if call.order or call.distinct:
        raise unsupported("an average in an order")
    x = f"cast({scope.emit(call.args[0])} as double)"
    total, least, greatest = (around.of(f"{name}({x})") for name in ("avg", "min", "max"))
    far = f"{greatest} - {least} > {OVERFLOWING_DISTANCE}D"
    failure = error("22003", "value out of range: overflow")
    infinite = "double('Infinity')"
    return (
        f"case when isnan({total}) or {greatest} = {infinite} or {least} = -{infinite} then {total}"
        f" when abs({total}) = {infinite} or {far} then {failure} else {total} end"
    )


def _deviation(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """By PostgreSQL's recurrence over all rows, which has its own last digits; so have windows
    (`running_windows.py`), but for those of a subquery that refers to the outer rows.
    """
    if not around.windowed:
        raise unsupported("a variance with PostgreSQL's last digits")
    name = {"stddev": "stddev_samp", "variance": "var_samp"}.get(
        call.function.name, call.function.name
    )
    return around.of(f"{name}(cast({scope.emit(call.args[0])} as double))")


def _string_agg(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    delimiter = scope.statement.known(call.args[1])
    if delimiter is None:
        raise unsupported("string_agg with a computed delimiter")
    separator = scope.statement.string(str(delimiter[0] or ""))
    x = scope.emit(call.args[0])
    if call.distinct:
        # DISTINCT sorts its values in PostgreSQL, and so orders what has no ORDER BY.
        ascending = not (call.order and call.order[0].descending)
        values = f"sort_array(collect_set({x}){around.behind}, {str(ascending).lower()})"
    elif call.order:
        values = _sorted_values(call.order, x, scope, around)
    else:
        return f"listagg({x}, {separator}){around.behind}"
    # No values are NULL, not an empty text.
    return f"array_join(nullif({values}, cast(array() as array<string>)), {separator})"


def _array_agg(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    """All values, NULL too, which Spark's own function would leave out."""
    x = scope.emit(call.args[0])
    if call.distinct:
        found = _distinct_values(call, x, around)
    elif call.order:
        found = _sorted_values(call.order, x, scope, around, nulls=True)
    else:
        found = f"transform(collect_list(named_struct('x', {x})){around.behind}, v -> v.x)"
    return f"nullif({found}, cast(array() as {spark_type(call.type)}))"


def _distinct_values(call: Aggregate, x: str, around: AggregateSurroundings) -> str:
    """The values and NULL, sorted: without ORDER BY, too, as DISTINCT sorts them in PostgreSQL."""
    type_ = call.args[0].type
    if not compares_natively(type_) or type_.name in ("float4", "float8"):
        # Of floats, sets make 0 of -0.
        raise unsupported("array_agg of distinct values like these")
    descending, nulls_first = (
        (call.order[0].descending, call.order[0].nulls_first) if call.order else (False, False)
    )
    test = "is null" if descending == nulls_first else "is not null"
    packed = f"named_struct('n', {x} {test}, 'x', {x})"
    values = f"sort_array(collect_set({packed}){around.behind}, {str(not descending).lower()})"
    return f"transform({values}, v -> v.x)"


def _sorted_values(
    order: Sequence[SortKey],
    x: str,
    scope: Scope,
    around: AggregateSurroundings,
    *,
    nulls: bool = False,
) -> str:
    """The values as a sorted array. Not WITHIN GROUP: beside two sets of DISTINCT arguments it
    makes Spark's planner fail.
    """
    fields, cases = [f"'x', {x}"], ""
    for number, key in enumerate(order):
        fields.append(f"'k{number}', {_key_text(key, scope)}")
        p, q = f"p.k{number}", f"q.k{number}"
        null, less = (-1 if key.nulls_first else 1), (1 if key.descending else -1)
        cases += (
            f" when {p} is null and {q} is not null then {null}"
            f" when {p} is not null and {q} is null then {-null}"
            f" when {p} < {q} then {less} when {p} > {q} then {-less}"
        )
    packed = f"named_struct({', '.join(fields)})"
    if not nulls:
        packed = f"case when {x} is not null then {packed} end"
    found = f"array_sort(collect_list({packed}){around.behind}, (p, q) -> case{cases} else 0 end)"
    return f"transform({found}, v -> v.x)"


def _any_value(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x = scope.emit(call.args[0])
    if call.distinct:
        # DISTINCT sorts in PostgreSQL, so that it is the least one.
        raise unsupported("any_value with DISTINCT")
    if call.order:
        return f"get({_sorted_values(call.order, x, scope, around)}, 0)"
    return around.of(f"any_value({x}, true)")


def order_by(keys: Sequence[SortKey], scope: Scope) -> str:
    """ORDER BY keys with their NULL order."""
    return ", ".join(sort_key_text(_key_text(key, scope), key) for key in keys)


def _key_text(key: SortKey, scope: Scope) -> str:
    if is_enum(key.expr.type.name):
        return label_position(scope.emit(key.expr), key.expr.type, scope)
    text = scope.key(key.expr, "ordering by")
    return text if key.expr.type.element is None else array_sort_text(text, key.expr.type)


def _interval_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x = scope.emit(call.args[0])
    function = "max_by" if call.function.name == "max" else "min_by"
    return f"{function}({x}, {interval_key(x)}){around.behind}"


def _char_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    x, name = call.args[0], call.function.name
    if not x.type.has_blanks:
        return around.of(f"{name}({scope.emit(x)})")
    return around.of(f"{name}_by({scope.emit(x)}, {scope.emit(trim_bpchar(x))})")


def _enum_extreme(call: Aggregate, scope: Scope, around: AggregateSurroundings) -> str:
    return f"{enum_min_or_max(call, scope, ('min_by', 'max_by'))}{around.behind}"


_SPECIALS: Final[dict[str, Callable[[Aggregate, Scope, AggregateSurroundings], str]]] = {
    "sum": _sum,
    "array_agg": _array_agg,
    "interval_extreme": _interval_extreme,
    "any_value": _any_value,
    "only_value": _only_value,
    "average": _average,
    "deviation": _deviation,
    "char_extreme": _char_extreme,
    "enum_extreme": _enum_extreme,
    "float_average": _float_average,
    "float_sum": _float_sum,
    "string_agg": _string_agg,
}
