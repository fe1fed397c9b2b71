"""DDL as clients see it who do not wait for each other: swaps under writers, the past, plans."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.stack import serving

WRITERS = 4
ROWS_EACH = 30
SWAPS = 8


def _connect(dsn: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(dsn, autocommit=True)


def _value(connection: "psycopg.Connection[tuple[object, ...]]", query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_swaps_lose_no_row_of_those_who_write_meanwhile() -> None:
    with serving() as dsn:
        with _connect(dsn) as setup:
            setup.execute("create table t (writer int, number int)")
        swapped = threading.Event()

        def write(writer: int) -> None:
            with _connect(dsn) as connection:
                for number in range(ROWS_EACH):
                    # Alone, it is bound again as often as the table is another one.
                    connection.execute("insert into t values (%s, %s)", (writer, number))

        def swap() -> int:
            done = 0
            with _connect(dsn) as connection:
                while done < SWAPS:
                    try:
                        with connection.transaction():
                            connection.execute("create table fresh (writer int, number int)")
                            connection.execute("insert into fresh select writer, number from t")
                            connection.execute("alter table t rename to old")
                            connection.execute("alter table fresh rename to t")
                            connection.execute("drop table old")
                        done += 1
                    except psycopg.errors.SerializationFailure:
                        pass
            swapped.set()
            return done

        with ThreadPoolExecutor(WRITERS + 1) as threads:
            swaps = threads.submit(swap)
            for future in [threads.submit(write, writer) for writer in range(WRITERS)]:
                future.result()
            assert swaps.result() == SWAPS
        with _connect(dsn) as reader:
            rows = reader.execute("select writer, number from t").fetchall()
            wanted = {(w, n) for w in range(WRITERS) for n in range(ROWS_EACH)}
            assert len(rows) == len(wanted)
            assert set(rows) == wanted
            names = reader.execute("select table_name from meridian.frontiers").fetchall()
            assert names == [("t",)]


def test_the_past_has_the_names_and_columns_of_its_time() -> None:
    with serving() as dsn, _connect(dsn) as connection:
        connection.execute("create table t (a int)")
        connection.execute("insert into t values (1)")
        before = _value(connection, "select read_ts from meridian.timelines")
        with connection.transaction():
            connection.execute("create schema s")
            connection.execute("alter table t set schema s")
            connection.execute("alter table s.t rename to u")
            connection.execute("create table t (b text)")
            connection.execute("insert into t values ('new')")
        connection.execute("insert into s.u values (2)")
        assert connection.execute("select * from t").fetchall() == [("new",)]
        assert connection.execute(f"select a from t as of {before}".encode()).fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute(f"select * from s.u as of {before}".encode())
        connection.execute("drop table s.u")
        connection.execute("drop schema s")
        middle = f"select a from t as of at least {before}"
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(middle.encode())


def test_what_is_prepared_is_described_as_it_was_then() -> None:
    with serving() as dsn, _connect(dsn) as connection:
        connection.execute("create table t (a int)")
        connection.execute("create view v as select a from t")
        connection.execute("insert into t values (1)")
        then = _value(connection, "select read_ts from meridian.timelines")
        connection.execute("drop view v")
        connection.execute("alter table t rename to old")
        connection.execute("create table t (b text, c text)")
        for name in ("t", "v"):
            past = f"select * from {name} as of {then}"
            assert connection.execute(past.encode(), prepare=True).fetchall() == [(1,)]
        connection.execute(f"prepare p as select a from v as of {then}".encode())
        assert connection.execute("execute p").fetchall() == [(1,)]
        # Only the values of parameters tell when this is: it is described as it would be now.
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from v as of %s", (then,), prepare=True)
        with pytest.raises(psycopg.Error) as failure:
            connection.execute("select * from t as of 5", prepare=True)
        assert failure.value.sqlstate == "72000"


@pytest.mark.parametrize(
    "statement",
    [
        "create table if not exists t (a int)",
        "create schema if not exists s",
        "create timeline if not exists line manual",
        "drop table if exists gone",
        "drop read hold if exists gone",
        "alter table if exists gone rename to kept",
    ],
)
def test_many_at_once_agree_on_what_is_there(statement: str) -> None:
    with serving() as dsn:
        with _connect(dsn) as setup:
            setup.execute("create table gone (a int)")
            setup.execute("create read hold gone")

        def run(_client: int) -> str | None:
            with _connect(dsn) as connection:
                return connection.execute(statement.encode()).statusmessage

        with ThreadPoolExecutor(8) as threads:
            tags = set(threads.map(run, range(8)))
        assert len(tags) == 1
        with _connect(dsn) as reader:
            names = "select table_name from meridian.frontiers order by 1"
            found = [name for (name,) in reader.execute(names).fetchall()]
            assert len(found) == len(set(found))
            with pytest.raises(psycopg.Error) if "not exists" in statement else nullcontext():
                reader.execute(statement.replace("if not exists ", "").encode())


def test_definitions_survive_a_new_start() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, _connect(dsn) as connection:
        connection.execute("create timeline line manual")
        connection.execute("create table l (a int) in timeline line")
        connection.execute("insert into l values (1)")
        connection.execute("advance timeline line to 50")
        connection.execute("create read hold h at 20 in timeline line")
        connection.execute("create schema s")
        connection.execute("create table t (a int) with (history = '2 hours')")
        connection.execute("insert into t values (1)")
        connection.execute("alter table t rename to u")
        connection.execute("alter table u set schema s")
        connection.execute("alter schema s rename to q")
    with serving(stash=stash, store=store) as dsn, _connect(dsn) as connection:
        assert connection.execute("select a from q.u").fetchall() == [(1,)]
        assert connection.execute("select a from l as of 30").fetchall() == [(1,)]
        named = "select name, timeline, ts from meridian.read_holds where kind = 'named'"
        assert connection.execute(named).fetchall() == [("h", "line", 20)]
        lines = "select name, clock from meridian.timelines order by name"
        assert connection.execute(lines).fetchall() == [("line", "manual"), ("system", "system")]
        connection.execute("insert into l values (2)")
        stands = "select read_ts from meridian.timelines where name = 'line'"
        assert _value(connection, stands) == 51
