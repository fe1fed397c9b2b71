"""Write GROUP BY: keys, aggregates and grouping sets.

INVARIANTS
  G1  the grouping set of no keys has a row also for no input, as in PostgreSQL. Where an engine
      leaves that row out, an outer join puts it back.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from sql.emit.select import as_derived_table, is_preserved_by_groups, scope_over, with_extra_columns
from sql.emit.state import Scope, Select
from sql.plan.nodes import Aggregate, ColumnId, ColumnRef, Expr, GroupBy, PlanColumn, output_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import column_ids, has_subquery
from sql.rewrite.guard_expressions import with_guarded_arguments

_COUNTS: Final = frozenset({"count", "regr_count"})
"""Aggregates that are not NULL over nothing."""


def group_by(plan: GroupBy, select: Select, scope: Scope) -> Select:
    """The groups over a plain SELECT of the node's input."""
    keys, columns = plan.keys, output_columns(plan.input)
    # Spark groups by no column of a query further out; a derived table costs DuckDB nothing.
    own = {column.id for column in columns}
    if plan.sets is not None or not all(isinstance(k, ColumnRef) and k.id in own for k in keys):
        select = _with_keys(plan, select, scope)
        keys = tuple(ColumnRef(column.id, column.type) for column in plan.key_columns)
        columns = (*columns, *plan.key_columns)
    plan, select = _with_arguments(plan, columns, select, scope)
    inside = scope_over(select, scope)
    key_texts = [inside.key(key, "grouping by") for key in keys]
    outputs = {
        column.id: text
        if is_preserved_by_groups(key.type, scope.statement.dialect)
        else _any_one(inside.emit(key), text, sets=plan.sets is not None)
        for column, key, text in zip(plan.key_columns, keys, key_texts, strict=True)
    }
    for column, call in zip(plan.aggregate_columns, plan.aggregates, strict=True):
        outputs[column.id] = scope.statement.dialect.aggregate(call, inside)
    if plan.sets is not None:
        return _by_sets(plan, replace(select, outputs=outputs), key_texts, scope)
    for column in plan.grouping_columns:
        outputs[column.id] = scope.statement.constant(0, column.type)
    if not outputs:
        # One row whatever the input: an aggregate nobody asked for makes it so.
        count = f"(select count(1) as z from {select.source}) {scope.statement.alias()}"
        return Select(count, {}, outputs={})
    return replace(select, outputs=outputs, group=", ".join(key_texts) or None)


def _any_one(value: str, key: str, *, sets: bool) -> str:
    """Of values that are equal and look otherwise, PostgreSQL shows any one."""
    found = f"first({value})"
    return f"case when grouping({key}) = 0 then {found} end" if sets else found


def distinct_groups(select: Select, columns: Sequence[PlanColumn], scope: Scope) -> Select:
    """DISTINCT of values that the engine compares by sort keys: one row of each group."""
    inside = scope_over(select, scope)
    refs = [ColumnRef(column.id, column.type) for column in columns]
    keys = [inside.key(ref, "DISTINCT of") for ref in refs]
    outputs = {
        ref.id: key
        if is_preserved_by_groups(ref.type, scope.statement.dialect)
        else f"first({inside.emit(ref)})"
        for ref, key in zip(refs, keys, strict=True)
    }
    return replace(select, outputs=outputs, group=", ".join(keys))


def _with_arguments(
    plan: GroupBy, below: Sequence[PlanColumn], select: Select, scope: Scope
) -> tuple[GroupBy, Select]:
    """A derived table that has, beside these columns, what aggregates take from outer queries and
    subqueries: with nothing else in it, a call would be one of the outer query.
    """
    outer = scope.columns.keys() - select.names.keys()
    made: dict[Expr, PlanColumn] = {}

    def moved(call: Aggregate) -> Aggregate:
        if not _uses(outer, call):
            taken = [arg for arg in call.args if not select.names.keys() >= set(column_ids(arg))]
        else:
            call = with_guarded_arguments(call)
            taken = [part for part in _parts(call) if has_subquery(part) or _refers(outer, part)]
        for part in taken:
            number = ColumnId(-1 - len(made))
            made.setdefault(part, PlanColumn(number, "argument", part.type))
        return _with_parts(call, lambda part: _column(made.get(part), part)) if taken else call

    calls = tuple(map(moved, plan.aggregates))
    if not made:
        return plan, select
    inside = scope_over(select, scope)
    columns = (*below, *made.values())
    texts = {column.id: inside.emit(part) for part, column in made.items()}
    select = _derived_with(select, {**select.names, **texts}, columns, scope)
    return replace(plan, aggregates=calls), select


