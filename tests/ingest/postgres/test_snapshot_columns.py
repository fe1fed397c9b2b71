"""A copy gives the same column by column and row by row (C3 of `ingest/postgres/snapshot.py`)."""

from __future__ import annotations

import pytest

from ingest.postgres.snapshot import _TableCopy
from ingest.reader import UpstreamTable
from tests.ingest.upstream_database import UpstreamDatabase, run

PLAIN = (
    "a int2", "b int4", "c int8", "d numeric(20,5)", "n numeric", "e float4", "f float8", "g text",
    "h varchar(9)", "i char(4)", "j bool", "k date", "l timestamp", "m timestamptz(3)", "o time",
    "p uuid", "q bytea", "r json", "s jsonb", "t interval", "u int4[]", "v text[]",
)  # fmt: skip
ROWS = """
    INSERT INTO t SELECT x % 300, x * 1000, x * 10000000000, x / 7.0, x / 3.0, x / 3.0, x / 9.0,
        CASE x % 5 WHEN 0 THEN '' WHEN 1 THEN NULL ELSE 'text ' || x END, 'v' || x, 'c' || x % 9,
        x % 2 = 0, date '2020-02-28' + x, timestamp '2020-02-28 23:59:59.5' + x * interval '1 s',
        timestamptz '1969-12-31 12:00:00.123456+02' + x * interval '1 h', time '00:00:01.25',
        gen_random_uuid(), decode(repeat('0a', x % 4), 'hex'), ('{"k": ' || x || '}')::json,
        jsonb_build_object('k', x), x * interval '1 h', array[x, NULL], array['a', 'b' || x]
    FROM generate_series(1, 700) x
"""
ODD = (
    r"INSERT INTO t (g) VALUES (E'tab\there'), (E'line\nfeed'), (E'back\\slash'), (E'\\N'), ('\.')",
    "INSERT INTO t (e, f) VALUES ('NaN', '-Infinity'), ('-0', '1e300'), (NULL, '4.9e-324')",
    "INSERT INTO t (k, l, m) VALUES ('0044-03-15 BC', '4714-11-24 00:00:00 BC', '9999-12-31')",
    "INSERT INTO t (k) VALUES ('infinity')",
    "INSERT INTO t (k) VALUES ('9999-12-31'), ('10000-01-01')",
    "INSERT INTO t (l, m) VALUES ('10000-01-01', '9999-12-31 23:59:59.999'), (NULL, '20000-01-01')",
    "INSERT INTO t (n) VALUES (1e60), ('NaN')",
    "INSERT INTO t DEFAULT VALUES",
)


@pytest.mark.parametrize("odd", [[], *[[one] for one in ODD], ODD])
def test_both_ways_read_alike(
    odd: list[str], database: UpstreamDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(database, odd)
    names = ", ".join(column.name for column in table.columns)
    database.execute("SET extra_float_digits = 3", "SET timezone = 'UTC'")
    lines = database.copied(f"SELECT {names} FROM t")

    async def read() -> list[object]:
        copy = _TableCopy(table, "0/1")
        parts = [await copy.part(lines[at : at + 64]) for at in range(0, len(lines), 64)]
        return [(part.rows.schema, part.rows.to_pylist(), [*part.errors]) for part in parts]

    taken: list[bool] = []
    at_once = _TableCopy._at_once

    def noted(copy: _TableCopy, block: bytes) -> object:
        rows = at_once(copy, block)
        taken.append(rows is not None)
        return rows

    monkeypatch.setattr(_TableCopy, "_at_once", noted)
    by_column = run(read())
    assert any(taken), "most blocks are plain"
    monkeypatch.setattr(_TableCopy, "_at_once", lambda *_: None)
    by_row = run(read())
    assert repr(by_column) == repr(by_row)


def _table(database: UpstreamDatabase, odd: list[str]) -> UpstreamTable:
    database.execute(f"CREATE TABLE t ({', '.join(PLAIN)})", "ALTER TABLE t REPLICA IDENTITY FULL")
    database.execute(ROWS, *odd, "CREATE PUBLICATION p FOR TABLE t")

    async def inspect() -> UpstreamTable:
        reader = database.reader()
        (table,) = (await reader.inspect()).tables
        await reader.close()
        return table

    return run(inspect())
