"""Write a logical plan as one SELECT statement over relations with given names.

    Plan ─▶ Select (FROM, WHERE, outputs ..) ─▶ text + strings bound by name

A node is folded into the SELECT below it where SQL's order of clauses allows that; otherwise the
SELECT below becomes a derived table. A scanned relation has the input's columns as `f0`, `f1` ..
and, when a plan demands row identities, `__source` (string) and `__index` (bigint).

INVARIANTS
  Q1  no text of a user is in the statement: names are generated, strings are bound
      (`EmittedQuery.arguments`).
  Q2  a result column with id n is called `c<n>`, in the plan's order; a result of no columns has
      one called `z`.
  Q3  a plan whose answer is not proven to be PostgreSQL's is refused with 0A000.

Not here: the syntax of an engine (`state.Dialect`), running the statement (`compute/`).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sql.emit.ctes import CTES_BEGIN, emit_cte_scan, emit_recursive, emit_with_query
from sql.emit.emitted_query import EmittedQuery
from sql.emit.group_by import distinct_groups, group_by
from sql.emit.limits import constant_row_count, distinct_on, limit_by_number, unsorted_input
from sql.emit.rename_outer_columns import (
    has_set_operation,
    needs_renamed_outer_columns,
    refers_to_subquery_columns,
    rename_outer_columns,
)
from sql.emit.select import as_derived_table, is_preserved_by_groups, render_select, scope_over
from sql.emit.set_operations import set_operation
from sql.emit.state import ColumnTexts, Dialect, Scope, Select, Statement
from sql.emit.windows import with_column_keys
from sql.errors import statement_too_complex
from sql.plan.depth import check_depth
from sql.plan.nodes import (
    ColumnId,
    CteScan,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetScan,
    Sort,
    Values,
    Window,
    With,
    output_columns,
)
from sql.plan.projections import ONE_ROW
from sql.plan.renumbering import free_columns
from sql.plan.system_columns import scanned_name
from sql.plan.traverse import column_ids, conjuncts, has_subquery, subqueries
from sql.rewrite.guards.push_filters_below_lateral import push_filter_below_lateral
from sql.rewrite.outer_and_subquery_conditions import has_outer_and_subquery_condition
from sql.rewrite.subqueries.lateral_set_functions import (
    flatten_lateral_sets,
    is_unnested_beside_rows,
)
from sql.rewrite.subqueries.move_join_condition_subqueries import is_uncorrelated_value
from sql.types.sql_type import Value

_INT_MAX = 2_147_483_647
_UNION_ROWS_MAX = 16
"""Rows of VALUES written as a union; longer ones become an inline table, which may hold no
subqueries and no functions of workers.
"""


def emit_plan(
    plan: Plan,
    relations: Mapping[RelationId, str],
    parameters: Sequence[Value],
    dialect: Dialect,
) -> EmittedQuery:
    """The plan, as the engine's passes have left it, as one statement. `relations`: the name of
    each input; `parameters`: $1 first.

    Parameters may be part of the text (`EmittedQuery.parameters`).
    """
    check_depth(plan)
    # Only Spark wants to know.
    has_sets = not dialect.deep_correlation and has_set_operation(plan)
    statement = Statement(dialect, relations, parameters, has_set_operation=has_sets)
    columns = output_columns(plan)
    text = render_select(_select(plan, _scope(statement, {})), columns)
    if statement.ctes:
        text = f"{CTES_BEGIN}{', '.join(statement.ctes)} {text}"
    arguments = {name: value for value, name in statement.strings.items()} | statement.bound
    return EmittedQuery(
        text,
        arguments,
        columns,
        statement.calls,
        statement.row_by_row,
        statement.given,
        statement.functions,
    )


# --- one SELECT --------------------------------------------------------------------------------


def _scope(statement: Statement, columns: ColumnTexts, *, filtering: bool = False) -> Scope:
    return Scope(statement, columns, _subplan, filtering)


def _subplan(plan: Plan, scope: Scope) -> str:
    if not scope.statement.dialect.deep_correlation and free_columns(plan) - scope.nearest:
        what = "a subquery that refers to a query further out"
        raise scope.statement.dialect.unsupported(what)
    return render_select(_select(plan, scope), output_columns(plan))


# --- plans -------------------------------------------------------------------------------------


def _select(plan: Plan, scope: Scope) -> Select:
    statement = scope.statement
    statement.depth += 1
    if statement.depth > statement.dialect.plan_depth_max:
        raise statement_too_complex()
    select = _node(plan, scope)
    statement.depth -= 1
    return select


def _node(plan: Plan, scope: Scope) -> Select:
    match plan:
        case Scan():
            return _scan(plan, scope)
        case Values():
            return _values(plan, scope)
        case Project():
            return _project(plan, scope)
        case Filter():
            below = push_filter_below_lateral(plan)
            return _filter(below, scope) if isinstance(below, Filter) else _node(below, scope)
        case Join():
            flat = flatten_lateral_sets(plan)
            return _join(flat, scope) if isinstance(flat, Join) else _node(flat, scope)
        case GroupBy():
            return group_by(plan, _plain(plan.input, scope), scope)
        case Window():
            return _window(plan, scope)
        case DistinctRows():
            return _distinct(plan, scope)
        case DistinctOn():
            return distinct_on(plan, _plain(plan.input, scope), scope)
        case SetOp():
            return _set_operation(plan, scope)
        case Sort():
            return _sort(plan, scope)
        case Limit():
            return _limit(plan, scope)
        case SetScan():
            return scope.statement.dialect.set_scan(plan, scope)
        case With():
            return emit_with_query(plan, scope, _select)
        case CteScan():
            return emit_cte_scan(plan, scope)
        case Recursive():
            return emit_recursive(plan, scope, _select)


def _plain(plan: Plan, scope: Scope) -> Select:
    """The plan as a SELECT that may still take WHERE, outputs and groups."""
    select = _select(plan, scope)
    return (
        select if select.plain else as_derived_table(select, output_columns(plan), scope.statement)
    )


def _scan(plan: Scan, scope: Scope) -> Select:
    alias = scope.statement.alias()
    names = {
        column.id: f"{alias}.{scanned_name(ordinal)}"
        for column, ordinal in zip(plan.columns, plan.ordinals, strict=True)
    }
    if plan.identity is not None:
        source, index = plan.identity
        name = scope.statement.dialect.name
        names |= {
            source.id: f"{alias}.{name('__source')}",
            index.id: f"{alias}.{name('__index')}",
        }
    view = scope.statement.dialect.name(scope.statement.relations[plan.relation])
    return Select(f"{view} {alias}", names)


def _values(plan: Values, scope: Scope) -> Select:
    alias = scope.statement.alias()
    names = {column.id: f"{alias}.c{column.id}" for column in plan.columns}
    if not plan.rows:
        nulls = ", ".join(
            f"{scope.statement.constant(None, column.type)} as c{column.id}"
            for column in plan.columns
        )
        return Select(f"(select {nulls or '0 as z'} where false) {alias}", names)
    lists = scope.statement.dialect.constant_rows(plan.rows, scope)
    if lists is not None:
        items = [
            f"unnest({text}) as c{column.id}"
            for text, column in zip(lists, plan.columns, strict=True)
        ]
        return Select(f"(select {', '.join(items)}) {alias}", names)
    # Rows stand in SELECTs of their own, which an engine without `deep_correlation` looks into for
    # no subquery that refers to what is round them.
    row_scope = replace(scope, nearest=frozenset())
    texts = [[row_scope.emit(expr) for expr in row] for row in plan.rows]
    outside = any(
        name in text for name in scope.statement.functions for row in texts for text in row
    )
    few = len(plan.rows) <= _UNION_ROWS_MAX and not _keeps_order(plan, scope)
    if few or not plan.columns or outside:
        union = " union all ".join(_row(plan.columns, row) for row in texts)
        return Select(f"({union}) {alias}", names)
    rows = [f"({', '.join(row)})" for row in texts]
    called = [f"c{column.id}" for column in plan.columns]
    return Select(scope.statement.dialect.values(rows, alias, called), names)


def _keeps_order(plan: Values, scope: Scope) -> bool:
    """Whether rows of constants have to be an inline table, so that they stay in order."""
    known = scope.statement.known
    return (
        scope.statement.dialect.mixes_unions
        and len(plan.rows) > 1
        and all(known(expr) is not None for row in plan.rows for expr in row)
    )


def _row(columns: Sequence[PlanColumn], row: Sequence[str]) -> str:
    items = ", ".join(f"{text} as c{column.id}" for column, text in zip(columns, row, strict=True))
    return f"select {items or '0 as z'}"


def _project(plan: Project, scope: Scope) -> Select:
    select = below = _select(plan.input, scope)
    apart = select.outputs is not None and not _is_made_of_one_group(plan, scope)
    if apart:
        select = as_derived_table(below, output_columns(plan.input), scope.statement)
    elif select.outputs is not None:
        select = replace(select, names=select.outputs)
    exprs: Sequence[Expr] = plan.exprs
    if needs_renamed_outer_columns(exprs, plan.input, scope.statement):
        if not select.plain:
            select = as_derived_table(select, output_columns(plan.input), scope.statement)
        select, exprs = rename_outer_columns(select, exprs, scope)
    inside = scope_over(select, scope)
    outputs = {
        column.id: inside.emit(expr) for column, expr in zip(plan.columns, exprs, strict=True)
    }
    grouped = apart and isinstance(plan.input, GroupBy)
    if grouped and _has_function(below.outputs, scope) and _has_function(outputs, scope):
        # Spark makes one node of functions over aggregates of functions, and fails: no limit keeps
        # them apart, an exchange does. Other engines have no functions here.
        alias = select.source.rpartition(" ")[2]
        select = replace(select, source=f"(select * from {select.source} distribute by 1) {alias}")
    return replace(select, outputs=outputs)


def _has_function(texts: ColumnTexts | None, scope: Scope) -> bool:
    """Whether one of these texts calls what an engine's workers compute."""
    names = scope.statement.functions
    return any(name in text for text in (texts or {}).values() for name in names)


