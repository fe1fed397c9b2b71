"""Fold float sums, averages and variances of a window over the list of a partition's rows.

DuckDB adds up a frame from partial sums, and both engines compute variances by other formulas, so
their last digits are not PostgreSQL's. Here the rows of a partition become one list in their order,
one function computes the values of all its frames from it
(`compute/reference/functions/float_folds.py`), and the list becomes rows again. Spark computes
window calls that it has no syntax for in the same way (`spark/worker_windows.py`).

    sum(f) over (partition by p order by o)  ─▶
    select r.c1, r.c2, v from (
        select unnest(r) as r, unnest(fold(values of r, frames of r)) as v from (
            select list({c1, c2, x, e} order by n) as r from (
                select c1, c2, p, f as x, row_number() over w as n, count(*) over w as e from ..
            ) group by p))

INVARIANTS
  Q1  a frame is described by the position of its last row, and its number of rows if it does not
      begin at the first one. The engine counts both over the same window, so that peers and offsets
      are its own. A frame with exclusions is no such range of rows, and is not folded here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sql.emit.select import as_derived_table, scope_over, with_extra_columns, with_window_calls
from sql.emit.state import Scope, Select
from sql.emit.windows import as_aggregate
from sql.plan.nodes import (
    BoundKind,
    Expr,
    Frame,
    FrameBound,
    PlanColumn,
    SortKey,
    Window,
    WindowCall,
    begins_at_partition_start,
    output_columns,
)
from sql.rewrite.guard_expressions import with_guarded_arguments

_FOLDED: Final = frozenset({"@float_sum", "@float_average", "@deviation"})
_FIRST: Final = FrameBound(BoundKind.UNBOUNDED_PRECEDING)

_Named: TypeAlias = tuple[PlanColumn, WindowCall]


@dataclass(frozen=True, slots=True)
class WindowListSyntax:
    """How an engine writes it. `window`: a call that is not computed here; `clause`: OVER.
    `is_running`: whether a call of this window is computed here. `taken`: the values that it is
    computed from, as fields of a row. `gathered`: a list of rows of these fields of a table, in the
    order of its `n`. `folded`: the list of a call's values for a list of rows, of which it takes
    these fields. `spread`: from a SELECT of the list `r`, and texts of lists of equal length, by
    names, a SELECT of rows `r` and of these values.
    """

    window: Callable[[WindowCall, Scope], str]
    clause: Callable[[WindowCall, Scope], str]
    is_running: Callable[[WindowCall, Window, Scope], bool]
    taken: Callable[[WindowCall, Scope], dict[str, str]]
    gathered: Callable[[Sequence[str], str], str]
    folded: Callable[[WindowCall, Sequence[str], str, Scope], str]
    spread: Callable[[str, dict[str, str], Scope], str]


def depends_on_addition_order(call: WindowCall) -> bool:
    """Whether it is an aggregate of floats that depends on the order of addition."""
    return call.function.duckdb in _FOLDED


def emit_windows_by_lists(
    plan: Window, select: Select, scope: Scope, lists: WindowListSyntax
) -> Select:
    """The rows of a SELECT with the plan's calls."""
    named = list(zip(plan.columns, plan.calls, strict=True))
    inside = scope_over(select, scope)
    running = [pair for pair in named if lists.is_running(pair[1], plan, inside)]
    plain = [pair for pair in named if pair not in running]
    columns = [*output_columns(plan.input), *[column for column, _ in plain]]
    found = with_window_calls(select, plain, lists.window, scope)
    for alike in _alike(running):
        rows = found if found.outputs is None else as_derived_table(found, columns, scope.statement)
        found = _with_running(rows, columns, alike, scope, lists)
        columns += [column for column, _ in alike]
    return found


def _alike(named: Sequence[_Named]) -> Sequence[Sequence[_Named]]:
    """Those of the same rows in the same order, together."""
    found: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[_Named]] = {}
    for column, call in named:
        found.setdefault((call.partition, call.order), []).append((column, call))
    return list(found.values())


def _with_running(
    select: Select,
    columns: Sequence[PlanColumn],
    named: Sequence[_Named],
    scope: Scope,
    lists: WindowListSyntax,
) -> Select:
    """The rows with calls of one partition and order."""
    inside, first = scope_over(select, scope), named[0][1]
    partition = [inside.key(expr, "PARTITION BY") for expr in first.partition]
    keys = {f"p{number}": text for number, text in enumerate(partition)}
    made = {"n": f"row_number(){lists.clause(replace(first, frame=Frame()), inside)}"}
    taken: list[list[str]] = []
    for number, (_, call) in enumerate(named):
        texts = lists.taken(call, inside)
        made |= {f"{name}{number}": text for name, text in texts.items()}
        taken.append([f"{name}{number}" for name in texts])
    numbered, alias = with_extra_columns(select, keys | made, columns, scope)
    shown = [f"c{column.id}" for column in columns]
    gathered = lists.gathered([*made, *shown], alias)
    group = f" group by {', '.join(f'{alias}.{key}' for key in keys)}" if keys else ""
    rows = f"select {gathered} as r from {numbered.source}{group}"
    values = {
        f"v{number}": lists.folded(call, names, "r", scope)
        for number, ((_, call), names) in enumerate(zip(named, taken, strict=True))
    }
    source, alias = lists.spread(rows, values, scope), scope.statement.alias()
    names = {column.id: f"{alias}.r.{name}" for column, name in zip(columns, shown, strict=True)}
    calls = {column.id: f"{alias}.v{number}" for number, (column, _) in enumerate(named)}
    return Select(f"({source}) {alias}", names, outputs=names | calls)


def fold_inputs(
    call: WindowCall, inside: Scope, clause: Callable[[WindowCall, Scope], str]
) -> dict[str, str]:
    """The values that a call is folded from: a row's value, the end of its frame, and the frame's
    size if it does not begin at the first row (Q1).
    """
    told = with_guarded_arguments(as_aggregate(call))
    value = inside.emit(told.args[0])
    if told.filter is not None:
        value = f"case when {inside.emit(told.filter)} then {value} end"
    to_end = replace(call, frame=replace(call.frame, start=_FIRST))
    found = {"x": value, "e": f"count(*){clause(to_end, inside)}"}
    if not begins_at_partition_start(call.frame):
        found["s"] = f"count(*){clause(call, inside)}"
    return found
