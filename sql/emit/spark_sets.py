"""Set-returning functions as Spark SQL: one array at a time, exploded."""

from sql.emit.scope import Scope
from sql.emit.select_parts import Select
from sql.emit.series import constants, decimal_series
from sql.emit.spark_types import array, error, spark_type, unsupported
from sql.plan import SetCall, SetScan
from sql.types import array_of


def set_scan(plan: SetScan, scope: Scope) -> Select:
    """The call as a derived table."""
    if len(plan.calls) > 1:
        raise unsupported("several set-returning functions side by side")
    (call,), (column,) = plan.calls, plan.columns
    alias, rows = scope.statement.alias(), scope.statement.alias()
    names = {column.id: f"{alias}.c{column.id}"}
    known = all(scope.statement.known(arg) is not None for arg in call.args)
    if call.function.spark == "@series" and known and plan.ordinality is None:
        return Select(_range(call, column.id, alias, scope), names)
    array = _array(call, scope)
    typed = f"cast({rows}.v as {spark_type(call.type)}) as c{column.id}"
    if plan.ordinality is None:
        source = f"(select {typed} from (select explode({array}) as v) {rows}) {alias}"
        return Select(source, names)
    names[plan.ordinality.id] = f"{alias}.c{plan.ordinality.id}"
    number = f"cast({rows}.p + 1 as bigint) as c{plan.ordinality.id}"
    inner = f"(select posexplode({array}) as (p, v)) {rows}"
    return Select(f"(select {typed}, {number} from {inner}) {alias}", names)


def _range(call: SetCall, column: int, alias: str, scope: Scope) -> str:
    """A series of constants, which is never an array."""
    values = [known[0] for arg in call.args if (known := scope.statement.known(arg)) is not None]
    start, stop, *rest = values
    step = rest[0] if rest else 1
    type_ = spark_type(call.type)
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)):
        return f"(select cast(null as {type_}) as c{column} where false) {alias}"
    if step == 0:
        failure = error("22023", "step size cannot equal zero")
        return f"(select cast({failure} as {type_}) as c{column}) {alias}"
    end = stop + (1 if step > 0 else -1)
    if not -(1 << 63) <= end < 1 << 63:
        raise unsupported("a series up to the end of bigint")
    return (
        f"(select cast(id as {type_}) as c{column} from range({start}L, {end}L, {step}L)) {alias}"
    )


def _array(call: SetCall, scope: Scope) -> str:
    args = [scope.emit(arg) for arg in call.args]
    match call.function.spark:
        case "@series":
            start, stop, *rest = (f"cast({arg} as bigint)" for arg in args)
            step = rest[0] if rest else "1L"
            empty = "cast(array() as array<bigint>)"
            zero = (
                f"when {step} = 0L then {error('22023', 'step size cannot equal zero')}"
                if rest
                else ""
            )
            some = f"({stop} >= {start} and {step} > 0L) or ({stop} <= {start} and {step} < 0L)"
            return (
                f"case {zero} when {some} then sequence({start}, {stop}, {step}) else {empty} end"
            )
        case "@decimals":
            return array(constants(decimal_series(call, scope), call, scope), array_of(call.type))
        case "@unnest":
            return args[0]
        case "@subscripts":
            items, dimension = args
            empty = "cast(array() as array<int>)"
            fits = f"{dimension} = 1 and size({items}) > 0"
            return f"case when {fits} then sequence(1, size({items})) else {empty} end"
        case _:
            raise unsupported(f"the set-returning function {call.function.id}")
