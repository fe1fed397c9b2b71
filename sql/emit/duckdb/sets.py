"""Write set-returning functions as DuckDB SQL: lists, unnested side by side."""

from collections.abc import Sequence

from sql.emit.duckdb.long_series import STRETCH, series_by_stretches, time_bounds
from sql.emit.duckdb.types import array, as_duckdb_interval, duckdb_type, error, unsupported
from sql.emit.select import scope_over, with_extra_columns
from sql.emit.series import (
    ZERO_STEP_MESSAGE,
    constant_step,
    decimal_series,
    series_constants,
    with_listed_series,
)
from sql.emit.state import Scope, Select
from sql.plan.nodes import Const, PlanColumn, SetCall, SetScan
from sql.types.sql_type import Interval, array_of


def set_scan(plan: SetScan, scope: Scope) -> Select:
    """The calls as a derived table; a single series of constants is never a list."""
    plan = with_listed_series(plan, scope, _adds_up)
    alias = scope.statement.alias()
    names = {column.id: f"{alias}.c{column.id}" for column in plan.columns}
    if plan.ordinality is not None:
        names[plan.ordinality.id] = f"{alias}.c{plan.ordinality.id}"
    series = _plain_series(plan, scope)
    if series is not None:
        items = [f"{series} as c{plan.columns[0].id}"]
        if plan.ordinality is not None:
            items.append(f"row_number() over () as c{plan.ordinality.id}")
        rows = _list(plan.calls[0], scope)
        return Select(f"(select {', '.join(items)} from {rows}) {alias}", names)
    lists = _items(plan, [_list(call, scope) for call in plan.calls])
    return Select(f"(select {', '.join(lists)}) {alias}", names)


def sets_beside(
    left: Select, columns: Sequence[PlanColumn], plan: SetScan, scope: Scope, *, padded: bool
) -> Select:
    """Each row of `left` beside the rows of its sets. `padded`: beside NULLs if there are none."""
    inside = scope_over(left, scope)
    plan = with_listed_series(plan, inside, _adds_up)
    bounds = _long_series(plan, inside)
    if bounds is not None:
        return series_by_stretches(left, columns, plan, bounds, scope, padded=padded)
    lists = {f"l{number}": _list(call, inside) for number, call in enumerate(plan.calls)}
    below, row = with_extra_columns(left, lists, columns, scope)
    shown = [f"{row}.{name}" for name in lists]
    alias = scope.statement.alias()
    items = [f"{below.names[column.id]} as c{column.id}" for column in columns]
    items += _items(plan, shown, padded=padded)
    made = [*columns, *plan.columns, *([plan.ordinality] if plan.ordinality is not None else ())]
    names = {column.id: f"{alias}.c{column.id}" for column in made}
    return Select(f"(select {', '.join(items)} from {below.source}) {alias}", names)


def _items(plan: SetScan, lists: Sequence[str], *, padded: bool = False) -> Sequence[str]:
    """The columns of the sets. `padded`: a row of NULLs when there would be none."""
    shown = [_padded(text) for text in lists] if padded else lists
    items = [
        f"cast(unnest({text}) as {duckdb_type(call.type)}) as c{column.id}"
        for text, call, column in zip(shown, plan.calls, plan.columns, strict=True)
    ]
    if plan.ordinality is not None:
        lengths = ", ".join(f"coalesce(len({text}), 0)" for text in lists)
        numbers = f"range(1, greatest({lengths}, 0) + 1)"
        numbers = _padded(numbers) if padded else numbers
        items.append(f"unnest({numbers}) as c{plan.ordinality.id}")
    return items


def _padded(items: str) -> str:
    return f"case when len({items}) > 0 then {items} else [null] end"


def _plain_series(plan: SetScan, scope: Scope) -> str | None:
    """The value of a row of DuckDB's own table function, for one series of constants."""
    call = plan.calls[0]
    if len(plan.calls) > 1 or call.function.duckdb not in ("@series", "@times"):
        return None
    if any(scope.statement.known(arg) is None for arg in call.args):
        return None
    return f"cast(generate_series as {duckdb_type(call.type)})"


def _long_series(plan: SetScan, scope: Scope) -> tuple[str, str, str] | None:
    """Start, stop and step of one series of each row that may be long; None for any other sets."""
    call = plan.calls[0]
    if len(plan.calls) > 1 or plan.ordinality is not None:
        return None
    if call.function.duckdb == "@times":
        step = constant_step(call, scope)
        assert step is not None, "others are lists"
        start, stop = (scope.emit(arg) for arg in call.args[:2])
        return None if step.months else time_bounds(start, stop, step)
    if call.function.duckdb != "@series" or _is_short(call):
        return None
    return _bounds(call, scope)


def _is_short(call: SetCall) -> bool:
    """Whether the numbers are constants, and few."""
    start, stop = (arg.value if isinstance(arg, Const) else None for arg in call.args[:2])
    return isinstance(start, int) and isinstance(stop, int) and abs(stop - start) < STRETCH


def _list(call: SetCall, scope: Scope) -> str:
    match call.function.duckdb:
        case "@series":
            return _series(call, scope)
        case "@decimals":
            values = decimal_series(call, scope)
            assert values is not None, "others are lists"
            return array(series_constants(values, call, scope), array_of(call.type))
        case "@times":
            return _times(call, scope)
        case "@unnest":
            return scope.emit(call.args[0])
        case "@subscripts":
            items, dimension, *reverse = (scope.emit(arg) for arg in call.args)
            found = f"range(1, len({items}) + 1)"
            if reverse:
                backward = f"when {reverse[0]} then list_reverse({found})"
                found = f"case {backward} when not {reverse[0]} then {found} end"
            return f"case when {dimension} = 1 then {found} end"
        case _:
            raise unsupported(f"the set-returning function {call.function.id}")


def _series(call: SetCall, scope: Scope) -> str:
    start, stop, step = _bounds(call, scope)
    if len(call.args) > 2:
        step = _checked_step(call, step, scope)
    return f"generate_series({start}, {stop}, {step})"


def _bounds(call: SetCall, scope: Scope) -> tuple[str, str, str]:
    """Start, stop and step."""
    start, stop, *rest = (f"cast({scope.emit(arg)} as bigint)" for arg in call.args)
    return start, stop, rest[0] if rest else "cast(1 as bigint)"


def _checked_step(call: SetCall, step: str, scope: Scope) -> str:
    known = scope.statement.known(call.args[2])
    if known is not None and known[0] != 0:
        return step
    return f"case when {step} = 0 then {error('22023', ZERO_STEP_MESSAGE)} else {step} end"


def _times(call: SetCall, scope: Scope) -> str:
    start, stop, text = (scope.emit(arg) for arg in call.args[:3])
    return f"generate_series({start}, {stop}, {as_duckdb_interval(text)})"


def _adds_up(_call: SetCall, step: Interval, _scope: Scope) -> bool:
    """Not steps of mixed signs."""
    parts = (step.months, step.days, step.micros)
    return all(part >= 0 for part in parts) or all(part <= 0 for part in parts)
