"""Put conditions in PostgreSQL's order and place: cheaper ones first (order_qual_clauses).

    where 1/(a-1) > 0 and a <> 1                            ─▶  where a <> 1 and 1/(a-1) > 0
    select * from (select .. where 1/(a-1) > 0) where a <> 1    the same within, and again outside

An engine evaluates them as they stand, those of a subquery first, and may fail for rows that
PostgreSQL has left out by then.

INVARIANTS
  O1  nothing changes where no condition may fail.
  O2  conditions of one place are ordered by the number of calls that they make, equal ones as
      written (order_qual_clauses; almost every function costs the same).
  O3  places are PostgreSQL's. A condition over one side of a join is evaluated at that side, also
      if it may fail, unless the join NULL-extends rows of that side. Conditions of a subquery in
      FROM that is only a selection are evaluated together with those around it.
  O4  a condition that goes further down, to conditions that may fail, cannot fail itself, and
      stays above as well. It goes where PostgreSQL pushes it: through projections, DISTINCT, set
      operations, keys of groups and of all windows, and to sides of joins.
  O5  nothing moves that is volatile or has a subquery.
  O6  the outputs of a subquery in FROM are substituted into the conditions on it, which are
      evaluated before the rest is computed: below ORDER BY and DISTINCT, and on both sides of
      UNION and INTERSECT. Not outputs beside windows: PostgreSQL computes these with them.
  O7  a condition of HAVING on keys alone is evaluated for the rows.

Runs when a statement is planned (`coordinator/planning/planner.py`). Not here: engines that compute
a condition for rows that those before it rule out (`guard_where_conditions.py`,
`guard_join_conditions.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from sql.functions.table import FunctionKind
from sql.plan.conditions import conjunction, filter_plan, flatten_conjuncts
from sql.plan.nodes import (
    AnyAll,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Distinct,
    DistinctOn,
    DistinctRows,
    Expr,
    Extreme,
    Filter,
    GroupBy,
    InList,
    InRows,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetOp,
    SetOpKind,
    Sort,
    Subquery,
    SubqueryKind,
    Window,
    output_columns,
)
from sql.plan.projections import column_references
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    child_expressions,
    column_ids,
    has_more_parts,
    has_subquery,
    inputs,
    is_volatile_anywhere,
    plan_expressions,
    plan_nodes,
    rewrite_queries,
    subqueries,
    substitute_columns,
)
from sql.rewrite.guard_expressions import may_fail
from sql.rewrite.guards.push_filters_below_lateral import (
    NEVER_NULL_LEFT,
    NEVER_NULL_RIGHT,
    is_never_true_of_nulls,
)
from sql.types.sql_type import BOOL

_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name"})
_LAST: Final = 1_000_000.0
"""Of a subquery that is run for rows, or becomes a join: behind everything else."""
_ELEMENTS: Final = 10
"""Of an array that is not known, as PostgreSQL guesses."""
_NODES_MAX: Final = 200
"""Of a condition over what a subquery computes. More: text that grows with every level of queries;
fewer: conditions of a subquery asked before cheaper ones around it."""
_LEVELS_MAX: Final = 6
"""Queries within each other that a condition goes through. More: each condition of a chain of views
grows with the chain, and meets all others at its end.
"""
_HASHED_MIN: Final = 9
"""Items of IN from which on PostgreSQL looks them up (MIN_ARRAY_SIZE_FOR_HASHED_SAOP)."""


def order_quals(plan: Plan) -> Plan:
    """The plan with its conditions in order (O1)."""
    return _ordered(plan) if _fails_anywhere(plan) else plan


def _fails_anywhere(plan: Plan) -> bool:
    if _fails_here(plan):
        return True
    below = [inner.plan for expr in plan_expressions(plan) for inner in subqueries(expr)]
    return any(map(_fails_anywhere, (*inputs(plan), *below)))


def _fails_here(plan: Plan) -> bool:
    """Whether a condition may fail, or what is computed right below it (O6)."""
    if not isinstance(plan, Filter | Join):
        return False
    made = chain.from_iterable(map(_made, inputs(plan)))
    return any(map(may_fail, chain(plan_expressions(plan), made)))


def _made(plan: Plan) -> Iterator[Expr]:
    """What queries compute before conditions on them are asked as they are bound."""
    while isinstance(plan, Project | Filter | Sort | DistinctRows | DistinctOn):
        yield from plan_expressions(plan)
        plan = plan.input
    if isinstance(plan, GroupBy):
        yield from plan_expressions(plan)
    elif isinstance(plan, SetOp):
        for side in inputs(plan):
            yield from _made(side)


def _ordered(plan: Plan) -> Plan:
    below = rewrite_queries(plan, _ordered)
    match below:
        case Filter():
            return _filter(below)
        case Join() if below.condition is not None:
            return _over_join(below, ())
        case _:
            return below


def _filter(plan: Filter, levels: int = 0) -> Plan:
    merged = _merged(plan, levels)
    if isinstance(merged, Project):
        assert isinstance(merged.input, Filter), "conditions went below it"
        return replace(merged, input=_filter(merged.input, levels + 1))
    parts = _by_cost(flatten_conjuncts(merged.predicate))
    if isinstance(merged.input, Join):
        return _over_join(merged.input, parts)
    if any(map(may_fail, chain(parts, _made(merged.input)))):
        return _below(merged.input, parts)
    return Filter(_behind(merged.input, [*filter(_goes_down, parts)]), conjunction(parts))


def _merged(plan: Filter, levels: int) -> Filter | Project:
    """With the conditions of a subquery in FROM, which PostgreSQL makes part of the query (O6).
    `levels`: the queries that these conditions have come through.
    """
    below = plan.input
    if isinstance(below, Filter):
        return Filter(
            below.input,
            conjunction([*flatten_conjuncts(below.predicate), *flatten_conjuncts(plan.predicate)]),
        )
    if not isinstance(below, Project) or isinstance(below.input, Window) or levels == _LEVELS_MAX:
        return plan
    parts = _of(flatten_conjuncts(plan.predicate), below.columns, below.exprs)
    if len(parts) < len(flatten_conjuncts(plan.predicate)) or any(map(_is_long, parts)):
        return plan
    if not any(map(may_fail, chain(parts, _made(below)))):
        return plan
    return replace(below, input=Filter(below.input, conjunction(parts)))


def _below(plan: Plan, parts: Sequence[Expr]) -> Plan:
    """The plan with conditions on it below it, where PostgreSQL asks them there (O6, O7)."""
    match plan:
        case Sort() | DistinctRows():
            down = [part for part in parts if _is_of_rows(part)]
            below: Plan = replace(plan, input=_at_side(plan.input, down))
        case GroupBy() if plan.sets is None:
            down = [part for part in _over(parts, plan.key_columns) if _is_of_rows(part)]
            asked = _of(down, plan.key_columns, plan.keys)
            down = down if len(asked) == len(down) else []
            below = replace(plan, input=_at_side(plan.input, asked if down else ()))
        case DistinctOn():
            keys = {key.id for key in plan.keys if isinstance(key, ColumnRef)}
            down = [
                part for part in parts if _is_of_rows(part) and keys.issuperset(column_ids(part))
            ]
            below = replace(plan, input=_at_side(plan.input, down))
        case SetOp() if plan.kind is not SetOpKind.EXCEPT:
            down = [part for part in parts if _is_of_rows(part)]
            left, right = (
                _at_side(side, _of(down, plan.columns, column_references(output_columns(side))))
                for side in (plan.left, plan.right)
            )
            below = replace(plan, left=left, right=right)
        case _:
            down, below = [], plan
    done = {*map(id, down)}
    rest = [part for part in parts if id(part) not in done]
    return filter_plan(_behind(below, [*filter(_goes_down, rest)]), rest)


def _over_join(join: Join, where: Sequence[Expr]) -> Plan:
    """The join with conditions over one of its sides at that side (O3)."""
    on = [] if join.condition is None else _by_cost(flatten_conjuncts(join.condition))
    if not any(map(may_fail, (*on, *where))) and not _asks(join):
        return filter_plan(_on(join, on), where)
    parts = [*on, *where] if join.kind is JoinKind.INNER else where
    left, right = (
        [part for part in _over(parts, output_columns(side)) if _is_of_rows(part)]
        for side in (join.left, join.right)
    )
    left = left if join.kind in NEVER_NULL_LEFT else []
    right = right if join.kind in NEVER_NULL_RIGHT and not join.lateral else []
    # What ON leaves out of the side that may be made up is made up.
    if join.kind is JoinKind.LEFT and not join.lateral:
        right = [part for part in _over(on, output_columns(join.right)) if _is_of_rows(part)]
    elif join.kind is JoinKind.RIGHT:
        left = [part for part in _over(on, output_columns(join.left)) if _is_of_rows(part)]
    done = {*map(id, left), *map(id, right)}
    where = [part for part in where if id(part) not in done]
    sides = replace(join, left=_at_side(join.left, left), right=_at_side(join.right, right))
    below = _on(sides, [part for part in on if id(part) not in done])
    return filter_plan(_join(below, [*filter(_goes_down, where)]), where)


def _on(join: Join, parts: Sequence[Expr]) -> Join:
    if parts or join.condition is None:
        return replace(join, condition=conjunction(parts) if parts else None)
    if join.kind is JoinKind.INNER:
        return replace(join, kind=JoinKind.CROSS, condition=None)
    return replace(join, condition=Const(True, BOOL))


def _is_of_rows(part: Expr) -> bool:
    """Whether it speaks of rows, and may be asked wherever they are."""
    return _is_movable(part) and any(column_ids(part))


def _at_side(plan: Plan, parts: Sequence[Expr]) -> Plan:
    return _filter(Filter(plan, conjunction(parts))) if parts else plan


def _is_long(expr: Expr) -> bool:
    return has_more_parts(expr, _NODES_MAX)


def _by_cost(parts: Sequence[Expr]) -> Sequence[Expr]:
    return sorted(parts, key=_cost) if any(map(may_fail, parts)) else parts


def _is_movable(part: Expr) -> bool:
    """O5."""
    return not (has_subquery(part) or is_volatile_anywhere(part))


def _goes_down(part: Expr) -> bool:
    """O4."""
    return _is_movable(part) and not may_fail(part)


# --- down to what may fail ---------------------------------------------------------------------


def _behind(plan: Plan, parts: Sequence[Expr]) -> Plan:
    """The plan with its conditions that may fail behind these, which are true of all its rows that
    are wanted (O4).
    """
    if not parts or not _asks(plan):
        return plan
    match plan:
        case Filter():
            own = flatten_conjuncts(plan.predicate)
            if any(map(may_fail, own)):
                own = [*_by_cost([*own, *(part for part in parts if part not in own)])]
            return Filter(_behind(plan.input, parts), conjunction(own))
        case Project():
            moved = [*filter(_goes_down, _of(parts, plan.columns, plan.exprs))]
            return replace(plan, input=_behind(plan.input, moved))
        case DistinctRows() | Sort():
            return replace(plan, input=_behind(plan.input, parts))
        case GroupBy() if plan.sets is None:
            moved = _of(_over(parts, plan.key_columns), plan.key_columns, plan.keys)
            return replace(plan, input=_behind(plan.input, [*filter(_goes_down, moved)]))
        case Window():
            return replace(plan, input=_behind(plan.input, _over(parts, _partition(plan))))
        case SetOp():
            left, right = (
                _behind(side, _of(parts, plan.columns, column_references(output_columns(side))))
                for side in (plan.left, plan.right)
            )
            return replace(plan, left=left, right=right)
        case Join():
            return _join(plan, parts)
        case _:
            return plan


def _join(plan: Join, parts: Sequence[Expr]) -> Join:
    left, right = (_over(parts, output_columns(side)) for side in (plan.left, plan.right))
    if plan.kind not in NEVER_NULL_LEFT:
        left = [*filter(is_never_true_of_nulls, left)]
    if plan.kind not in NEVER_NULL_RIGHT:
        right = [*filter(is_never_true_of_nulls, right)]
    condition = plan.condition
    if plan.kind is JoinKind.INNER and condition is not None and may_fail(condition):
        # Spark fails for a outer row in ON.
        own = _over(parts, output_columns(plan))
        condition = conjunction(_by_cost([*flatten_conjuncts(condition), *own]))
    below = replace(plan, left=_behind(plan.left, left), right=_behind(plan.right, right))
    return replace(below, condition=condition)


def _asks(plan: Plan) -> bool:
    """Whether there are conditions in it that may fail."""
    return any(map(_fails_here, plan_nodes(plan)))


def _over(parts: Sequence[Expr], columns: Iterable[PlanColumn]) -> list[Expr]:
    made = {column.id for column in columns}
    return [part for part in parts if made.issuperset(column_ids(part))]


def _of(parts: Sequence[Expr], columns: Sequence[PlanColumn], exprs: Sequence[Expr]) -> list[Expr]:
    """The parts, of what these columns are made of, where that can be asked elsewhere."""
    by: Mapping[ColumnId, Expr] = {
        column.id: expr for column, expr in zip(columns, exprs, strict=True)
    }
    return [*filter(_is_movable, (substitute_columns(part, by) for part in parts))]


def _partition(plan: Window) -> Sequence[PlanColumn]:
    """The columns by which all windows are partitioned."""
    shared = set.intersection(
        *({key.id for key in call.partition if isinstance(key, ColumnRef)} for call in plan.calls)
    )
    return [column for column in output_columns(plan.input) if column.id in shared]


# --- what PostgreSQL takes a condition to cost -------------------------------------------------


def _cost(expr: Expr) -> float:
    """The calls that computing it takes (cost_qual_eval_walker)."""
    return _own_cost(expr) + sum(map(_cost, child_expressions(expr)))


def _own_cost(expr: Expr) -> float:
    match expr:
        case Call():
            return _call_cost(expr)
        case Distinct() | Extreme():
            return 1
        case InList():
            return 2 if len(expr.items) >= _HASHED_MIN else max(1, len(expr.items) / 2)
        case InRows():
            return len(expr.columns) * len(expr.columns[0])
        case AnyAll():
            known = expr.args[1].value if isinstance(expr.args[1], Const) else None
            return (len(known) if isinstance(known, tuple) else _ELEMENTS) / 2
        case Subquery():
            alone = expr.kind is SubqueryKind.SCALAR and not free_columns(expr.plan)
            return 0 if alone else _LAST
        case _:
            return 0


def _call_cost(expr: Call) -> float:
    if expr.function.kind is not FunctionKind.CAST:
        return 1
    source, target = expr.args[0].type.name, expr.type.name
    if source in _TEXTS and target in _TEXTS:
        return 0
    # To and from text a value goes by its output and its input function.
    return 2 if source in _TEXTS or target in _TEXTS else 1
