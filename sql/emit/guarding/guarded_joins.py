"""A condition in ON is computed where those before it hold: of an outer join, DuckDB computes the
sides of a comparison for all rows.

    t left join u on t.k = u.k and t.v <> 0 and 10/t.v > u.w
      ─▶  .. and case when t.v <> 0 then 10/t.v end > u.w

INVARIANTS
  J1  a value of one table is guarded by conditions over that table alone, so that a comparison of
      tables stays a key of the join, and what goes down to a table still goes there; a value of
      both is guarded by all.
  J2  conditions that cannot fail come first, as PostgreSQL has the cheaper ones, then all others in
      their order.

Not here: inner joins, whose conditions DuckDB takes for those of WHERE.
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.conditions import all_of
from sql.emit.guarding.guards import guarded_value, may_fail
from sql.functions import COMPARISONS
from sql.plan import Call, ColumnId, Expr, Join, JoinKind, output_columns
from sql.traverse import column_ids, conjuncts, has_subquery, is_volatile_anywhere

_OUTER = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
_Ids = frozenset[ColumnId]


def guarded_conditions(join: Join, condition: Expr) -> Sequence[Expr]:
    """The conditions of a join that all have to be true."""
    parts = conjuncts(condition)
    if join.kind not in _OUTER or len(parts) == 1 or not any(map(may_fail, parts)):
        return parts
    if any(has_subquery(part) or is_volatile_anywhere(part) for part in parts):
        return parts
    tables = [
        frozenset(column.id for column in output_columns(side)) for side in (join.left, join.right)
    ]
    before = [part for part in parts if not may_fail(part)]
    found: list[Expr] = []
    for part in parts:
        if may_fail(part):
            found.append(_guarded(part, before, tables))
            before.append(part)
        else:
            found.append(part)
    return found


def _guarded(part: Expr, before: Sequence[Expr], tables: Sequence[_Ids]) -> Expr:
    compared = isinstance(part, Call) and part.function.name in COMPARISONS
    if isinstance(part, Call) and compared and all(len(_of(a, tables)) < 2 for a in part.args):
        return replace(part, args=tuple([_alone(arg, before, tables) for arg in part.args]))
    return _alone(part, before, tables)


def _alone(expr: Expr, before: Sequence[Expr], tables: Sequence[_Ids]) -> Expr:
    """The value where the conditions hold that may guard it (J1)."""
    own = _of(expr, tables)
    guards = tuple([part for part in before if _of(part, tables) and _of(part, tables) <= own])
    if not guards:
        return expr
    return guarded_value(expr, all_of(guards))


def _of(expr: Expr, tables: Sequence[_Ids]) -> frozenset[int]:
    """The tables that it is a value of, by number."""
    used = set(column_ids(expr))
    return frozenset(number for number, table in enumerate(tables) if not used.isdisjoint(table))
