"""PostgreSQL's size limits: columns, keys, arguments, values (htup_details.h and others)."""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError

VALUE_MAX: Final = (1 << 30) - 1
"""Of a value: bytes in PostgreSQL (MaxAllocSize), characters here. No larger value is built."""
TARGET_ENTRIES_MAX: Final = 1664
TABLE_COLUMNS_MAX: Final = 1600
"""A larger one would make rows that its clients cannot describe."""
KEY_COLUMNS_MAX: Final = 32
ARGUMENTS_MAX: Final = 100

SPLIT_PARTS_MAX: Final = 4_000_000
"""Parts of a text that is split. Larger: engines that do it in one call hold gigabytes, and go on
for seconds behind a cancellation.
"""


def check_text_length(length: int) -> None:
    """Raises 54000 if a text of that length may not be built."""
    if length > VALUE_MAX:
        message = f"string buffer exceeds maximum allowed length ({VALUE_MAX} bytes)"
        raise SqlError("54000", message)


def join_within_limit(parts: Sequence[str], separator: str = "") -> str:
    """The texts joined. Raises 54000, before joining, if the result would be too long."""
    check_text_length(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def check_target_count(targets: Sequence[object], keys: Sequence[object] = ()) -> None:
    """Raises 54011 for the target list of a query, to which GROUP BY adds its keys."""
    if len(targets) + len(keys) <= TARGET_ENTRIES_MAX:
        return
    if len(targets) + len(set(keys) - set(targets)) > TARGET_ENTRIES_MAX:
        raise SqlError("54011", f"target lists can have at most {TARGET_ENTRIES_MAX} entries")


def check_row_field_count(count: int, place: int | None) -> None:
    """Raises 54011 for the fields of a row value."""
    if count > TARGET_ENTRIES_MAX:
        raise SqlError(
            "54011", f"ROW expressions can have at most {TARGET_ENTRIES_MAX} entries", place
        )


def check_column_count(count: int) -> None:
    """Raises 54011 for the columns that a table has or has had."""
    if count > TABLE_COLUMNS_MAX:
        raise SqlError("54011", f"tables can have at most {TABLE_COLUMNS_MAX} columns")


def check_key_column_count(count: int) -> None:
    """Raises 54011 for the columns of an index."""
    if count > KEY_COLUMNS_MAX:
        raise SqlError("54011", f"cannot use more than {KEY_COLUMNS_MAX} columns in an index")


def check_argument_count(count: int, place: int | None) -> None:
    """Raises 54023 for the arguments of a call."""
    if count > ARGUMENTS_MAX:
        message = f"cannot pass more than {ARGUMENTS_MAX} arguments to a function"
        raise SqlError("54023", message, place)
