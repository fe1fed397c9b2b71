"""Write WITH queries in front of the statement, and recursive ones there or where they stand.

A recursion that the engine cannot run is computed before the statement
(`emit/recursion_rounds.py`).

INVARIANTS
  E1  a query in front of the statement refers to no outer query, to no row of a recursion's last
      iteration, and to no query behind it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from sql.emit.rename_outer_columns import note_subquery_columns
from sql.emit.select import check_comparable, render_select
from sql.emit.state import Scope, Select, Statement
from sql.plan.nodes import (
    CteScan,
    Join,
    JoinKind,
    Limit,
    Plan,
    Recursive,
    SetOp,
    SubqueryKind,
    With,
    output_columns,
)
from sql.plan.renumbering import cte_scans, free_columns
from sql.plan.traverse import inputs, is_volatile_plan, plan_expressions, plan_nodes, subqueries

_RIGHT_KEPT: Final = (JoinKind.RIGHT, JoinKind.FULL)
CTES_BEGIN: Final = "with recursive "
"""What a statement with WITH queries begins with."""


def prepend_ctes(text: str, relations: Sequence[str]) -> str:
    """A statement with further WITH queries in front of its own."""
    front = ", ".join(relations)
    if text.startswith(CTES_BEGIN):
        return f"{CTES_BEGIN}{front}, {text.removeprefix(CTES_BEGIN)}"
    return f"with {front} {text}"


def emit_with_query(plan: With, scope: Scope, select: Callable[[Plan, Scope], Select]) -> Select:
    """The input; the definition goes in front of the statement (E1)."""
    statement = scope.statement
    if not statement.dialect.materialized and is_volatile_plan(plan.definition):
        # Nothing makes this engine run it once.
        raise statement.dialect.unsupported("a WITH query with a volatile function")
    columns = output_columns(plan.definition)
    text = render_select(select(plan.definition, scope), columns)
    name = statement.alias()
    called = [f"c{column.id}" for column in columns] or ["z"]
    statement.cte_columns[plan.cte] = (name, called)
    note_subquery_columns(plan.cte, plan.definition, statement)
    statement.ctes.append(
        f"{name}({', '.join(called)}) as {statement.dialect.materialized}({text})"
    )
    return select(plan.input, scope)


def emit_cte_scan(plan: CteScan, scope: Scope) -> Select:
    """The rows of a query in front, or of the last iteration of a recursion."""
    name, called = scope.statement.cte_columns[plan.cte]
    alias = scope.statement.alias()
    names = {
        column.id: f"{alias}.{text}" for column, text in zip(plan.columns, called, strict=False)
    }
    return Select(f"{name} {alias}", names)


def _stands_inside(plan: Recursive, scope: Scope) -> bool:
    """Whether it refers to what is around it, and so cannot go in front (E1)."""
    rounds = scope.statement.rounds
    return bool(free_columns(plan)) or any(scan.cte in rounds for scan in cte_scans(plan))


def _check_step(plan: Plan, statement: Statement) -> None:
    """DuckDB 2.0 counts rows for each of its pipelines where the first few are asked for, in the
    step of a recursion: those of set operations, and of joins that keep their right side.
    """
    asked = [inner for expr in plan_expressions(plan) for inner in subqueries(expr)]
    counted = [inner.plan for inner in asked if inner.kind is SubqueryKind.EXISTS]
    if isinstance(plan, Limit):
        counted.append(plan.input)
    if any(map(_has_pipelines, counted)):
        raise statement.dialect.unsupported("LIMIT or EXISTS of such rows in a recursion")
    for part in (*inputs(plan), *(inner.plan for inner in asked)):
        _check_step(part, statement)


def _has_pipelines(plan: Plan) -> bool:
    return any(
        isinstance(node, SetOp) or (isinstance(node, Join) and node.kind in _RIGHT_KEPT)
        for node in plan_nodes(plan)
    )


def emit_recursive(
    plan: Recursive, scope: Scope, select: Callable[[Plan, Scope], Select]
) -> Select:
    """A recursive WITH query; it stands in front of the statement if it refers to nothing around
    it.
    """
    statement = scope.statement
    if not plan.all:
        check_comparable(plan.columns, statement, "WITH RECURSIVE with UNION of")
    if not plan.columns:
        raise statement.dialect.unsupported("WITH RECURSIVE of no columns")
    inside = _stands_inside(plan, scope)
    assert plan.all or statement.dialect.any_recursion, (
        "UNION is made in rounds (`emit/recursion_rounds.py`)"
    )
    if inside and not statement.dialect.any_recursion:
        raise statement.dialect.unsupported("WITH RECURSIVE that refers to the query around it")
    if statement.dialect.any_recursion:
        _check_step(plan.step, statement)
    name, alias = statement.alias(), statement.alias()
    called = [f"c{column.id}" for column in plan.columns]
    base = render_select(select(plan.base, scope), output_columns(plan.base), plan.columns)
    statement.cte_columns[plan.cte] = (name, called)
    note_subquery_columns(plan.cte, plan.base, statement)
    statement.rounds.add(plan.cte)
    step = render_select(select(plan.step, scope), output_columns(plan.step), plan.columns)
    statement.rounds.discard(plan.cte)
    union = f"union{' all' if plan.all else ''}"
    text = f"{name}({', '.join(called)}) as (({base}) {union} ({step}))"
    names = {
        column.id: f"{alias}.{text}" for column, text in zip(plan.columns, called, strict=True)
    }
    if inside:
        return Select(f"(with recursive {text} select * from {name}) {alias}", names)
    statement.ctes.append(text)
    return Select(f"{name} {alias}", names)
