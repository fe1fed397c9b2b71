"""Long lists, chains and nested queries: how long statements of so many parts take.

lists      each shape of `tests/postgres/lists/shapes.py`; the ratios' goal is 10 at 10,000 parts

A figure is missing where a server refuses the statement: chains of 10,000 operators, with 54001.
"""

import time
from typing import Final

import psycopg

from tests.bench.sizes import Figures, Size
from tests.postgres.lists.shapes import CHAINS, SHAPES, TABLE, nested_queries, nested_views

LENGTHS: Final = (10, 100, 1_000, 10_000)
NESTED_LENGTHS: Final = (10, 40, 100)
"""Of queries and views within each other; PostgreSQL takes minutes for 1,000."""
LONG_LIST: Final = 50_000
REPEATED: Final = 3
"""Runs, of which the fastest counts."""
LONG_SECONDS: Final = 0.5
"""What takes so long runs once."""
_LITERAL: Final = 8 << 20


def lists(dsn: str, _size: Size) -> Figures:
    """Every shape at every length."""
    found: dict[str, float] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS listed CASCADE")
        for statement in TABLE:
            connection.execute(statement.encode())
        connection.execute("SET statement_timeout = '120s'")
        for shape, text in {**SHAPES, **CHAINS}.items():
            for length in LENGTHS:
                _note(found, f"{shape}, {length:,} parts", connection, text(length))
        for length in NESTED_LENGTHS:
            _note(found, f"nested queries, {length}", connection, nested_queries(length))
            *definitions, query = nested_views(length)
            for definition in definitions:
                connection.execute(definition.encode())
            _note(found, f"nested views, {length}", connection, query)
            connection.execute("DROP VIEW seen0 CASCADE")
        _note(found, f"in, {LONG_LIST:,} parts", connection, SHAPES["in"](LONG_LIST))
        literal = f"VALUES ('{'x' * _LITERAL}')"
        _note(found, "VALUES of a literal of 8 MiB", connection, literal)
        array = "SELECT count(*) FROM listed WHERE id = ANY (%s)"
        values = ([*range(LONG_LIST)],)
        _note(found, f"array parameter, {LONG_LIST:,} parts", connection, array, values)
    return found


def _note(
    found: dict[str, float],
    name: str,
    connection: psycopg.Connection,
    text: str,
    values: tuple[object, ...] | None = None,
) -> None:
    times: list[float] = []
    for _ in range(REPEATED):
        began = time.perf_counter()
        try:
            connection.execute(text.encode(), values, prepare=False).fetchall()
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            return
        times.append(time.perf_counter() - began)
        if times[-1] > LONG_SECONDS:
            break
    found[f"{name}: ms"] = 1_000 * min(times)
