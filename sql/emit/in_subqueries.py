"""Write IN over a subquery as a count of matches, where the engine's own IN would be wrong.

x in (q)  ─▶  (select case when bool_or(m) then true when bool_or(m is null) then null
                           else false end from (select x = c as m from (q)))

An engine's IN may be allowed in conditions only, or answer otherwise than PostgreSQL's.
"""

from sql.emit.state import Scope
from sql.plan.nodes import Expr, Subquery, SubqueryKind, output_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import subqueries


def _asks_outside(expr: Expr) -> bool:
    return any(free_columns(part.plan) for part in subqueries(expr))


def in_by_count(expr: Subquery, scope: Scope, query: str) -> str:
    """IN and NOT IN as a value: it compares the rows of the query and counts matches."""
    if not scope.statement.dialect.deep_correlation and any(map(_asks_outside, expr.args)):
        what = "IN a subquery, as a value, of a subquery that refers to the outer rows"
        raise scope.statement.dialect.unsupported(what)
    rows, alias = scope.statement.alias(), scope.statement.alias()
    pairs = zip(output_columns(expr.plan), expr.args, strict=True)
    same = " and ".join(f"{rows}.c{column.id} = {scope.emit(arg)}" for column, arg in pairs)
    found = f"coalesce(bool_or({alias}.m), false)"
    unknown = f"coalesce(bool_or({alias}.m is null), false)"
    answer = f"case when {found} then true when {unknown} then cast(null as boolean) else false end"
    value = f"(select {answer} as m from (select ({same}) as m from ({query}) {rows}) {alias})"
    return f"(not {value})" if expr.kind is SubqueryKind.NOT_IN else value
