"""Results of the reg types: names as text, oids in binary, as PostgreSQL sends them."""

import psycopg
import pytest

from tests.support.stack import serving

VALUES = (
    ("'int4'::regtype", "integer", 23),
    ("pg_typeof(1::int8)", "bigint", 20),
    ("'pg_class'::regclass", "pg_class", 1259),
    ("'pg_catalog'::regnamespace", "pg_catalog", 11),
    ("0::oid::regclass", "-", 0),
    ("4000000000::oid::regtype", "4000000000", 4000000000),
    ("null::regtype", None, None),
)
QUERY = f"select {', '.join(value for value, _, _ in VALUES)}"


@pytest.mark.parametrize("binary", [False, True])
def test_one_row(binary: bool) -> None:
    expected = tuple(oid if binary else text for _, text, oid in VALUES)
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.cursor(binary=binary)
        row = cursor.execute(QUERY.encode()).fetchone()
        assert row is not None
        shown = [int.from_bytes(value) if isinstance(value, bytes) else value for value in row]
        assert tuple(shown) == expected


def test_returned_and_fetched() -> None:
    with serving() as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create table t (a int)")
        made = connection.execute("insert into t values (1) returning pg_typeof(a)").fetchall()
        assert made == [("integer",)]
        connection.execute("declare c cursor for select pg_typeof(a), a from t")
        assert connection.execute("fetch all from c").fetchall() == [("integer", 1)]
