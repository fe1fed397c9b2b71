"""PostgreSQL's size limits: columns, keys, arguments, values (htup_details.h and others)."""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError

VALUE_MAX: Final = (1 << 30) - 1
"""Of a value: bytes in PostgreSQL (MaxAllocSize), characters here. No larger value is built."""
ENTRIES_MAX: Final = 1664
COLUMNS_MAX: Final = 1600
"""A larger one would make rows that its clients cannot describe."""
KEY_COLUMNS_MAX: Final = 32
ARGUMENTS_MAX: Final = 100


def check_text(length: int) -> None:
    """Raises 54000 if a text of that length may not be built."""
    if length > VALUE_MAX:
        message = f"string buffer exceeds maximum allowed length ({VALUE_MAX} bytes)"
        raise SqlError("54000", message)


def joined(parts: Sequence[str], separator: str = "") -> str:
    """The texts joined. Raises 54000, before joining, if the result would be too long."""
    check_text(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def check_targets(targets: Sequence[object], keys: Sequence[object] = ()) -> None:
    """Raises 54011 for the target list of a query, to which GROUP BY adds its keys."""
    if len(targets) + len(keys) <= ENTRIES_MAX:
        return
    if len(targets) + len(set(keys) - set(targets)) > ENTRIES_MAX:
        raise SqlError("54011", f"target lists can have at most {ENTRIES_MAX} entries")


def check_row(count: int, place: int | None) -> None:
    """Raises 54011 for the fields of a row value."""
    if count > ENTRIES_MAX:
        raise SqlError("54011", f"ROW expressions can have at most {ENTRIES_MAX} entries", place)


def check_columns(count: int) -> None:
    """Raises 54011 for the columns that a table has or has had."""
    if count > COLUMNS_MAX:
        raise SqlError("54011", f"tables can have at most {COLUMNS_MAX} columns")


def check_key_columns(count: int) -> None:
    """Raises 54011 for the columns of an index."""
    if count > KEY_COLUMNS_MAX:
        raise SqlError("54011", f"cannot use more than {KEY_COLUMNS_MAX} columns in an index")


def check_arguments(count: int, place: int | None) -> None:
    """Raises 54023 for the arguments of a call."""
    if count > ARGUMENTS_MAX:
        message = f"cannot pass more than {ARGUMENTS_MAX} arguments to a function"
        raise SqlError("54023", message, place)
