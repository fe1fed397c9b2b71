"""Build one SELECT, and turn it into text or into a derived table of the next one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sql.emit.state import Dialect, Scope, Select, Statement
from sql.plan.nodes import PlanColumn, SortKey, WindowCall
from sql.types.sql_type import SqlType, format_type


def scope_over(select: Select, outer: Scope, *, filtering: bool = False) -> Scope:
    """The scope of expressions over a SELECT's source; columns of outer queries stay visible (P3 of
    `sql/plan/nodes.py`).
    """
    return replace(
        outer,
        columns={**outer.columns, **select.names},
        filtering=filtering,
        joining=False,
        nearest=frozenset(select.names),
    )


def render_select(
    select: Select, columns: Sequence[PlanColumn], called: Sequence[PlanColumn] | None = None
) -> str:
    """The text of the SELECT with these columns, in order. `called`: the columns whose names these
    get.
    """
    texts = select.names if select.outputs is None else select.outputs
    items = ", ".join(
        f"{texts[column.id]} as c{name.id}"
        for column, name in zip(columns, called or columns, strict=True)
    )
    clauses = [f"select {'distinct ' if select.distinct else ''}{items or '0 as z'}"]
    clauses.append(f"from {select.source}")
    if select.where:
        clauses.append(f"where {' and '.join(select.where)}")
    if select.group:
        clauses.append(f"group by {select.group}")
    if select.order:
        clauses.append(f"order by {select.order}")
    if select.limit:
        clauses.append(select.limit)
    return " ".join(clauses)


def as_derived_table(
    select: Select, columns: Sequence[PlanColumn], statement: Statement, *, lateral: bool = False
) -> Select:
    """The SELECT as a derived table of the next one."""
    alias = statement.alias()
    prefix = "lateral " if lateral else ""
    text = f"{prefix}({render_select(select, columns)}) {alias}"
    names = {column.id: f"{alias}.c{column.id}" for column in columns}
    return Select(text, names, fragile=select.fragile)


def check_comparable(columns: Sequence[PlanColumn], statement: Statement, what: str) -> None:
    """0A000 for values that the engine compares otherwise than PostgreSQL does."""
    for column in columns:
        if not compares_as_postgresql(column.type):
            shown = format_type(column.type)
            raise statement.dialect.unsupported(f"{what} values of type {shown}")


def compares_as_postgresql(type_: SqlType) -> bool:
    """Whether an engine compares plain values of the type as PostgreSQL does."""
    return (type_.element or type_).name not in ("interval", "json", "jsonb") and (
        not type_.has_blanks
    )


def is_preserved_by_groups(type_: SqlType, dialect: Dialect) -> bool:
    """Whether a group shows one of its values as it was."""
    return (
        compares_as_postgresql(type_)
        and (type_.element or type_).name not in dialect.changed_by_groups
    )


def window_order_by(keys: Sequence[SortKey], inside: Scope) -> str:
    """ORDER BY of a window; without keys rows come in any order."""
    order = inside.statement.dialect.order_by(keys, inside) if keys else "cast(null as int)"
    return f"order by {order}"


def with_window_calls(
    select: Select,
    named: Iterable[tuple[PlanColumn, WindowCall]],
    window: Callable[[WindowCall, Scope], str],
    scope: Scope,
) -> Select:
    """A plain SELECT with window calls beside its columns."""
    inside = scope_over(select, scope)
    calls = {column.id: window(call, inside) for column, call in named}
    return replace(select, outputs={**select.names, **calls}) if calls else select


def with_extra_columns(
    select: Select, made: Mapping[str, str], columns: Sequence[PlanColumn], scope: Scope
) -> tuple[Select, str]:
    """The SELECT as a derived table with more columns, and its alias. `made`: their texts."""
    alias = scope.statement.alias()
    texts = select.names if select.outputs is None else select.outputs
    items = [f"{texts[column.id]} as c{column.id}" for column in columns]
    items += [f"{text} as {name}" for name, text in made.items()]
    where = f" where {' and '.join(select.where)}" if select.where else ""
    group = f" group by {select.group}" if select.group else ""
    text = f"(select {', '.join(items)} from {select.source}{where}{group}) {alias}"
    return Select(text, {column.id: f"{alias}.c{column.id}" for column in columns}), alias
