"""How a subscription begins and ends: UP TO, cancel, DDL, history, a server that stops."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from tests.session.change_streams.followers import cancel, now, subscriptions, told, until
from tests.support.stack import running, serving


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t")
        connection.execute("create table t (a int, b text)")
        connection.execute("insert into t values (1, 'x')")
        yield connection


def test_up_to_ends_with_a_tag(dsn: str, table: psycopg.Connection) -> None:
    first = now(table)
    table.execute("insert into t values (2, 'y')")
    second = now(table)
    table.execute("delete from t")
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(f"SUBSCRIBE t AS OF {first} UP TO {second + 1}".encode())
        assert cursor.statusmessage == "SUBSCRIBE 2"
        assert cursor.fetchall() == [(first, 1, 1, "x"), (second, 1, 2, "y")]
        # Nobody writes, and time comes to UP TO all the same.
        later = f"SUBSCRIBE t WITH (PROGRESS) UP TO {now(connection) + 300_000}"
        assert connection.execute(later.encode()).fetchall()[-1][1] is True


@pytest.mark.parametrize(
    ("options", "sqlstate", "place"),
    [
        ("UP TO 5", "22023", "5"),
        ("AS OF now() UP TO now()", "22023", "now()"),
        ("UP TO NULL", "22023", "NULL"),
        ("UP TO -1", "22023", "-1"),
        ("UP TO 'abc'", "22007", "'abc'"),
        ("UP TO 99999999999999999999", "42804", "99999999999999999999"),
        ("AS OF 5", "72000", None),
        ("AS OF NULL", "22023", None),
        ("AS OF now() + interval '1 day'", "22023", None),
        ("AS OF a", "42703", "a"),
        ("AS OF AT LEAST UP TO now()", "42601", "UP TO now()"),
    ],
)
def test_wrong_times_are_refused(
    table: psycopg.Connection, options: str, sqlstate: str, place: str | None
) -> None:
    statement = f"SUBSCRIBE t {options}"
    with pytest.raises(psycopg.Error) as caught:
        table.execute(statement.encode())
    assert caught.value.sqlstate == sqlstate
    expected = None if place is None else str(statement.rindex(place) + 1)
    assert caught.value.diag.statement_position == expected


def test_cancel_ends_it_and_its_hold(dsn: str, table: psycopg.Connection) -> None:
    with told(dsn, "SUBSCRIBE t") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        held = table.execute("select kind from meridian.read_holds").fetchall()
        assert ("subscription",) in held
        waits = "select pid from pg_stat_activity where wait_event = 'SubscribedChanges'"
        until(lambda: table.execute(waits).fetchone())
        cancel(table)
    assert [row[0] for row in rows[-1:]] == ["57014"]
    assert subscriptions(table) == 0


def test_terminate_ends_it(dsn: str, table: psycopg.Connection) -> None:
    with told(dsn, "SUBSCRIBE t") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("select pg_terminate_backend(pid) from meridian.subscriptions")
    assert rows[-1][0] == "57P01"
    until(lambda: subscriptions(table) == 0)


def test_a_client_that_leaves_is_noticed(dsn: str, table: psycopg.Connection) -> None:
    connection = psycopg.connect(dsn, autocommit=True)
    stream = connection.cursor().stream("SUBSCRIBE t")
    next(stream)
    connection.pgconn.finish()
    until(lambda: subscriptions(table) == 0)


@pytest.mark.parametrize(
    ("ddl", "sqlstate", "message"),
    [
        ("drop table t", "42P01", 'table "t" was dropped at '),
        ("alter table t add c int", "0A000", 'the definition of table "t" has changed at '),
        ("alter table t rename b to c", "0A000", 'the definition of table "t" has changed at '),
        ("alter table t alter a type int8", "0A000", 'the definition of table "t" has changed at '),
    ],
)
def test_ddl_ends_it_behind_all_changes_before(
    dsn: str, table: psycopg.Connection, ddl: str, sqlstate: str, message: str
) -> None:
    begin = now(table)
    with told(dsn, "SUBSCRIBE t") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("insert into t values (2, 'y')")
        with table.transaction():
            table.execute("insert into t values (3, 'z')")
            table.execute(ddl.encode())
    *changes, end = rows
    assert [row[1:] for row in changes] == [(1, 1, "x"), (1, 2, "y")]
    assert end[0] == sqlstate
    assert str(end[1]).startswith(message)
    at = int(str(end[1]).rpartition(" ")[2])
    assert end[2] == f"All changes up to {at - 1} were told."
    # One that begins in the past ends at the same place.
    past = f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {begin}"
    with told(dsn, past) as (_, again):
        pass
    assert again == [*changes[1:], end]


def test_what_changes_no_row_ends_nothing(dsn: str, table: psycopg.Connection) -> None:
    with told(dsn, "SUBSCRIBE t") as (_, rows):
        until(lambda: subscriptions(table) == 1)
        table.execute("alter table t alter b set default 'd'")
        table.execute("alter table t rename to other")
        table.execute("create index on other (a)")
        table.execute("vacuum other")
        table.execute("insert into other (a) values (2)")
        table.execute("truncate other")
        until(lambda: len(rows) == 4)
        cancel(table)
    table.execute("drop table other")
    assert [row[1:] for row in rows[:2]] == [(1, 1, "x"), (1, 2, "d")]
    assert sorted(row[1:] for row in rows[2:4]) == [(-1, 1, "x"), (-1, 2, "d")]


def test_an_update_that_changes_nothing_is_not_told(dsn: str, table: psycopg.Connection) -> None:
    begin = now(table)
    table.execute("update t set a = a")
    table.execute("update t set b = 'other'")
    with psycopg.connect(dsn, autocommit=True) as connection:
        end = now(connection) + 1
        whole = f"SUBSCRIBE t WITH (SNAPSHOT false) AS OF {begin} UP TO {end}"
        part = f"SUBSCRIBE (SELECT a FROM t) WITH (SNAPSHOT off) AS OF {begin} UP TO {end}"
        assert [r[1:] for r in connection.execute(whole.encode())] == [
            (-1, 1, "x"),
            (1, 1, "other"),
        ]
        assert connection.execute(part.encode()).fetchall() == []


def test_it_holds_nothing_for_its_block(dsn: str, table: psycopg.Connection) -> None:
    with psycopg.connect(dsn) as connection:
        stream = connection.cursor().stream("SUBSCRIBE t")
        next(stream)
        found = table.execute("select kind from meridian.read_holds where pid is not null")
        kinds = [kind for (kind,) in found.fetchall()]
        assert kinds.count("transaction") == 1, "that of who looks"
        assert kinds.count("subscription") == 1
        cancel(table)
        with pytest.raises(psycopg.errors.QueryCanceled):
            next(stream)


def test_copy_in_text_and_csv(dsn: str, table: psycopg.Connection) -> None:
    begin = now(table)
    table.execute("update t set b = null")
    end = now(table)
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        subscribe = f"SUBSCRIBE t WITH (PROGRESS) AS OF {begin} UP TO {end + 1}"
        with cursor.copy(f"COPY ({subscribe}) TO STDOUT".encode()) as copy:
            text = b"".join(copy).decode().splitlines()
        with cursor.copy(f"COPY ({subscribe}) TO STDOUT (FORMAT csv, HEADER)".encode()) as copy:
            csv = b"".join(copy).decode().splitlines()
    assert text == [
        f"{begin}\tf\t1\t1\tx",
        f"{begin + 1}\tt\t\\N\t\\N\t\\N",
        f"{end}\tf\t-1\t1\tx",
        f"{end}\tf\t1\t1\t\\N",
        f"{end + 1}\tt\t\\N\t\\N\t\\N",
    ]
    assert csv[:2] == [
        "meridian_ts,meridian_progressed,meridian_diff,a,b",
        f"{begin},f,1,1,x",
    ]


def test_copy_goes_on_until_it_is_cancelled(dsn: str, table: psycopg.Connection) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        with (  # noqa: PT012 - it ends in the middle
            pytest.raises(psycopg.errors.QueryCanceled),
            connection.cursor().copy("COPY (SUBSCRIBE t) TO STDOUT") as copy,
        ):
            rows = iter(copy)
            assert bytes(next(rows)).split(b"\t")[1:] == [b"1", b"1", b"x\n"]
            table.execute("delete from t")
            assert bytes(next(rows)).split(b"\t")[1:] == [b"-1", b"1", b"x\n"]
            cancel(table)
            next(rows)
        assert connection.execute("select 1").fetchone() == (1,)


def test_history_that_is_gone_is_refused() -> None:
    short = CoreSettings(history_us=100_000, cut_age_us=20_000)
    with serving(core=short) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t (a int)")
        begin = now(connection)

        def is_gone() -> bool:
            connection.execute("insert into t values (1)")
            found = connection.execute("select since from meridian.frontiers").fetchone()
            return found is not None and found[0] > begin

        until(is_gone)
        resume = f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {begin}"
        with pytest.raises(psycopg.DatabaseError) as refused:
            connection.execute(resume.encode())
        assert refused.value.sqlstate == "72000"


def test_who_does_not_read_is_ended_and_told_where_to_resume() -> None:
    late = CoreSettings(subscription_lag_us=500_000, subscribe_progress_us=50_000)
    with (
        serving(core=late) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        closing(psycopg.connect(dsn, autocommit=True)) as slow,
    ):
        connection.execute("create table t (a int, b text)")
        stream = slow.cursor().stream("SUBSCRIBE t WITH (PROGRESS)")
        begin, is_progress, *_ = next(stream)
        assert is_progress
        # More than all buffers on the way hold, in rows that no step may leave out.
        for _ in range(30):
            connection.execute(
                "insert into t select g, repeat('x', 1000) from generate_series(1, 2000) g"
            )
        until(lambda: subscriptions(connection) == 0)
        position = begin
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as ended:  # noqa: PT012
            for row in stream:
                # On a busy machine it may be ended before the second one is sent.
                position = row[0] if row[1] else position
        assert "too far behind" in str(ended.value)
        assert position >= begin
        resume = f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {position}"
        with slow.cursor() as again:
            assert next(again.stream(resume.encode()))[0] > position


def test_a_server_that_stops_ends_it_at_once() -> None:
    async def stopped() -> str | None:
        async with running() as stack:
            connection = await psycopg.AsyncConnection.connect(stack.dsn, autocommit=True)
            await connection.execute("create table t (a int)")
            await connection.execute("insert into t values (1)")
            stream = connection.cursor().stream("SUBSCRIBE t")
            assert (await anext(stream))[1:] == (1, 1)
            stopping = stack.group.create_task(stack.server.stop())
            try:
                await anext(stream)
            except psycopg.Error as error:
                return error.sqlstate
            finally:
                await stopping
                await connection.close()
        return None

    assert asyncio.run(asyncio.wait_for(stopped(), 20)) == "57P01"
