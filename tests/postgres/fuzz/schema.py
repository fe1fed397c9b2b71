"""The tables of the random queries: few rows, with NULLs, duplicates and values at the edges."""

import random

from tests.postgres.fuzz.expressions import Column

TABLES = ("t1", "t2", "t3")
TYPES = {
    "i": "int4", "l": "int8", "n": "numeric", "f": "float8", "s": "text", "b": "bool", "d": "date",
    "ts": "timestamp",
}  # fmt: skip
_DECLARED = {"numeric": "numeric(10,2)"}
_VALUES: dict[str, tuple[str, ...]] = {
    "int4": ("0", "1", "1", "2", "-7", "100", "null", "12345"),
    "int8": ("0", "1", "2", "5000000000", "-5000000000", "null"),
    "numeric": ("0", "1.50", "1.50", "-2.25", "99999.99", "null", "0.01"),
    "float8": ("0", "1.5", "-2.25", "1e15", "null", "0.1", "1.5"),
    "text": ("''", "'a'", "'abc'", "'ABC'", "'b c'", "'ä€'", "null", "'a%_'", "'abc'", "' x '"),
    "bool": ("true", "false", "null"),
    "date": ("'2024-02-29'", "'2024-01-01'", "'1969-12-31'", "null", "'2024-02-29'"),
    "timestamp": (
        "'2024-02-29 12:34:56'", "'2024-02-29 00:00:00'", "'1970-01-01 00:00:00.5'", "null",
    ),
}  # fmt: skip


def columns(alias: str) -> list[Column]:
    """The columns of any of the tables under an alias."""
    return [Column(f"{alias}.{name}", type_) for name, type_ in TYPES.items()]


def statements() -> list[str]:
    """Make and fill the tables; always the same rows."""
    source = random.Random(1)
    shape = ", ".join(f"{name} {_DECLARED.get(type_, type_)}" for name, type_ in TYPES.items())
    found: list[str] = []
    for table, count in zip(TABLES, (12, 7, 3), strict=True):
        rows = ", ".join(
            f"({', '.join(source.choice(_VALUES[type_]) for type_ in TYPES.values())})"
            for _ in range(count)
        )
        found += [f"create table {table} ({shape})", f"insert into {table} values {rows}"]
    return found
