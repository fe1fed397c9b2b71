"""Tell which rows may stay Python values until somebody needs Arrow (U1 of `unencoded_rows.py`).

The types are those whose values JSON gives back as they were, and Arrow, too. The values are looked
at one by one: those that do not fit are for Arrow to refuse.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sql.catalog.catalog import Table

ValueCheck: TypeAlias = Callable[[object], bool]


def _whole_number(bits: int) -> ValueCheck:
    end = 1 << (bits - 1)

    def fits(value: object) -> bool:
        return type(value) is int and -end <= value < end

    return fits


def _is_text(value: object) -> bool:
    if type(value) is not str:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _is_bool(value: object) -> bool:
    return type(value) is bool


def _is_float(value: object) -> bool:
    return type(value) is float


_CHECKS: Final[dict[str, ValueCheck]] = {
    "bool": _is_bool,
    "int2": _whole_number(16),
    "int4": _whole_number(32),
    "int8": _whole_number(64),
    "float8": _is_float,
    "text": _is_text,
    "varchar": _is_text,
    "uuid": _is_text,
    "date": _whole_number(32),
    "timestamp": _whole_number(64),
    "timestamptz": _whole_number(64),
}

PLAIN_TYPES: Final = frozenset(_CHECKS)
"""Of which JSON and Arrow give values back as they were."""


def value_checks(table: Table) -> Sequence[ValueCheck] | None:
    """A check for each column; None if a column's values never stay as they are."""
    found = [_CHECKS.get(column.type.name) for column in table.columns]
    checks = [check for check in found if check is not None]
    return checks if len(checks) == len(found) and checks else None


def all_pass(checks: Sequence[ValueCheck], rows: Sequence[tuple[object, ...]]) -> bool:
    """Whether all values of rows may stay as they are."""
    for row in rows:
        for check, value in zip(checks, row, strict=True):
            if value is not None and not check(value):
                return False
    return True
