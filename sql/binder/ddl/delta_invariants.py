"""Publish CHECK constraints as Delta column invariants, for foreign readers and writers.

    check (price > 0)  ─▶  "delta.invariants" of the field price: coalesce(`price` > 0, true)

Delta's invariants are Spark SQL. A row for which one is NULL violates it, unlike in PostgreSQL. A
check over several columns is published at the first of them. Source: Delta's protocol, Column
Invariants.

INVARIANTS
  J1  a published invariant means the same as its CHECK, for every row that Delta can hold. It
      consists of comparisons of integers, decimals, texts and dates, lists of them, IS NULL, AND,
      OR, NOT, and length(). Other CHECKs are not published; only Meridian enforces them.
  J2  an invariant names columns by their current names. Every change of names, types or checks of a
      table publishes its invariants again.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import (
    bind_stored,
    bound_check,
    check_scope,
    parse_stored_expression,
)
from sql.catalog.catalog import CheckConstraint, Column, Table
from sql.errors import SqlError
from sql.functions.table import COMPARISON_OPERATORS, CastContext, Function, FunctionKind
from sql.plan.constant_rows import rows_as_conditions
from sql.plan.nodes import (
    BoolOp,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    InList,
    InRows,
    IsTest,
    Logical,
)
from sql.plan.traverse import column_ids
from sql.types.sql_type import SqlType, Value

_TYPES: Final = frozenset({"bool", "int2", "int4", "int8", "numeric", "text", "varchar", "date"})
"""Types whose values Delta has as they are, and compares as PostgreSQL does."""
_LENGTHS: Final = frozenset({"length", "char_length", "character_length"})
_PLAIN: Final = re.compile(r"[^'\\\x00-\x1f]*")
"""Texts that stand in a literal of every dialect as they are."""
_EPOCH: Final = date(1970, 1, 1)
_DAYS: Final = ((date.min - _EPOCH).days, (date.max - _EPOCH).days)


class _Untold(Exception):
    """Delta has no words for it (J1)."""


def with_delta_invariants(binding: Binding, table: Table) -> Table:
    """The table, whose columns carry its CHECKs as Delta invariants (J2)."""
    told = _invariants(binding, table) if table.checks else {}
    columns = [
        replace(column, invariant=" AND ".join(told.get(place, ())))
        for place, column in enumerate(table.columns)
    ]
    return table if columns == [*table.columns] else replace(table, columns=tuple(columns))


def _invariants(binding: Binding, table: Table) -> Mapping[int, Sequence[str]]:
    """By the ordinal of the column that they stand at."""
    scanned, scope = check_scope(binding, table)
    places = {column.id: place for place, column in enumerate(scanned.columns)}
    writing = _Writing({id_: table.columns[place] for id_, place in places.items()})
    found: dict[int, list[str]] = {}
    for check in table.checks:
        try:
            condition = _bound(binding, scope, check)
            text = f"coalesce({writing.text(condition)}, true)"
        except (SqlError, _Untold):
            # A text that nobody can bind any more is told to whoever writes.
            continue
        used = [places[id_] for id_ in column_ids(condition)]
        if used:
            found.setdefault(min(used), []).append(text)
    return found


def _bound(binding: Binding, scope: Scope, check: CheckConstraint) -> Expr:
    """The condition, as every statement that writes binds it."""
    return bind_stored(
        binding, partial(bound_check, binding, scope, parse_stored_expression(check.expression))
    )


class _Writing:
    """Conditions as Spark's SQL, over columns by their ids (J1)."""

    def __init__(self, columns: Mapping[ColumnId, Column]) -> None:
        self._columns = columns

    def text(self, expr: Expr) -> str:
        """Of a condition or a value. Raises _Untold."""
        match expr:
            case ColumnRef(id=id_) if self._columns[id_].domain is None and _is_told(expr):
                return f"`{self._columns[id_].name.replace('`', '``')}`"
            case Const(value=value) if _is_told(expr):
                return _literal(value, expr.type)
            case Logical(op=BoolOp.NOT, args=(arg,)):
                return f"NOT ({self.text(arg)})"
            case Logical(op=op, args=args):
                return f" {op.upper()} ".join(f"({self.text(arg)})" for arg in args)
            case IsTest(test=test, arg=arg):
                return f"({self.text(arg)}) {test.upper()}"
            case InRows():
                return self.text(rows_as_conditions(expr))
            case InList(arg=arg, items=items, negated=negated):
                listed = ", ".join(map(self.text, items))
                return f"{self._operand(arg)} {'NOT IN' if negated else 'IN'} ({listed})"
            case Call(function=function, args=args):
                return self._called(function, args, expr.type)
            case _:
                raise _Untold

    def _operand(self, expr: Expr) -> str:
        plain = expr.type.name != "bool" or isinstance(expr, ColumnRef | Const)
        return self.text(expr) if plain else f"({self.text(expr)})"

    def _called(self, function: Function, args: Sequence[Expr], type_: SqlType) -> str:
        if type_.name not in _TYPES or any(not _is_told(arg) for arg in args):
            raise _Untold
        texts = [self._operand(arg) for arg in args]
        if function.kind is FunctionKind.OPERATOR and function.name in COMPARISON_OPERATORS:
            return f"{texts[0]} {function.name} {texts[1]}"
        if function.kind is FunctionKind.FUNCTION and function.name in _LENGTHS:
            return f"length({texts[0]})"
        # A wider type for a comparison: engines find it, too.
        if function.context is CastContext.IMPLICIT and type_.typmod == -1:
            return texts[0]
        raise _Untold


def _is_told(expr: Expr) -> bool:
    return expr.type.name in _TYPES


def _literal(value: Value, type_: SqlType) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() if type_.name == "date" and _DAYS[0] <= value <= _DAYS[1]:
            return f"DATE '{_EPOCH + timedelta(days=value)}'"
        case int() if type_.name != "date":
            return str(value)
        case Decimal() if value.is_finite():
            return _decimal(value)
        case str() if _PLAIN.fullmatch(value):
            return f"'{value}'"
        case _:
            raise _Untold


def _decimal(value: Decimal) -> str:
    """Not as a plain number, which DataFusion takes for a float."""
    text = f"{value:f}"
    whole, _, fraction = text.lstrip("-").partition(".")
    return f"CAST('{text}' AS DECIMAL({len(whole) + len(fraction)},{len(fraction)}))"
