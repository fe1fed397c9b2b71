"""Write set-returning functions as Spark SQL: arrays, zipped and exploded."""

from collections.abc import Sequence

from sql.emit.select import scope_over, with_extra_columns
from sql.emit.series import (
    DAY_MICROS,
    ZERO_STEP_MESSAGE,
    constant_step,
    decimal_series,
    monthly_series,
    series_constants,
    with_listed_series,
)
from sql.emit.spark.types import array, bind_variable, error, spark_type, unsupported
from sql.emit.state import Scope, Select
from sql.plan.nodes import PlanColumn, SetCall, SetScan
from sql.types.sql_type import Interval, array_of


def set_scan(plan: SetScan, scope: Scope) -> Select:
    """The calls as a derived table; several arrays are zipped, which pads them with NULLs."""
    plan = with_listed_series(plan, scope, _adds_up)
    plain = _plain_series(plan, scope)
    if plain is not None:
        alias, column = scope.statement.alias(), plan.columns[0].id
        return Select(_range(plain, column, alias, scope), {column: f"{alias}.c{column}"})
    items = _zipped(plan, scope)
    rows = f"select {_exploded(plan, items, padded=False)}"
    return _made_of(rows, plan, (), scope)


def sets_beside(
    left: Select, columns: Sequence[PlanColumn], plan: SetScan, scope: Scope, *, padded: bool
) -> Select:
    """Each row of `left` beside the rows of its sets. `padded`: beside NULLs if there are none."""
    inside = scope_over(left, scope)
    plan = with_listed_series(plan, inside, _adds_up)
    below, row = with_extra_columns(left, {"l": _zipped(plan, inside)}, columns, scope)
    kept = [f"{below.names[column.id]} as c{column.id}" for column in columns]
    items = ", ".join([*kept, _exploded(plan, f"{row}.l", padded=padded)])
    return _made_of(f"select {items} from {below.source}", plan, columns, scope)


def _zipped(plan: SetScan, scope: Scope) -> str:
    """One array, of all the sets."""
    arrays = [_array(call, scope) for call in plan.calls]
    if len(arrays) == 1:
        return arrays[0]
    # An array that is NULL would make all of them NULL.
    return f"arrays_zip({', '.join(f'coalesce({text}, array())' for text in arrays)})"


def _exploded(plan: SetScan, items: str, *, padded: bool) -> str:
    outer = "_outer" if padded else ""
    if plan.ordinality is None:
        return f"explode{outer}({items}) as v"
    return f"posexplode{outer}({items}) as (p, v)"


def _made_of(exploded: str, plan: SetScan, kept: Sequence[PlanColumn], scope: Scope) -> Select:
    """The columns of the sets, of the elements in `exploded`, beside those that it keeps."""
    alias, rows = scope.statement.alias(), scope.statement.alias()
    values = (
        [f"{rows}.v"]
        if len(plan.calls) == 1
        else [f"{rows}.v.`{number}`" for number in range(len(plan.calls))]
    )
    shown = [f"{rows}.c{column.id} as c{column.id}" for column in kept]
    shown += [
        f"{_value(call, value)} as c{column.id}"
        for call, value, column in zip(plan.calls, values, plan.columns, strict=True)
    ]
    made = [*kept, *plan.columns]
    if plan.ordinality is not None:
        shown.append(f"cast({rows}.p + 1 as bigint) as c{plan.ordinality.id}")
        made.append(plan.ordinality)
    names = {column.id: f"{alias}.c{column.id}" for column in made}
    return Select(f"(select {', '.join(shown)} from ({exploded}) {rows}) {alias}", names)


def _plain_series(plan: SetScan, scope: Scope) -> SetCall | None:
    """One series of constants, which needs no array."""
    call = plan.calls[0]
    if len(plan.calls) > 1 or plan.ordinality is not None or call.function.spark != "@series":
        return None
    known = all(scope.statement.known(arg) is not None for arg in call.args)
    return call if known else None


def _value(call: SetCall, text: str) -> str:
    """An element as a value of the call's type; times come as microseconds."""
    if call.function.spark == "@times":
        text = f"timestamp_micros({text})"
    return f"cast({text} as {spark_type(call.type)})"


