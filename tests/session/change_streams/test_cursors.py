"""Cursors of subscriptions: how long a FETCH waits, what it gives, what a block holds."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from tests.session.change_streams.followers import now, subscriptions, until
from tests.support.stack import serving


@pytest.fixture
def table(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists t")
        connection.execute("create table t (a int, b text)")
        connection.execute("insert into t select g, 'x' from generate_series(1, 5) g")
        yield connection


@pytest.fixture
def block(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn) as connection:
        yield connection


def fetched(block: psycopg.Connection, fetch: str) -> list[tuple[object, ...]]:
    """Without timestamps."""
    return [row[1:] for row in block.execute(fetch.encode()).fetchall()]


def holds(connection: psycopg.Connection, kind: str) -> int:
    found = connection.execute(
        "select count(*) from meridian.read_holds where kind = %s", (kind,)
    ).fetchone()
    assert found is not None
    return int(found[0])


def test_fetch_gives_what_is_there(block: psycopg.Connection, table: psycopg.Connection) -> None:
    assert block.execute("DECLARE c CURSOR FOR SUBSCRIBE t").statusmessage == "DECLARE CURSOR"
    assert fetched(block, "FETCH 2 c") == [(1, 1, "x"), (1, 2, "x")]
    assert fetched(block, "FETCH c") == [(1, 3, "x")]
    assert block.execute("MOVE 1 FROM c").statusmessage == "MOVE 1"
    assert fetched(block, "FETCH ALL FROM c") == [(1, 5, "x")]
    assert fetched(block, "FETCH ALL c WITH (timeout = '0 s')") == []
    table.execute("insert into t values (6, 'y')")
    table.execute("insert into t values (7, 'y')")
    assert fetched(block, "FETCH ALL c") == [(1, 6, "y"), (1, 7, "y")]


def test_fetch_waits_for_one_row(block: psycopg.Connection, table: psycopg.Connection) -> None:
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
    rows: list[tuple[object, ...]] = []
    thread = threading.Thread(target=lambda: rows.extend(fetched(block, "FETCH ALL c")))
    thread.start()
    waits = "select pid from pg_stat_activity where wait_event = 'SubscribedChanges'"
    until(lambda: table.execute(waits).fetchone())
    assert rows == []
    table.execute("insert into t values (6, 'y')")
    thread.join(30)
    assert rows == [(1, 6, "y")]


def test_fetch_with_a_time_waits_for_all_it_asks_for(
    block: psycopg.Connection, table: psycopg.Connection
) -> None:
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
    rows: list[tuple[object, ...]] = []
    fetch = "FETCH 2 c WITH (timeout = '1 min')"
    thread = threading.Thread(target=lambda: rows.extend(fetched(block, fetch)))
    thread.start()
    table.execute("insert into t values (6, 'y')")
    table.execute("insert into t values (7, 'y')")
    thread.join(30)
    assert rows == [(1, 6, "y"), (1, 7, "y")]
    # Nothing comes: the time is over, and the cursor is what it was.
    assert fetched(block, "FETCH 2 c WITH (timeout = '10 ms')") == []
    table.execute("insert into t values (8, 'y')")
    assert fetched(block, "FETCH 2 c WITH (timeout 0)") == [(1, 8, "y")]


def test_writers_who_never_stop_do_not_make_a_fetch_longer(
    block: psycopg.Connection, table: psycopg.Connection
) -> None:
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            table.execute("insert into t values (6, 'y')")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for fetch in ("FETCH ALL c", "FETCH ALL c WITH (timeout = '50 ms')"):
            assert set(fetched(block, fetch)) == {(1, 6, "y")}
    finally:
        over.set()
        thread.join(30)


def test_a_block_holds_the_positions_of_its_cursors_alone(
    block: psycopg.Connection, table: psycopg.Connection
) -> None:
    until(lambda: subscriptions(table) == 0)
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
    block.execute("DECLARE d CURSOR FOR SUBSCRIBE (SELECT a FROM t)")
    # Who looks has one.
    assert (holds(table, "subscription"), holds(table, "transaction")) == (2, 1)

    def position() -> int:
        found = table.execute("select min(ts) from meridian.read_holds").fetchone()
        assert found is not None
        return int(found[0])

    before = position()
    for value in range(3):
        table.execute("insert into t values (%s, 'y')", (value,))
        assert fetched(block, "FETCH ALL c WITH (timeout = 0)")[-1] == (1, value, "y")
        assert fetched(block, "FETCH ALL d WITH (timeout = 0)")[-1] == (1, value)
    assert position() > before, "the third hour of a block with FETCHes holds no first one"
    block.execute("select * from t")
    assert holds(table, "transaction") == 2, "it has read"
    block.rollback()
    until(lambda: holds(table, "subscription") == 0)


def test_time_outs_end_blocks_that_have_read(
    dsn: str, block: psycopg.Connection, table: psycopg.Connection
) -> None:
    block.execute("set idle_in_transaction_session_timeout = '100 ms'")
    block.execute("set transaction_timeout = '100 ms'")
    block.commit()
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
    threading.Event().wait(0.3)
    assert len(fetched(block, "FETCH ALL c WITH (timeout = '200 ms')")) == 5
    block.execute("select 1 from t")
    until(lambda: subscriptions(table) == 0)
    with pytest.raises((psycopg.OperationalError, psycopg.errors.TransactionTimeout)):
        block.execute("FETCH ALL c")


def test_an_end_comes_behind_the_rows_before_it(
    block: psycopg.Connection, table: psycopg.Connection
) -> None:
    block.execute("DECLARE c CURSOR FOR SUBSCRIBE t WITH (SNAPSHOT = false)")
    table.execute("insert into t values (6, 'y')")
    table.execute("drop table t")
    assert fetched(block, "FETCH ALL c") == [(1, 6, "y")]
    with pytest.raises(psycopg.errors.UndefinedTable, match="was dropped at"):
        block.execute("FETCH ALL c")
    block.rollback()
    table.execute("create table t (a int)")
    block.execute(f"DECLARE c CURSOR FOR SUBSCRIBE t UP TO {now(table) + 100_000}".encode())
    table.execute("insert into t values (1)")
    while rows := fetched(block, "FETCH ALL c"):
        assert rows == [(1, 1)]
    assert block.execute("FETCH ALL c").statusmessage == "FETCH 0"


def test_one_that_nobody_fetches_from_is_ended_and_holds_nothing() -> None:
    late = CoreSettings(subscription_lag_us=300_000, subscribe_progress_us=50_000)
    with (
        serving(core=late) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        psycopg.connect(dsn) as block,
    ):
        connection.execute("create table t (a int)")
        connection.execute("insert into t values (1), (2)")
        block.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
        block.execute("DECLARE d CURSOR FOR SUBSCRIBE t")
        assert fetched(block, "FETCH 1 c") == [(1, 1)]

        def are_gone() -> bool:
            connection.execute("insert into t values (3)")
            return subscriptions(connection) == 0

        until(are_gone)
        # The statement that runs meanwhile is another one.
        assert block.execute("select 1").fetchone() == (1,)
        assert holds(connection, "subscription") == 0
        assert fetched(block, "FETCH 1 c") == [(1, 2)]
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as ended:
            block.execute("FETCH ALL c")
        assert "Resume with SNAPSHOT = false AS OF " in str(ended.value.diag.message_hint)


@pytest.mark.parametrize(
    ("statement", "sqlstate", "position"),
    [
        ("DECLARE c SCROLL CURSOR FOR SUBSCRIBE t", "0A000", 11),
        ("DECLARE c BINARY CURSOR FOR TAIL t", "0A000", 11),
        ("DECLARE c CURSOR WITH HOLD FOR SUBSCRIBE t", "0A000", 23),
        ("DECLARE c SCROLL NO SCROLL CURSOR FOR SUBSCRIBE t", "0A000", 11),
        ("DECLARE c CURSOR FOR SUBSCRIBE", "42601", 31),
        ("DECLARE c NO CURSOR FOR SUBSCRIBE t", "42601", 14),
        ("DECLARE c CURSOR FOR SUBSCRIBE nope", "42P01", 32),
        ("DECLARE c CURSOR FOR SUBSCRIBE t WITH (nope)", "42601", 40),
        ("FETCH 1 c WITH (nope = 1)", "42601", 17),
        ("FETCH 1 c WITH (timeout = 'é')", "22007", 17),
        ("FETCH 1 c WITH (timeout = '-1 s')", "22023", 17),
        ("FETCH 1 c WITH (timeout)", "42601", 17),
        ("FETCH 1 c WITH (timeout = 1, timeout = 2)", "42601", 30),
        ("FETCH 1 c WITH (timeout = 1) x", "42601", 30),
        ("FETCH 1 2 WITH (timeout = 1)", "42601", 9),
        ("FETCH 1 nope WITH (timeout = 1)", "34000", None),
    ],
)
def test_wrong_cursors(
    table: psycopg.Connection,
    block: psycopg.Connection,
    statement: str,
    sqlstate: str,
    position: int | None,
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        block.execute(statement.encode())
    assert refused.value.sqlstate == sqlstate
    found = refused.value.diag.statement_position
    assert (None if found is None else int(found)) == position


def test_what_a_cursor_cannot_do(block: psycopg.Connection, table: psycopg.Connection) -> None:
    for fetch in ("FETCH PRIOR c", "FETCH LAST c", "FETCH RELATIVE 1 c", "FETCH ABSOLUTE 1 c"):
        block.execute("DECLARE c CURSOR FOR SUBSCRIBE t")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="only scan forward"):
            block.execute(fetch.encode())
        block.rollback()
    block.execute("DECLARE c CURSOR FOR SELECT 1")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="FETCH with a timeout"):
        block.execute("FETCH 1 c WITH (timeout = 1)")
    block.rollback()
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        table.execute("DECLARE c CURSOR FOR SUBSCRIBE t")


def test_a_read_hold_is_advanced(table: psycopg.Connection) -> None:
    begin = now(table)
    table.execute("create read hold h")
    later = now(table)

    def held() -> int:
        found = table.execute("select ts from meridian.read_holds where name = 'h'").fetchone()
        assert found is not None
        return int(found[0])

    assert begin <= held() <= later
    assert table.execute(f"ADVANCE READ HOLD h TO {later}".encode()).statusmessage == (
        "ADVANCE READ HOLD"
    )
    assert held() == later
    for to, sqlstate in (
        (later - 1, "22023"), ("null", "22023"), ("nope", "42703"), ("'a'", "22007"),
    ):  # fmt: skip
        with pytest.raises(psycopg.Error) as refused:
            table.execute(f"ADVANCE READ HOLD h TO {to}".encode())
        assert refused.value.sqlstate == sqlstate
    with pytest.raises(psycopg.errors.UndefinedObject) as missing:
        table.execute("ADVANCE READ HOLD nope TO 1")
    assert missing.value.diag.statement_position == "19"
    with table.transaction(force_rollback=True):
        table.execute("ADVANCE READ HOLD h TO now()")
    assert held() == later
    table.execute("drop read hold h")