def _parts(call: Aggregate) -> Sequence[Expr]:
    condition = [] if call.filter is None else [call.filter]
    return [*call.args, *condition, *(key.expr for key in call.order)]


def _with_parts(call: Aggregate, change: Callable[[Expr], Expr]) -> Aggregate:
    return replace(
        call,
        args=tuple(map(change, call.args)),
        filter=None if call.filter is None else change(call.filter),
        order=tuple(replace(key, expr=change(key.expr)) for key in call.order),
    )


def _uses(columns: Set[ColumnId], call: Aggregate) -> bool:
    return any(_refers(columns, part) for part in _parts(call))


def _refers(columns: Set[ColumnId], expr: Expr) -> bool:
    return any(id_ in columns for id_ in column_ids(expr))


def _column(column: PlanColumn | None, otherwise: Expr) -> Expr:
    return otherwise if column is None else ColumnRef(column.id, column.type)


def _derived_with(
    select: Select, texts: Mapping[ColumnId, str], columns: Sequence[PlanColumn], scope: Scope
) -> Select:
    """The SELECT with these outputs as a table; ids below zero are called `x<n>`."""
    alias = scope.statement.alias()
    names = {
        column.id: f"c{column.id}" if column.id > 0 else f"x{-column.id}" for column in columns
    }
    items = ", ".join(f"{texts[column.id]} as {names[column.id]}" for column in columns)
    where = f" where {' and '.join(select.where)}" if select.where else ""
    text = f"(select {items} from {select.source}{where}) {alias}"
    shown = {id_: f"{alias}.{name}" for id_, name in names.items()}
    return Select(text, shown, fragile=select.fragile)


def _with_keys(plan: GroupBy, select: Select, scope: Scope) -> Select:
    """A derived table that also has the keys as columns: a key's text must not be repeated."""
    inside = scope_over(select, scope)
    keys = {
        column.id: inside.emit(key) for column, key in zip(plan.key_columns, plan.keys, strict=True)
    }
    columns = (*output_columns(plan.input), *plan.key_columns)
    return as_derived_table(
        replace(select, outputs={**select.names, **keys}), columns, scope.statement
    )


def _by_sets(plan: GroupBy, select: Select, keys: Sequence[str], scope: Scope) -> Select:
    """GROUPING SETS, with GROUPING() bit by bit."""
    assert plan.sets is not None, "called for grouping sets"
    assert select.outputs is not None, "keys and aggregates are there"
    outputs = dict(select.outputs)
    for column, numbers in zip(plan.grouping_columns, plan.groupings, strict=True):
        bits = [
            f"cast(grouping({keys[number]}) as bigint) * {1 << bit}"
            for bit, number in enumerate(reversed(numbers))
        ]
        outputs[column.id] = f"cast({' + '.join(bits)} as int)"
    sets = ", ".join(f"({', '.join(keys[number] for number in one)})" for one in plan.sets)
    grouped = replace(select, outputs=outputs, group=f"grouping sets ({sets})")
    # DuckDB makes the row, but not for each row of the query around a subquery, and without
    # aggregates only once.
    once = not plan.aggregates and plan.sets.count(()) > 1
    made = scope.statement.dialect.empty_sets and not free_columns(plan) and not once
    if () not in plan.sets or made:
        return grouped
    return _with_empty_set(plan, grouped, scope)


def _with_empty_set(plan: GroupBy, select: Select, scope: Scope) -> Select:
    """The groups, or the row of the set of no keys if there is no input (G1)."""
    assert plan.sets is not None, "called for grouping sets"
    if plan.sets.count(()) > 1:
        raise scope.statement.dialect.unsupported("the same grouping set of no columns twice")
    columns = output_columns(plan)
    found, alias = with_extra_columns(select, {"m": "1"}, columns, scope)
    one = scope.statement.alias()
    outputs: dict[ColumnId, str] = dict(found.names)
    for column, call in zip(plan.aggregate_columns, plan.aggregates, strict=True):
        if call.function.name in _COUNTS:
            outputs[column.id] = f"coalesce({found.names[column.id]}, cast(0 as bigint))"
    for column, numbers in zip(plan.grouping_columns, plan.groupings, strict=True):
        all_bits = f"cast({(1 << len(numbers)) - 1} as int)"
        outputs[column.id] = f"coalesce({found.names[column.id]}, {all_bits})"
    source = f"(select 0 as z) {one} left join {found.source} on {alias}.m = 1"
    return Select(source, found.names, outputs=outputs)