def _range(call: SetCall, column: int, alias: str, scope: Scope) -> str:
    """A series of constants, which is never an array."""
    values = [known[0] for arg in call.args if (known := scope.statement.known(arg)) is not None]
    start, stop, *rest = values
    step = rest[0] if rest else 1
    type_ = spark_type(call.type)
    if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)):
        return f"(select cast(null as {type_}) as c{column} where false) {alias}"
    if step == 0:
        failure = error("22023", ZERO_STEP_MESSAGE)
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
            bounded = f"{start} is not null and {stop} is not null"
            zero = (
                f"when {step} = 0L and {bounded} then {error('22023', ZERO_STEP_MESSAGE)}"
                if rest
                else ""
            )
            some = f"({stop} >= {start} and {step} > 0L) or ({stop} <= {start} and {step} < 0L)"
            return (
                f"case {zero} when {some} then sequence({start}, {stop}, {step}) else {empty} end"
            )
        case "@times":
            return _times(call, scope)
        case "@decimals":
            values = decimal_series(call, scope)
            assert values is not None, "others are lists"
            return array(series_constants(values, call, scope), array_of(call.type))
        case "@unnest":
            return args[0]
        case "@subscripts":
            items, dimension, *reverse = args
            empty = "cast(array() as array<int>)"
            fits = f"{dimension} = 1 and size({items}) > 0"
            found = f"sequence(1, size({items}))"
            if reverse:
                fits += f" and {reverse[0]} is not null"
                found = f"if({reverse[0]}, sequence(size({items}), 1), {found})"
            return f"case when {fits} then {found} else {empty} end"
        case _:
            raise unsupported(f"the set-returning function {call.function.id}")


def _adds_up(call: SetCall, step: Interval, scope: Scope) -> bool:
    """Months and days together only where they are written out."""
    plain = not step.months or not (step.days or step.micros)
    return plain or monthly_series(call, scope) is not None


def _times(call: SetCall, scope: Scope) -> str:
    """Microseconds, a step apart; months are added up here."""
    step = constant_step(call, scope)
    assert step is not None, "others are lists"
    if step.months:
        values = monthly_series(call, scope)
        if values is not None:
            return f"array({', '.join(f'{value}L' for value in values)})"
        return _months(call, step, scope)
    micros = step.days * DAY_MICROS + step.micros
    start, stop = (
        f"unix_micros(cast({scope.emit(arg)} as timestamp_ltz))" for arg in call.args[:2]
    )
    some = f"{stop} >= {start}" if micros > 0 else f"{stop} <= {start}"
    empty = "cast(array() as array<bigint>)"
    return f"case when {some} then sequence({start}, {stop}, {micros}L) else {empty} end"


def _months(call: SetCall, step: Interval, scope: Scope) -> str:
    """The same of a computed time: each is the one before it and the step, so that a day that was
    cut at the end of a month stays cut.
    """
    start, stop = (f"cast({scope.emit(arg)} as timestamp_ntz)" for arg in call.args[:2])
    ends, list_, last, later = (scope.variable() for _ in range(4))
    s, t = f"{ends}.s", f"{ends}.t"
    months = f"(year({t}) - year({s})) * 12 + month({t}) - month({s})"
    steps = f"cast(({months}) div {step.months} as int)"
    added = f"element_at({list_}, -1) + make_ym_interval(0, {step.months})"
    more = f"({list_}, {last}) -> concat({list_}, array({added}))"
    all_ = f"if({steps} < 1, array({s}), aggregate(sequence(1, {steps}), array({s}), {more}))"
    within, back = ("<=", ">=") if step.months > 0 else (">=", "<=")
    kept = f"filter({all_}, {later} -> {later} {within} {t})"
    micros = f"transform({kept}, {later} -> unix_micros(cast({later} as timestamp_ltz)))"
    empty = "cast(array() as array<bigint>)"
    body = f"case when {t} {back} {s} then {micros} else {empty} end"
    return bind_variable(ends, f"named_struct('s', {start}, 't', {stop})", body)
