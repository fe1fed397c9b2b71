"""Column ids of plans given out anew: for plans that stand twice, and to see that two are the same.

INVARIANTS
  R1  only columns that the plan itself makes get other ids; what it refers to outside stays (P3).
"""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

from sql.functions import Function
from sql.plan import ColumnId, ColumnRef, Expr, Plan, PlanColumn, Subquery
from sql.types import SqlType

_T = TypeVar("_T")
_WHOLE = (Function, SqlType)
"""What no column stands in."""


def renumbered(plan: Plan, new_id: Callable[[], ColumnId]) -> tuple[Plan, dict[ColumnId, ColumnId]]:
    """The plan with ids of its own for every column it makes (P1, R1), and which became which."""
    ids = {column: new_id() for column in dict.fromkeys(_made(plan))}
    return _replaced(plan, ids), ids


def canonical(expr: Expr) -> Expr:
    """The same for expressions that differ only in the ids of their subqueries' columns."""
    numbers = count(1)
    ids = {column: ColumnId(-next(numbers)) for column in dict.fromkeys(_made(expr))}
    return _replaced(expr, ids)


def same_expression(left: Expr, right: Expr) -> bool:
    """Whether two expressions mean the same by their form (equal())."""
    if left == right:
        return True
    return has_subquery(left) and has_subquery(right) and canonical(left) == canonical(right)


def has_subquery(value: object) -> bool:
    """Whether a subquery stands anywhere in it."""
    return isinstance(value, Subquery) or any(map(has_subquery, _parts(value)))


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        yield from value
    elif dataclasses.is_dataclass(value) and not isinstance(value, _WHOLE):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name)


def _made(value: object) -> Iterator[ColumnId]:
    if isinstance(value, PlanColumn):
        yield value.id
    for part in _parts(value):
        yield from _made(part)


def _replaced(value: _T, ids: dict[ColumnId, ColumnId]) -> _T:
    if isinstance(value, PlanColumn | ColumnRef):
        return dataclasses.replace(value, id=ids.get(value.id, value.id))
    if isinstance(value, tuple):
        return tuple([_replaced(part, ids) for part in value])  # type: ignore[return-value]
    if isinstance(value, _WHOLE) or not dataclasses.is_dataclass(value):
        return value
    parts = {
        field.name: _replaced(getattr(value, field.name), ids)
        for field in dataclasses.fields(value)
    }
    return dataclasses.replace(value, **parts)  # type: ignore[type-var]
