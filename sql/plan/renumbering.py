"""Give a plan fresh column ids, and compare expressions regardless of the ids in their subqueries.

A plan that is used twice needs ids of its own for each use.

INVARIANTS
  R1  only columns and WITH queries that the plan itself defines get other ids; references to outer
      queries stay (P3 of `nodes.py`).
"""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, TypeVar

from sql.functions.table import Function
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    Const,
    CteId,
    CteScan,
    Expr,
    Plan,
    PlanColumn,
    Recursive,
    RelationId,
    With,
)
from sql.plan.traverse import column_ids, has_subquery, plan_column_ids, walk
from sql.types.sql_type import SqlType

_T = TypeVar("_T")
_LEAVES: Final = frozenset({Const, Function, SqlType, ColumnId, CteId, RelationId, str, int, bool})
"""Classes, and declared types of fields in nodes.py, that contain no columns of a plan."""
_KNOWN: Final[dict[type, tuple[str, ...]]] = {}
"""A cache of `_fields` by class; there are some dozens."""


def with_fresh_ids(
    plan: Plan, new_id: Callable[[], ColumnId]
) -> tuple[Plan, dict[ColumnId, ColumnId]]:
    """The plan with fresh ids for all columns it defines (R1), and the new id of each old one."""
    ids = {column: new_id() for column in dict.fromkeys(_made(plan))}
    return _replaced(plan, ids), ids


def expression_with_fresh_ids(expr: Expr, new_id: Callable[[], ColumnId]) -> Expr:
    """An expression with fresh ids for the columns that its subqueries define (R1)."""
    return _replaced(expr, {column: new_id() for column in dict.fromkeys(_made(expr))})


def canonical_expression(expr: Expr) -> Expr:
    """A canonical form: equal for expressions that differ only in ids of subqueries' columns."""
    numbers = count(1)
    ids = {column: ColumnId(-next(numbers)) for column in dict.fromkeys(_made(expr))}
    return _replaced(expr, ids)


def is_same_expression(left: Expr, right: Expr) -> bool:
    """Whether two expressions are the same but for ids in subqueries (PostgreSQL's equal())."""
    if left == right:
        return True
    return (
        has_subquery(left)
        and has_subquery(right)
        and canonical_expression(left) == canonical_expression(right)
    )


def free_columns(plan: Plan) -> set[ColumnId]:
    """The columns of outer queries that the plan refers to (P3 of `nodes.py`)."""
    return set(plan_column_ids(plan)) - set(_made(plan))


def expression_columns(expr: Expr) -> set[ColumnId]:
    """The columns that an expression refers to, without those that its subqueries define."""
    return set(column_ids(expr)) - set(_made(expr))


def column_refs(value: object) -> Iterator[ColumnRef]:
    """All uses of columns in a plan or an expression, those inside subqueries too."""
    if isinstance(value, ColumnRef):
        yield value
    for part in parts_with_columns(value):
        yield from column_refs(part)


def parts_with_columns(value: object) -> Iterator[object]:
    """The direct parts of a plan or an expression that may contain columns."""
    if isinstance(value, tuple):
        yield from value
    else:
        for name in _fields(type(value)):
            yield getattr(value, name)


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a class that may contain columns."""
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = tuple(_fields_with_parts(kind))
    return known


def _fields_with_parts(kind: type) -> Iterator[str]:
    if kind not in _LEAVES and dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if field.type not in _LEAVES:
                yield field.name


def cte_scans(plan: Plan) -> Iterator[CteScan]:
    """All scans of WITH queries in a plan, at every depth."""
    return (node for node in walk(plan) if isinstance(node, CteScan))


def replace_cte_scans(value: _T, expanded: Callable[[CteScan], Plan]) -> _T:
    """The plan with every scan of a WITH query replaced, at every depth."""
    if isinstance(value, CteScan):
        return expanded(value)  # type: ignore[return-value]
    return rebuild_parts(value, lambda part: replace_cte_scans(part, expanded))


def rebuild_parts(value: _T, rebuild: Callable[[object], object]) -> _T:
    """The value with its parts rebuilt; the value itself if no part changes."""
    if isinstance(value, tuple):
        items = [rebuild(part) for part in value]
        same = all(item is part for item, part in zip(items, value, strict=True))
        return value if same else tuple(items)  # type: ignore[return-value]
    parts: dict[str, object] = {}
    for name in _fields(type(value)):
        part = getattr(value, name)
        made = rebuild(part)
        if made is not part:
            parts[name] = made
    return dataclasses.replace(value, **parts) if parts else value  # type: ignore[type-var]


def defined_columns(value: object) -> Iterator[PlanColumn]:
    """The columns that a plan defines, at every depth."""
    return (part for part in _making(value) if isinstance(part, PlanColumn))


def _made(value: object) -> Iterator[ColumnId]:
    """The ids that a value defines: of columns, and of WITH queries."""
    for part in _making(value):
        yield part.id if isinstance(part, PlanColumn) else ColumnId(part.cte)


def _making(value: object) -> Iterator[PlanColumn | With | Recursive]:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, PlanColumn | With | Recursive):
            yield part
        waiting.extend(parts_with_columns(part))


def _replaced(value: _T, ids: dict[ColumnId, ColumnId]) -> _T:
    if isinstance(value, PlanColumn | ColumnRef):
        return dataclasses.replace(value, id=ids.get(value.id, value.id))
    if isinstance(value, With | Recursive | CteScan):
        cte = CteId(ids.get(ColumnId(value.cte), ColumnId(value.cte)))
        renamed = dataclasses.replace(value, cte=cte)
        return rebuild_parts(renamed, lambda part: _replaced(part, ids))
    return rebuild_parts(value, lambda part: _replaced(part, ids))
