"""Write the series of each row as DuckDB SQL, in stretches: no list has more than STRETCH values.

    generate_series(a, b, d)  ─▶  unnest(h, h + d .. at most b)  over  unnest(a, a + d * STRETCH ..)

DuckDB makes the lists of 2,048 rows at once, looks at no interrupt meanwhile, and counts no memory
of them. What it unnests it gives vector by vector.

INVARIANTS
  L1  the stretches of a row are its series, in its order. Where there is no row, `padded` has one
      of NULL.
  L2  there are LEVELS lists over each other, so a series has at most STRETCH ** LEVELS values.
"""

from collections.abc import Sequence
from typing import Final

from sql.emit.duckdb.types import duckdb_type, error
from sql.emit.select import with_extra_columns
from sql.emit.series import DAY_MICROS, ZERO_STEP_MESSAGE
from sql.emit.state import Scope, Select
from sql.plan.nodes import PlanColumn, SetCall, SetScan
from sql.types.sql_type import Interval

STRETCH: Final = 4_096
"""Larger: more memory for a vector of lists, 64 MiB by this. Smaller: more stretches."""
LEVELS: Final = 3
"""More: each row costs more. Fewer: shorter series."""
_INT8_MAX: Final = (1 << 63) - 1
_TOO_LONG: Final = f"a series of more than {STRETCH**LEVELS} values is too long"


def series_by_stretches(
    left: Select,
    columns: Sequence[PlanColumn],
    plan: SetScan,
    bounds: tuple[str, str, str],
    scope: Scope,
    *,
    padded: bool,
) -> Select:
    """Each row of `left` beside its one series of numbers; `bounds`: start, stop and step."""
    start, stop, step = bounds
    made = {"h": start, "e": stop, "d": step}
    below, row = with_extra_columns(left, made, columns, scope)
    source, kept = below.source, [f"{row}.c{column.id} as c{column.id}" for column in columns]
    for level in reversed(range(LEVELS)):
        values = _starts(row, level)
        if level == LEVELS - 1:
            values = _checked(row, values)
        if padded:
            values = f"case when len({values}) > 0 then {values} else [null] end"
        [call], [column] = plan.calls, plan.columns
        last = level == 0
        shown = f"{_value(call, f'unnest({values})')} as c{column.id}" if last else ""
        items = [*kept, shown or f"{row}.e as e, {row}.d as d, unnest({values}) as h"]
        text = f"(select {', '.join(items)} from {source})"
        row = scope.statement.alias()
        source, kept = f"{text} {row}", [f"{row}.c{each.id} as c{each.id}" for each in columns]
    return Select(source, {each.id: f"{row}.c{each.id}" for each in [*columns, *plan.columns]})


def _starts(row: str, level: int) -> str:
    """Where the stretches of a level begin, in the one that begins at `h`."""
    leap, wider = STRETCH**level, STRETCH ** (level + 1)
    # A leap that is no number has few values: they are one stretch.
    single = f"not {row}.d between -{_INT8_MAX // leap} and {_INT8_MAX // leap}"
    open_end = f"not {row}.d between -{_INT8_MAX // wider} and {_INT8_MAX // wider}"
    last = f"cast({row}.h as hugeint) + {row}.d * cast({(STRETCH - 1) * leap} as hugeint)"
    if level == LEVELS - 1:
        end = f"{row}.e"
    else:
        end = (
            f"cast(case when {open_end} then {row}.e when {row}.d > 0 then least({last}, {row}.e)"
            f" else greatest({last}, {row}.e) end as bigint)"
        )
    if level == 0:
        return f"generate_series({row}.h, {end}, {row}.d)"
    stop = f"case when {single} then {row}.h else {end} end"
    by = f"case when {single} then 1 else {row}.d * {leap} end"
    return f"generate_series({row}.h, {stop}, {by})"


def _checked(row: str, values: str) -> str:
    """NULL beside a bound that is NULL; else errors of a step that is none, and of L2."""
    length = f"abs(cast({row}.e as hugeint) - {row}.h)"
    return (
        f"case when {row}.h is null or {row}.e is null then null when {row}.d = 0 then"
        f" {error('22023', ZERO_STEP_MESSAGE)} when {length} // {STRETCH**LEVELS} >"
        f" abs(cast({row}.d as hugeint)) then {error('54000', _TOO_LONG)} else {values} end"
    )


def time_bounds(start: str, stop: str, step: Interval) -> tuple[str, str, str]:
    """Of a series of times whose step has no months: microseconds."""
    assert not step.months, "months are of several lengths"
    micros = step.days * DAY_MICROS + step.micros
    return f"epoch_us({start})", f"epoch_us({stop})", f"cast({micros} as bigint)"


def _value(call: SetCall, number: str) -> str:
    if call.function.duckdb == "@times":
        number = f"make_timestamp({number})"
    return f"cast({number} as {duckdb_type(call.type)})"
