"""Rename outer columns that a subquery refers to, where Spark would resolve them wrongly.

    select t.k, (select .. where u.k = t.k) from t  union all  c
      ─▶  select t.k, (..where u.k = s.o1) from t lateral view inline(array(struct(t.k))) s as o1 ..
    select .. from (select (select ..) as x from t) z where 1 < (select count(*) .. where u.k = z.x)
      ─▶  .. z lateral view inline(array(struct(z.x))) s as o1 where 1 < (.. where u.k = s.o1)

Spark applies constraints on the columns of a union's first side to the other sides. If such a
column is a subquery, Spark looks for the columns of u in the other side, and fails with "key not
found". It also merges nested unions into one and copies the subquery to each part, where the copy
still refers to the columns of the first part ("Could not find k#4 in .."). Relations of files and
rows in memory are unions, too, and so are rows of VALUES, and Spark's plan of INTERSECT ALL.

Spark pushes a condition below the columns that it is about. There `z.x` is a subquery within the
subquery, which runs for all rows at once, and returns none, one or many.

Spark infers nothing about the columns of an unnested row, and pushes no condition below it.

INVARIANTS
  N1  only queries with a set operation, and conditions on columns that are subqueries, pay for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sql.emit.select import scope_over
from sql.emit.state import Scope, Select, Statement
from sql.plan.constant_items import ConstantRows
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    CteId,
    CteScan,
    Expr,
    GroupBy,
    Plan,
    Project,
    Recursive,
    SetOp,
    Subquery,
    Values,
    output_columns,
)
from sql.plan.renumbering import column_refs, expression_columns, free_columns
from sql.plan.traverse import (
    column_ids,
    has_subquery,
    inputs,
    rewrite_children,
    subqueries,
    substitute_columns,
    walk,
)


def has_set_operation(plan: Plan) -> bool:
    """Whether there is one in a plan, at any depth."""
    return any(isinstance(node, SetOp) for node in walk(plan))


def subquery_columns(plan: Plan, ctes: AbstractSet[CteId]) -> set[ColumnId]:
    """The columns that a plan computes by subqueries. `ctes`: the WITH queries that have such
    columns.
    """
    if isinstance(plan, CteScan):
        return {column.id for column in plan.columns} if plan.cte in ctes else set()
    found = {id_ for part in inputs(plan) for id_ in subquery_columns(part, ctes)}
    return found.union(_made(plan, found))


def _made(plan: Plan, below: AbstractSet[ColumnId]) -> Iterator[ColumnId]:
    def of_subquery(expr: Expr) -> bool:
        return has_subquery(expr) or not below.isdisjoint(column_ids(expr))

    match plan:
        case Project():
            named = zip(plan.columns, plan.exprs, strict=True)
            yield from (column.id for column, expr in named if of_subquery(expr))
        case GroupBy():
            keyed = zip(plan.key_columns, plan.keys, strict=True)
            yield from (column.id for column, expr in keyed if of_subquery(expr))
        case SetOp() | Recursive():
            sides = map(output_columns, inputs(plan))
            for column, *parts in zip(plan.columns, *sides, strict=True):
                if any(part.id in below for part in parts):
                    yield column.id
        case Values():
            rows = () if isinstance(plan.rows, ConstantRows) else plan.rows
            for column, *exprs in zip(plan.columns, *rows, strict=True):
                if any(map(has_subquery, exprs)):
                    yield column.id
        case _:
            return


def note_subquery_columns(cte: CteId, rows: Plan, statement: Statement) -> None:
    """Remember a WITH query whose rows have columns that are subqueries; only Spark needs it."""
    if statement.dialect.deep_correlation:
        return
    if subquery_columns(rows, statement.ctes_of_subqueries):
        statement.ctes_of_subqueries.add(cte)


def needs_renamed_outer_columns(exprs: Sequence[Expr], below: Plan, statement: Statement) -> bool:
    """Whether Spark may resolve the outer columns of these expressions wrongly (N1). For conditions
    `refers_to_subquery_columns` is enough.
    """
    if statement.has_set_operation:
        return any(free_columns(query.plan) for expr in exprs for query in subqueries(expr))
    return refers_to_subquery_columns(exprs, below, statement)


def refers_to_subquery_columns(exprs: Sequence[Expr], below: Plan, statement: Statement) -> bool:
    """Whether subqueries in these expressions refer to columns that are subqueries, on Spark."""
    if statement.dialect.deep_correlation:
        return False
    asked = {id_ for expr in exprs for part in subqueries(expr) for id_ in expression_columns(part)}
    return bool(asked) and not asked.isdisjoint(
        subquery_columns(below, statement.ctes_of_subqueries)
    )


def rename_outer_columns(
    select: Select, exprs: Sequence[Expr], scope: Scope
) -> tuple[Select, Sequence[Expr]]:
    """A plain SELECT and expressions over it, whose subqueries refer to it by new names."""
    statement = scope.statement
    asked = [query for expr in exprs for query in subqueries(expr)]
    outer = {id_ for query in asked for id_ in expression_columns(query)} & set(select.names)
    found = {ref.id: ref for query in asked for ref in column_refs(query) if ref.id in outer}
    if not found:
        return select, exprs
    inside, alias = scope_over(select, scope), statement.alias()
    new: dict[ColumnId, ColumnRef] = {}
    for id_, ref in found.items():
        statement.names += 1
        new[id_] = ColumnRef(ColumnId(-statement.names), ref.type)
    called = {ref.id: f"o{-ref.id}" for ref in new.values()}
    row = ", ".join(inside.emit(ref) for ref in found.values())
    names = ", ".join(called.values())
    source = f"{select.source} lateral view inline(array(struct({row}))) {alias} as {names}"
    more = {id_: f"{alias}.{name}" for id_, name in called.items()}
    told = [_told(expr, new) for expr in exprs]
    return replace(select, source=source, names={**select.names, **more}), told


def _told(expr: Expr, by: Mapping[ColumnId, Expr]) -> Expr:
    if isinstance(expr, Subquery):
        return substitute_columns(expr, by)
    return rewrite_children(expr, lambda part: _told(part, by)) if has_subquery(expr) else expr
