"""Which types have an equality and an order: all but json, which is a text of many spellings."""

from typing import Final

from sql.errors import SqlError
from sql.records import check_typed
from sql.types import SqlType, display

_INCOMPARABLE: Final = frozenset({"json", "_json", "jsonpath", "_jsonpath"})


def check_equality(type_: SqlType, place: int | None) -> None:
    """42883 for what cannot be grouped, made distinct or united."""
    check_typed(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = display(type_)
        message = f"could not identify an equality operator for type {shown}"
        raise SqlError("42883", message, place)


def check_ordering(type_: SqlType, place: int | None) -> None:
    """42883 for what cannot be sorted."""
    check_typed(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = display(type_)
        message = f"could not identify an ordering operator for type {shown}"
        hint = "Use an explicit ordering operator or modify the query."
        raise SqlError("42883", message, place, hint=hint)