def _is_made_of_one_group(plan: Project, scope: Scope) -> bool:
    """Whether a subquery's aggregates stand in one SELECT with what is made of them: only there
    does Spark make a join by equality of what compares its rows with the outer query's; over a
    derived table it would look at every pair of rows. Without any of them it would be no group.
    """
    below = plan.input
    if scope.statement.dialect.deep_correlation or not scope.columns:
        return False
    if not isinstance(below, GroupBy) or below.keys or below.sets is not None:
        return False
    own = {column.id for column in below.aggregate_columns}
    if own - {used for expr in plan.exprs for used in column_ids(expr)}:
        return False
    return all(own >= set(column_ids(expr)) and not has_subquery(expr) for expr in plan.exprs)


def _filter(plan: Filter, scope: Scope) -> Select:
    """WHERE; what refers to the rows from a subquery stands in a SELECT of its own behind the rest:
    DuckDB would make the cross product of all tables for it.
    """
    select = _plain(plan.input, scope)
    parts = scope.statement.dialect.where(plan.input, conjuncts(plan.predicate))
    correlated = [part for part in parts if _is_correlated(part)]
    if correlated and (len(correlated) < len(parts) or isinstance(plan.input, Join)):
        plain = _where(select, [part for part in parts if part not in correlated], scope)
        select = as_derived_table(plain, output_columns(plan.input), scope.statement)
        parts = correlated
    if refers_to_subquery_columns(correlated, plan.input, scope.statement):
        select, parts = rename_outer_columns(select, parts, scope)
    return _where(select, parts, scope)


