"""Sequences that drivers name by parameters: as text or regclass, of any type that they declare."""

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.support.stack import serving

SETUP = (
    "create sequence s",
    'create table "T x" (id serial, a text)',
    "create table t (a int)",
    "insert into t values (1), (2)",
)

# As PostgreSQL 18 answers, in this order.
ANSWERED: tuple[tuple[str, tuple[object, ...], object], ...] = (
    ("select nextval(%s)", ("s",), 1),
    ("select nextval(%s::regclass)", ("public.s",), 2),
    ("select nextval(%s::text)", ("s",), 3),
    ("select nextval(%s::varchar)", ("s",), 4),
    ("select nextval(%s)", (None,), None),
    ("select setval(%s, %s)", ("s", 10), 10),
    ("select setval(%s, %s, %s)", ("s", 20, False), 20),
    ("select currval(%s)", ("s",), 10),
    ("select nextval(%s)", ("s",), 20),
    ("select setval('s', %s)", (None,), None),
    ("select pg_get_serial_sequence(%s, %s)", ('"T x"', "id"), 'public."T x_id_seq"'),
    ("select pg_get_serial_sequence(%s, %s)", ('"T x"', "a"), None),
    ("select pg_get_serial_sequence(%s, %s)", (None, "a"), None),
    ("select nextval(pg_get_serial_sequence(%s, %s))", ('"T x"', "id"), 1),
    ("select setval(pg_get_serial_sequence(%s, %s), 7)", ('"T x"', "a"), None),
    ("select sum(n) from (values (1)) v(n), (select nextval(%s)) w(m)", ("s",), 1),
    ("select nextval('s') from generate_series(1, %s) limit 1", (3,), 22),
    ("insert into t values (nextval(%s)) returning a", ("s",), 23),
    ("insert into t select nextval(%s) from t where a = 1 returning a", ("s",), 24),
    ("update t set a = nextval(%s) where a = %s returning a", ("s", 24), 25),
)

REFUSED: tuple[tuple[str, tuple[object, ...], str, str], ...] = (
    ("select nextval(%s)", ("nosuch",), "42P01", 'relation "nosuch" does not exist'),
    ("select nextval(%s)", ("t",), "42809", 'cannot open relation "t"'),
    ("select nextval(%s)", ("a b",), "42602", "invalid name syntax"),
    ("select setval(%s, 0)", ("s",), "22003",
     'setval: value 0 is out of bounds for sequence "s" (1..9223372036854775807)'),
    ("select pg_get_serial_sequence(%s, %s)", ("nosuch", "a"), "42P01",
     'relation "nosuch" does not exist'),
    ("select pg_get_serial_sequence(%s, %s)", ("t", "nosuch"), "42703",
     'column "nosuch" of relation "t" does not exist'),
    ("select pg_get_serial_sequence(%s, %s)", ("nosuch.t", "a"), "3F000",
     'schema "nosuch" does not exist'),
)  # fmt: skip


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
        yield dsn


def test_answered(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement, parameters, expected in ANSWERED:
            found = connection.execute(statement.encode(), parameters).fetchone()
            assert found == (expected,), statement


@pytest.mark.parametrize(("statement", "parameters", "sqlstate", "message"), REFUSED)
def test_refused(
    dsn: str, statement: str, parameters: tuple[object, ...], sqlstate: str, message: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(statement.encode(), parameters)
        assert caught.value.sqlstate == sqlstate
        assert caught.value.diag.message_primary == message


def test_described_as_regclass(dsn: str) -> None:
    async def ask() -> tuple[list[str], list[Any]]:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute("create temporary sequence own")
            prepared = await connection.prepare("select setval($1, $2, $3), nextval($1)")
            types = [type_.name for type_ in prepared.get_parameters()]
            return types, [tuple(row) for row in await prepared.fetch("own", 5, False)]
        finally:
            await connection.close()

    assert asyncio.run(ask()) == (["regclass", "int8", "bool"], [(5, 5)])


COPIED = (
    ("copy (select nextval('c')) to stdout", b"1\n"),
    (
        "copy (select a, nextval('c') from two order by a) to stdout csv header",
        b"a,nextval\n1,2\n2,3\n",
    ),
    ("copy (select setval('c', max(a)) from two) to stdout", b"2\n"),
)


def test_copied(dsn: str) -> None:
    """COPY of a query calls for each row, too."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create temporary sequence c")
        connection.execute("create temporary table two as select * from (values (1), (2)) v(a)")
        for statement, expected in COPIED:
            with connection.cursor().copy(statement.encode()) as copy:
                assert b"".join(map(bytes, copy)) == expected
