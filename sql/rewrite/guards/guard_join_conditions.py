"""Guard ON conditions by the conditions before them, and conditions over two tables by join keys.

    t join u on t.k = u.k and t.w > 10/u.v
      ─▶  .. and case when t.k = u.k then t.w > 10/u.v end
    t left join u on t.k = u.k and t.v <> 0 and 10/t.v = u.w
      ─▶  .. and case when t.v <> 0 then 10/t.v end = u.w

DuckDB computes the sides of comparisons for all rows.

INVARIANTS
  J1  a value of one table is guarded by conditions over that table alone. So a comparison of
      tables stays a key of the join, and a condition over one table still goes down to it. A value
      of both tables is guarded by all conditions, and so is a comparison that is no key beside one
      that is.
  J2  conditions that cannot fail come first, as PostgreSQL evaluates the cheaper ones first, then
      all others in their order.
  J3  a key is a comparison by `=` of values that cannot fail. A key guards nothing that can only
      overflow.

Not here: other conditions of inner joins, which DuckDB treats as conditions of WHERE.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sql.functions.table import COMPARISON_OPERATORS
from sql.plan.conditions import conjunction, equality_sides
from sql.plan.nodes import Call, ColumnId, Expr, Join, JoinKind, Plan, output_columns
from sql.plan.traverse import column_ids, conjuncts, has_subquery, is_volatile_anywhere
from sql.rewrite.guard_expressions import guarded_value, may_fail
from sql.rewrite.guards.guard_where_conditions import columns_by_relation

_OUTER = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
_Ids = frozenset[ColumnId]


def guarded_join_conditions(join: Join, condition: Expr) -> Sequence[Expr]:
    """The ANDed conditions of a join, guarded."""
    parts = conjuncts(condition)
    if len(parts) == 1 or not any(map(may_fail, parts)):
        return parts
    if any(has_subquery(part) or is_volatile_anywhere(part) for part in parts):
        return parts
    tables = [
        frozenset(column.id for column in output_columns(side)) for side in (join.left, join.right)
    ]
    if join.kind not in _OUTER:
        return _behind_keys(parts, parts, tables)
    before = [part for part in parts if not may_fail(part)]
    found: list[Expr] = []
    for part in parts:
        if may_fail(part):
            found.append(_guarded(part, before, tables))
            before.append(part)
        else:
            found.append(part)
    return found


def guarded_by_join_keys(below: Plan, parts: Sequence[Expr]) -> Sequence[Expr]:
    """The conditions of WHERE over the rows of a plan, guarded by the keys that join them (J3)."""
    if not any(may_fail(part, by_overflow=False) for part in parts):
        return parts
    return _behind_keys(parts, (*_joined_by(below), *parts), list(columns_by_relation(below)))


def _behind_keys(
    parts: Sequence[Expr], joined_by: Sequence[Expr], tables: Sequence[_Ids]
) -> Sequence[Expr]:
    keys = [part for part in joined_by if _is_key(part, tables)]
    return [_behind(part, keys, tables) for part in parts] if keys else parts


def _joined_by(plan: Plan) -> Iterator[Expr]:
    """The conditions of inner joins."""
    if not isinstance(plan, Join) or plan.kind not in (JoinKind.INNER, JoinKind.CROSS):
        return
    if plan.condition is not None:
        yield from conjuncts(plan.condition)
    yield from _joined_by(plan.left)
    yield from _joined_by(plan.right)


def _is_key(part: Expr, tables: Sequence[_Ids]) -> bool:
    """Whether rows of two tables can be joined by it (J3)."""
    if not equality_sides(part) or has_subquery(part) or may_fail(part, by_overflow=False):
        return False
    sides = [_of(side, tables) for side in equality_sides(part)]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def _is_joint(part: Expr, tables: Sequence[_Ids]) -> bool:
    return len(_of(part, tables)) > 1


def _behind(part: Expr, keys: Sequence[Expr], tables: Sequence[_Ids]) -> Expr:
    if not _is_joint(part, tables) or equality_sides(part) or not may_fail(part, by_overflow=False):
        return part
    if has_subquery(part) or is_volatile_anywhere(part):
        return part
    return _alone(part, keys, tables)


def _guarded(part: Expr, before: Sequence[Expr], tables: Sequence[_Ids]) -> Expr:
    if not isinstance(part, Call) or part.function.name not in COMPARISON_OPERATORS:
        return _alone(part, before, tables)
    beside_key = not equality_sides(part) and any(_is_key(other, tables) for other in before)
    apart = all(len(_of(arg, tables)) < 2 for arg in part.args)
    if not apart or (beside_key and _is_joint(part, tables)):
        return _alone(part, before, tables)
    return replace(part, args=tuple([_alone(arg, before, tables) for arg in part.args]))


def _alone(expr: Expr, before: Sequence[Expr], tables: Sequence[_Ids]) -> Expr:
    """The value where the conditions hold that may guard it (J1)."""
    own = _of(expr, tables)
    guards = tuple([part for part in before if _of(part, tables) and _of(part, tables) <= own])
    if not guards:
        return expr
    return guarded_value(expr, conjunction(guards))


def _of(expr: Expr, tables: Sequence[_Ids]) -> frozenset[int]:
    """The tables that it is a value of, by number."""
    used = set(column_ids(expr))
    return frozenset(number for number, table in enumerate(tables) if not used.isdisjoint(table))
