"""Write LIMIT and DISTINCT ON by row numbers, where the engines' own clauses cannot say it."""

from dataclasses import replace
from typing import Final

from sql.emit.select import scope_over, window_order_by, with_extra_columns
from sql.emit.state import Scope, Select
from sql.errors import SqlError
from sql.plan.nodes import DistinctOn, Expr, Limit, Plan, Project, Sort, SortKey, output_columns
from sql.plan.renumbering import free_columns

_BIGINT_MAX: Final = (1 << 63) - 1


def distinct_on(plan: DistinctOn, select: Select, scope: Scope) -> Select:
    """The first row of each key, by row numbers over a plain SELECT of the input."""
    inside = scope_over(select, scope)
    keys = ", ".join(inside.key(key, "DISTINCT ON") for key in plan.keys)
    number = f"row_number() over (partition by {keys} {window_order_by(plan.order, inside)})"
    names, alias = with_extra_columns(select, {"n": number}, output_columns(plan.input), scope)
    return replace(names, where=(f"{alias}.n = 1",))


def unsorted_input(plan: Limit) -> tuple[Plan, tuple[SortKey, ...]]:
    """The plan below the Sort of a Limit, and its sort keys."""
    sort = plan.input
    return (sort.input, sort.keys) if isinstance(sort, Sort) else (sort, ())


def limit_by_number(plan: Limit, select: Select, scope: Scope) -> Select:
    """LIMIT by row numbers: computed counts, WITH TIES, the first rows for each outer row.

    `select`: a plain SELECT of `unsorted_input`.
    """
    below, keys = unsorted_input(plan)
    order = window_order_by(keys, scope_over(select, scope))
    numbers = {"n": f"row_number() over ({order})"}
    if plan.ties:
        numbers["r"] = f"rank() over ({order})"
    found, alias = with_extra_columns(select, numbers, output_columns(below), scope)
    skipped = _counted(plan.offset, scope, "2201X", "OFFSET") or "0"
    taken = _counted(plan.limit, scope, "2201W", "LIMIT")
    where = [f"({alias}.n > {skipped})"]
    if taken is not None:
        number = f"{alias}.r" if plan.ties else f"{alias}.n"
        where.append(f"({number} - {skipped} <= {taken} and {taken} > 0)")
    return replace(found, where=tuple(where), order=f"{alias}.n" if keys else None)


def is_correlated_single_row(plan: Plan, scope: Scope) -> bool:
    """Whether it is a correlated query with a constant LIMIT of one row at most."""
    while isinstance(plan, Project):
        plan = plan.input
    if not isinstance(plan, Limit) or plan.ties or plan.limit is None:
        return False
    known = scope.statement.known(plan.limit)
    return known in ((0,), (1,)) and bool(free_columns(plan.input))


def _counted(expr: Expr | None, scope: Scope, sqlstate: str, clause: str) -> str | None:
    """A count as a text that is never NULL; a NULL limit is the largest number."""
    if expr is None:
        return None
    most = 0 if clause == "OFFSET" else _BIGINT_MAX
    if scope.statement.known(expr) is not None:
        known = constant_row_count(expr, scope, sqlstate, clause)
        return f"cast({most if known is None else known} as bigint)"
    # It stands in a SELECT of its own, over numbers, to which what is outside is further out.
    text = replace(scope, filtering=False, nearest=frozenset()).emit(expr)
    failure = scope.statement.dialect.error(sqlstate, f"{clause} must not be negative")
    return f"coalesce(case when {text} < 0 then {failure} else {text} end, cast({most} as bigint))"


def constant_row_count(expr: Expr | None, scope: Scope, sqlstate: str, clause: str) -> int | None:
    """The value of a constant LIMIT or OFFSET."""
    if expr is None:
        return None
    known = scope.statement.known(expr)
    if known is None:
        raise scope.statement.dialect.unsupported(f"a computed {clause}")
    value = known[0]
    assert value is None or isinstance(value, int), f"{clause} is an int8"
    if value is not None and value < 0:
        raise SqlError(sqlstate, f"{clause} must not be negative")
    return value
