"""Guard a WHERE condition that may fail by the conditions before it.

    where coalesce(t.s, '') = 'x' and 10/t.v > 1
      ─▶  .. and case when coalesce(t.s, '') = 'x' then 10/t.v > 1 end

DuckDB hands conditions over one column to the scan, which evaluates them column by column. Spark
infers conditions on a join column from conditions on the column that it is equal to.

INVARIANTS
  H1  a condition over one table is guarded by conditions over that table, so that all still go down
      to it; a condition over several tables stays as it is here (`guard_join_conditions.py`).
  H2  conditions come in PostgreSQL's order (`order_quals.py`).
  H3  a subquery is written twice only before a division or a cast from text.
  H4  conditions after the first few stand within each other, so the text grows with their number:
      `case when a then case when b then c end end`.

Not here: conditions in ON (`guard_join_conditions.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sql.functions.table import FunctionKind
from sql.plan.conditions import conjunction
from sql.plan.nodes import Call, ColumnId, Expr, Join, Plan, SubqueryKind, output_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    column_ids,
    expression_nodes,
    has_subquery,
    is_volatile_anywhere,
    subqueries,
)
from sql.rewrite.guard_expressions import guarded_value, may_fail, null_unless

_DIVISIONS: Final = frozenset({"/", "%"})
_GUARDS_MAX: Final = 6
_NESTED_MAX: Final = 32
"""Conditions within each other. More: deeper nesting; fewer: more text."""


def guarded_where_conditions(below: Plan, parts: Sequence[Expr]) -> Sequence[Expr]:
    """The ANDed conditions over the rows of a plan, guarded (H1)."""
    if len(parts) == 1 or not any(map(may_fail, parts)):
        return parts
    tables = list(columns_by_relation(below))
    before: dict[int, list[Expr]] = {}
    nested: dict[int, list[Expr]] = {}
    found: list[Expr] = []
    for part in parts:
        at = _table_of(part, tables)
        if at is None or not _is_plain(part):
            found.append(part)
            continue
        asked = before.setdefault(at, [])
        if len(asked) >= _GUARDS_MAX and not any(map(has_subquery, (*asked, part))):
            nested.setdefault(at, []).append(part)
            if not may_fail(part):
                found.append(part)
            continue
        guards = [guard for guard in asked if not has_subquery(guard) or _fails_often(part)]
        found.append(guarded_value(part, conjunction(guards)) if guards else part)
        asked.append(part)
    for at, rest in nested.items():
        found.extend(_nested(before[at], rest))
    return found


def _nested(guards: Sequence[Expr], parts: Sequence[Expr]) -> Iterator[Expr]:
    """Conditions within each other, behind guards: each is written once (H4)."""
    for at in range(0, len(parts), _NESTED_MAX):
        *before, made = parts[at : at + _NESTED_MAX]
        for part in reversed(before):
            made = null_unless(part, made)
        made = null_unless(conjunction(guards), made)
        yield made
        # Where it is true, so are all before it.
        guards = [made]


def _fails_often(expr: Expr) -> bool:
    return any(
        (node.function.kind is FunctionKind.CAST and node.function.args[0] == "text")
        or node.function.name in _DIVISIONS
        for node in expression_nodes(expr)
        if isinstance(node, Call)
    )


def columns_by_relation(plan: Plan) -> Iterator[frozenset[ColumnId]]:
    """The columns of each joined relation."""
    if isinstance(plan, Join):
        yield from columns_by_relation(plan.left)
        yield from columns_by_relation(plan.right)
    else:
        yield frozenset(column.id for column in output_columns(plan))


def _table_of(part: Expr, tables: Sequence[frozenset[ColumnId]]) -> int | None:
    """The one table that it speaks of; None if there are others, or none."""
    used = [at for at, table in enumerate(tables) if not table.isdisjoint(column_ids(part))]
    return used[0] if len(used) == 1 else None


def _is_plain(part: Expr) -> bool:
    """Whether it may be asked twice: it has no subquery but for values that refer to no row."""
    return not is_volatile_anywhere(part) and all(
        inner.kind is SubqueryKind.SCALAR and not free_columns(inner.plan)
        for inner in subqueries(part)
    )