def _where(select: Select, parts: Sequence[Expr], scope: Scope) -> Select:
    inside = scope_over(select, scope, filtering=True)
    texts = [inside.emit(part) for part in parts]
    if select.fragile:
        texts = [f"coalesce({text}, false)" for text in texts]
    return replace(select, where=(*select.where, *texts))


def _is_correlated(expr: Expr) -> bool:
    return any(free_columns(query.plan) for query in subqueries(expr))


def _check_lateral(plan: Join, dialect: Dialect, nearest: AbstractSet[ColumnId]) -> None:
    if plan.kind not in (JoinKind.CROSS, JoinKind.INNER, JoinKind.LEFT):
        raise dialect.unsupported(f"LATERAL in a {plan.kind.value} join")
    if not dialect.deep_correlation and has_outer_and_subquery_condition(plan.right):
        what = "a condition over a outer row and a subquery, in LATERAL,"
        raise dialect.unsupported(what)
    further = not isinstance(plan.right, SetScan) and free_columns(plan.right) - nearest
    if further and not dialect.deep_correlation:
        raise dialect.unsupported("a lateral subquery that refers to a query further out")


def _join(plan: Join, scope: Scope) -> Select:
    if plan.kind is JoinKind.CROSS and plan.left == ONE_ROW:
        return _select(plan.right, scope)
    if plan.lateral and plan.condition is not None:
        if plan.kind is JoinKind.INNER:
            # As a condition in WHERE it goes below, to the rows that it rules out.
            return _node(
                Filter(replace(plan, kind=JoinKind.CROSS, condition=None), plan.condition), scope
            )
        if has_subquery(plan.condition):
            # DuckDB has none there.
            what = f"a subquery in the condition of a lateral {plan.kind.value} join"
            raise scope.statement.dialect.unsupported(what)
    if isinstance(plan.right, SetScan) and is_unnested_beside_rows(plan):
        left, columns = _plain(plan.left, scope), output_columns(plan.left)
        beside = scope.statement.dialect.sets_beside
        return beside(left, columns, plan.right, scope, padded=plan.kind is JoinKind.LEFT)
    left = _side(plan.left, scope)
    right_scope = scope_over(left, scope) if plan.lateral else scope
    if plan.lateral:
        _check_lateral(plan, scope.statement.dialect, right_scope.nearest)
    right = _select(plan.right, right_scope)
    if plan.lateral:
        if isinstance(plan.right, SetScan):
            right = replace(right, source=f"lateral {right.source}")
        else:
            right = as_derived_table(
                right, output_columns(plan.right), scope.statement, lateral=True
            )
    else:
        right = _alone(plan.right, right, scope)
    source = f"({right.source})" if isinstance(plan.right, Join) and right.bare else right.source
    names = {**left.names, **right.names}
    joined = Select(f"{left.source} {plan.kind.value} join {source}", names)
    joined = replace(joined, fragile=left.fragile or right.fragile or _is_fragile(plan))
    if plan.condition is None:
        return joined
    _check_join(plan, scope)
    inside = scope_over(joined, scope)
    guarded = scope.statement.dialect.on(plan, plan.condition)
    inside = replace(inside, joining=True)
    conditions = " and ".join(map(inside.emit, guarded))
    return replace(joined, source=f"{joined.source} on {conditions}")


