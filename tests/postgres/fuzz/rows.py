"""Tables of more rows: skewed, with NULLs, columns of one value, duplicates, and one without rows.

Two more have a handful of rows of the same few values: whatever a query compares meets there.

INVARIANTS
  R1  sums of the floats are exact: they are quarters.
  R2  always the same rows.
"""

import datetime
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

COLUMNS = {
    "i": "int4", "l": "int8", "n": "numeric", "f": "float8", "s": "text", "b": "bool", "d": "date",
    "ts": "timestamp",
}  # fmt: skip
SIZES = {"big": 12_000, "mid": 700, "few": 60, "one": 1, "nothing": 0, "kin": 9, "twin": 7}
SHARES = {"big": 1, "mid": 4, "few": 6, "one": 1, "nothing": 1}
"""How often a query reads which table."""
KIN_SHARES = {"kin": 6, "twin": 5, "nothing": 1}
"""The same among tables of a handful of rows."""
TABLES = tuple(SIZES)
CONSTANTS: dict[str, tuple[str, ...]] = {
    "int4": ("1", "7", "50", "99", "0", "100", "-1", "1000000", "null::int4"),
    "int8": (
        "5000000040", "5000000500", "5000000000", "5000000003", "0", "9000000000", "null::int8",
    ),
    "numeric": ("1.50", "9.75", "500", "250.25", "-3.25", "1001", "-200.5", "null::numeric"),
    "float8": (
        "2.5::float8", "-1.25::float8", "-7::float8", "1e9::float8", "-1e9::float8", "null::float8",
    ),
    "text": ("'a'", "'abc'", "'Ä'", "''", "'nobody'", "'~'", "null::text"),
    "bool": ("true", "true", "false", "null::bool"),
    "date": (
        "date '2024-01-01'", "date '2024-02-11'", "date '2024-01-20'", "date '1990-01-01'",
        "date '2030-01-01'", "null::date",
    ),
    "timestamp": (
        "timestamp '2024-01-05 07:00:00'", "timestamp '2024-01-20 07:00:00'",
        "timestamp '2024-02-02 01:00:00'", "timestamp '2000-01-01 00:00:00'",
        "timestamp '2030-01-01 00:00:00'", "null::timestamp",
    ),
}  # fmt: skip
"""Values that are there often, seldom or never."""
_TEXTS = ("", "a", "abc", "b", "Ä", "z", "ab c", "B")
_DAY = datetime.date(2024, 1, 1)
_MOMENT = datetime.datetime(2024, 1, 1)

_BATCH = 1_000

Row = tuple[Any, ...]


def rows(table: str) -> list[Row]:
    """The rows of a table (R2)."""
    source = random.Random(table)
    return [_row(source, table, number) for number in range(SIZES[table])]


def statements() -> Iterator[str]:
    """Make and fill the tables."""
    declared = {"numeric": "numeric(10,2)"}
    shape = ", ".join(f"{name} {declared.get(type_, type_)}" for name, type_ in COLUMNS.items())
    for table in TABLES:
        yield f"create table {table} ({shape})"
        if table in ("kin", "twin"):
            yield f"insert into {table} values {', '.join(_constant_rows(table))}"
            continue
        filled = rows(table)
        for first in range(0, len(filled), _BATCH):
            values = ", ".join(map(_literals, filled[first : first + _BATCH]))
            yield f"insert into {table} values {values}"


def _constant_rows(table: str) -> list[str]:
    """Rows of the constants that queries compare with."""
    source = random.Random(table)
    return [
        f"({', '.join(source.choice([*CONSTANTS[t][:3], 'null']) for t in COLUMNS.values())})"
        for _ in range(SIZES[table])
    ]


def _literals(row: Row) -> str:
    values = ("null" if value is None else f"'{value}'" for value in row)
    return f"({', '.join(values)})"


def _row(source: random.Random, table: str, number: int) -> Row:
    def maybe(value: Callable[[], Any], nulls: float = 0.08) -> Any:
        return None if source.random() < nulls else value()

    return (
        # Small numbers are many; one table has but one of them.
        7 if table == "few" else maybe(lambda: int(100 * source.random() ** 3)),
        5_000_000_000 + number,
        maybe(lambda: Decimal(source.randrange(-400, 4_000)) / 4),
        maybe(lambda: source.randrange(-50, 50) / 4),
        maybe(lambda: source.choice(_TEXTS)),
        maybe(lambda: source.random() < 0.9, 0.2),
        # One table knows no day at all.
        None if table == "mid" else maybe(lambda: _DAY + datetime.timedelta(source.randrange(60))),
        maybe(lambda: _MOMENT + datetime.timedelta(hours=source.randrange(900))),
    )
