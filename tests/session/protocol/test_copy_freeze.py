"""COPY .. (FREEZE) is for tables that the subtransaction made or emptied, as in PostgreSQL."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest

from tests.support.stack import serving

COPY = "copy f from stdin (freeze)"

# As PostgreSQL 18 answers the COPY that comes behind.
TAKEN: tuple[tuple[str, ...], ...] = (
    ("truncate f",),
    ("drop table f", "create table f (a int)"),
    ("drop table f", "create table f as select 1 as a"),
    ("savepoint a", "truncate f"),
    ("savepoint a", "truncate f", "release a"),
    ("savepoint a", "savepoint b", "truncate f", "release a"),
    ("truncate f", "savepoint a", "truncate f", "rollback to a", "release a"),
)
REFUSED: tuple[tuple[str, ...], ...] = (
    (),
    ("delete from f",),
    ("truncate f", "savepoint a"),
    ("truncate f", "savepoint a", "rollback to a"),
    ("savepoint a", "truncate f", "rollback to a"),
    ("truncate f", "commit", "begin"),
    ("truncate f", "rollback", "begin"),
)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as place:
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("create table f (a int)")
        yield place


def _copied(dsn: str, before: Sequence[str], copy: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("begin")
        for line in before:
            connection.execute(line.encode())
        with connection.cursor().copy(copy.encode()) as stream:
            stream.write(b"7\n")
        rows = connection.execute("select a from f").fetchall()
        connection.execute("rollback")
        return rows


@pytest.mark.parametrize("before", TAKEN)
def test_a_table_of_the_subtransaction_is_filled(dsn: str, before: Sequence[str]) -> None:
    assert (7,) in _copied(dsn, before, COPY)


@pytest.mark.parametrize("before", REFUSED)
def test_every_other_table_is_refused(dsn: str, before: Sequence[str]) -> None:
    with pytest.raises(psycopg.Error) as caught:
        _copied(dsn, before, COPY)
    assert caught.value.sqlstate == "55000"
    assert caught.value.diag.message_primary == (
        "cannot perform COPY FREEZE because the table was not created or truncated "
        "in the current subtransaction"
    )


def test_freeze_false_asks_for_nothing(dsn: str) -> None:
    assert (7,) in _copied(dsn, (), "copy f from stdin (freeze false)")


def test_nothing_is_frozen_on_its_way_out(dsn: str) -> None:
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InvalidParameterValue) as caught,
        connection.cursor().copy("copy f to stdout (freeze)") as stream,
    ):
        list(stream)
    assert caught.value.diag.message_primary == "COPY FREEZE cannot be used with COPY TO"