def _is_fragile(plan: Join) -> bool:
    """See `Select.fragile`."""
    if plan.kind in (JoinKind.CROSS, JoinKind.INNER) or plan.condition is None:
        return False
    return has_subquery(plan.condition)


def _check_join(plan: Join, scope: Scope) -> None:
    """Spark takes in an outer join's ON what `move_join_condition_subqueries.py` leaves there."""
    if scope.statement.dialect.deep_correlation or plan.condition is None:
        return
    if plan.kind in (JoinKind.CROSS, JoinKind.INNER):
        return
    if all(map(is_uncorrelated_value, subqueries(plan.condition))):
        return
    raise scope.statement.dialect.unsupported(
        f"a subquery in the condition of a {plan.kind.value} join"
    )


def _side(plan: Plan, scope: Scope) -> Select:
    return _alone(plan, _select(plan, scope), scope)


def _alone(plan: Plan, select: Select, scope: Scope) -> Select:
    """A plan as one side of a join. A join with a subquery in ON is a SELECT of its own: DuckDB 2.0
    takes the subquery's column for one of those that a join above compares.
    """
    marked = isinstance(plan, Join) and plan.condition is not None and has_subquery(plan.condition)
    if select.bare and not marked:
        return select
    return as_derived_table(select, output_columns(plan), scope.statement)


def _window(plan: Window, scope: Scope) -> Select:
    hoisted = with_column_keys(plan)
    select = _plain(plan.input, scope) if hoisted is None else _side(hoisted.input, scope)
    plan = hoisted or plan
    return scope.statement.dialect.windows(plan, select, scope)


def _distinct(plan: DistinctRows, scope: Scope) -> Select:
    select = _select(plan.input, scope)
    columns = output_columns(plan.input)
    dialect = scope.statement.dialect
    if not all(is_preserved_by_groups(column.type, dialect) for column in columns):
        return distinct_groups(as_derived_table(select, columns, scope.statement), columns, scope)
    if not columns:
        # Rows of no columns are all the same: the first one is left.
        return Select(
            as_derived_table(select, columns, scope.statement).source, {}, limit="limit 1"
        )
    if select.group or select.order or select.limit or select.distinct:
        select = as_derived_table(select, columns, scope.statement)
    return replace(select, outputs=select.outputs or select.names, distinct=True)


def _set_operation(plan: SetOp, scope: Scope) -> Select:
    left, right = (
        render_select(_select(side, scope), output_columns(side), plan.columns)
        for side in (plan.left, plan.right)
    )
    return set_operation(plan, left, right, scope)


def _sort(plan: Sort, scope: Scope) -> Select:
    select = _plain(plan.input, scope)
    order = scope.statement.dialect.order_by(plan.keys, scope_over(select, scope))
    return replace(select, order=order or None)


def _is_of_outer_row(plan: Limit, scope: Scope) -> bool:
    """Whether these are the first rows for a outer row. Spark's LIMIT numbers the rows of all of
    them together where it compares with an expression over the outer row, or where what is above
    the LIMIT refers to that row, too; and it forgets the order below a projection. Windows it
    divides by all that the rows are joined by.
    """
    return not scope.statement.dialect.deep_correlation and bool(free_columns(plan.input))


def _limit(plan: Limit, scope: Scope) -> Select:
    parts = (plan.limit, plan.offset)
    computed = any(part is not None and scope.statement.known(part) is None for part in parts)
    if computed or (plan.ties and plan.limit is not None) or _is_of_outer_row(plan, scope):
        return limit_by_number(plan, _plain(unsorted_input(plan)[0], scope), scope)
    select = _select(plan.input, scope)
    if select.limit is not None:
        select = as_derived_table(select, output_columns(plan.input), scope.statement)
    offset = constant_row_count(plan.offset, scope, "2201X", "OFFSET")
    limit = constant_row_count(plan.limit, scope, "2201W", "LIMIT")
    clauses = [f"limit {min(limit, _INT_MAX)}"] if limit is not None else []
    clauses += [f"offset {min(offset, _INT_MAX)}"] if offset else []
    return replace(select, limit=" ".join(clauses)) if clauses else select
