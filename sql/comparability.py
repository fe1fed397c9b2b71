"""Which types have an equality and an order: all but json, which is a text of many spellings."""

from typing import Final

from sql.errors import SqlError, not_supported
from sql.records import UNTYPED_RECORD
from sql.types import SqlType, array_of, display

_INCOMPARABLE: Final = frozenset({"json", "_json", "jsonpath", "_jsonpath"})


def check_equality(type_: SqlType, place: int | None) -> None:
    """42883 for what cannot be grouped, made distinct or united."""
    _check_typed(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = display(type_)
        message = f"could not identify an equality operator for type {shown}"
        raise SqlError("42883", message, place)


def check_ordering(type_: SqlType, place: int | None) -> None:
    """42883 for what cannot be sorted."""
    _check_typed(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = display(type_)
        message = f"could not identify an ordering operator for type {shown}"
        hint = "Use an explicit ordering operator or modify the query."
        raise SqlError("42883", message, place, hint=hint)


def _check_typed(type_: SqlType, place: int | None) -> None:
    if type_ in (UNTYPED_RECORD, array_of(UNTYPED_RECORD)):
        raise not_supported("comparing rows with a literal that has no type", place)
