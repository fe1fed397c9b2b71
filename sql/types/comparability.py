"""Refuse to compare or sort types without equality and order: json and jsonpath."""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError
from sql.types.records import check_record_keys, check_record_types_known
from sql.types.sql_type import SqlType, format_type

_INCOMPARABLE: Final = frozenset({"json", "_json", "jsonpath", "_jsonpath"})


def check_equality(type_: SqlType, place: int | None) -> None:
    """Raises 42883 for a type that has no equality, in GROUP BY, DISTINCT and UNION."""
    check_record_types_known(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = format_type(type_)
        message = f"could not identify an equality operator for type {shown}"
        raise SqlError("42883", message, place)


def check_ordering(type_: SqlType, place: int | None) -> None:
    """Raises 42883 for a type that cannot be sorted."""
    check_record_types_known(type_, place)
    if type_.name in _INCOMPARABLE:
        shown = format_type(type_)
        message = f"could not identify an ordering operator for type {shown}"
        hint = "Use an explicit ordering operator or modify the query."
        raise SqlError("42883", message, place, hint=hint)


_EQUAL: Final = frozenset({
    "=", "<>", "@>", "<@", "&&", "array_remove", "array_replace", "array_position",
    "array_positions",
})  # fmt: skip
_ORDERED: Final = frozenset({"<", "<=", ">", ">=", "array_sort"})


def check_element_comparison(name: str, types: Sequence[SqlType]) -> None:
    """Raises 42883 for a function that would compare array elements of a type that cannot be
    compared. PostgreSQL finds out at run time, so the error has no position.
    """
    elements = [type_.element for type_ in types if type_.element is not None]
    for element in elements if name in _EQUAL | _ORDERED else ():
        check_record_keys(element)
    if not any(element.name in _INCOMPARABLE for element in elements):
        return
    shown = format_type(elements[0])
    if name in _EQUAL:
        raise SqlError("42883", f"could not identify an equality operator for type {shown}")
    if name in _ORDERED:
        sqlstate = "0A000" if name == "array_sort" else "42883"
        raise SqlError(sqlstate, f"could not identify a comparison function for type {shown}")


def check_greatest_least(type_: SqlType) -> None:
    """Raises 42883 for GREATEST and LEAST of a type that has no order."""
    if type_.name in _INCOMPARABLE:
        shown = format_type(type_)
        raise SqlError("42883", f"could not identify a comparison function for type {shown}")
