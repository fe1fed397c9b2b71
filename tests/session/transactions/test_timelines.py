"""Timelines as a session sees them: one at a time, each with its own time, kept over restarts."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg
import pytest

from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.transactions.test_isolation import UnansweringStash, value
from tests.support.connections import connected, on_a_loop
from tests.support.stack import running

Ask = Callable[[LiteralString], Sequence[tuple[Any, ...]]]


def in_server(
    *stories: Callable[[Ask], None],
    stash: MemoryStash | None = None,
    store: MemoryObjectStore | None = None,
) -> None:
    """Each story against a server of its own on the same stash and store, one after the other."""
    stash, store = stash or MemoryStash(), store or MemoryObjectStore()

    async def tell(story: Callable[[Ask], None]) -> None:
        async with running(stash=stash, store=store) as stack:
            await asyncio.to_thread(_connected, stack.dsn, story)

    for story in stories:
        asyncio.run(tell(story))


def _connected(dsn: str, story: Callable[[Ask], None]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:

        def ask(text: LiteralString) -> Sequence[tuple[Any, ...]]:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

        story(ask)


def refused(ask: Ask, text: LiteralString, sqlstate: str, message: str = ".") -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        ask(text)
    assert caught.value.sqlstate == sqlstate


def made(ask: Ask) -> None:
    ask("CREATE TIMELINE line MANUAL")
    ask("CREATE TIMELINE wall CLOCK system")
    ask("CREATE TABLE e (a int) IN TIMELINE line")
    ask("CREATE TABLE w (a int) IN TIMELINE wall")
    ask("CREATE TABLE s (a int)")
    for number in ("1", "2", "3"):
        ask(f"INSERT INTO e VALUES ({number})")  # type: ignore[arg-type]
    ask("INSERT INTO w VALUES (7)")
    ask("INSERT INTO s VALUES (9)")


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_own_writes_show_after_a_statement_that_could_not_go_to_a_newer_time(
    level: LiteralString,
) -> None:
    """The transaction has moved in the core, and its client has not heard of it."""
    stash = UnansweringStash()

    def story(ask: Ask) -> None:
        made(ask)
        dsn = _dsn(ask)
        ask("CREATE TABLE f (a int) IN TIMELINE line")
        ask(f"BEGIN ISOLATION LEVEL {level}")
        assert len(ask("SELECT a FROM e")) == 3
        ask("UPDATE e SET a = 100 WHERE a = 1")
        ask("SAVEPOINT s")
        ask("SELECT pg_advisory_xact_lock(1)")
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("INSERT INTO f VALUES (1)")
        stash.answers = 1  # for the catalog, and not for the timeline
        refused(ask, "SELECT a FROM e", "58030")
        stash.answers = None
        ask("ROLLBACK TO s")
        assert sorted(ask("SELECT a FROM e")) == [(2,), (3,), (100,)]
        ask("COMMIT")
        assert sorted(ask("SELECT a FROM e")) == [(2,), (3,), (100,)]

    in_server(story, stash=stash)


def _dsn(ask: Ask) -> str:
    """Of the server that is asked."""
    [(port, user, database)] = ask("SELECT inet_server_port(), current_user, current_database()")
    return f"host=127.0.0.1 port={port} user={user} dbname={database}"


def position(ask: Ask) -> int:
    [(read_ts,)] = ask("SELECT read_ts FROM meridian.timelines WHERE name = 'line'")
    return int(read_ts)


def test_a_manual_timeline_moves_by_writes_and_advance() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        assert position(ask) == 3
        ask("ADVANCE TIMELINE line TO 100")
        assert position(ask) == 100
        ask("UPDATE e SET a = a + 10 WHERE a = 1")
        assert position(ask) == 101
        refused(ask, "ADVANCE TIMELINE line TO 101", "55000", "is past 101")
        refused(ask, "ADVANCE TIMELINE wall TO 5", "55000", "follows a clock")
        assert ask("SELECT a FROM e AS OF 2") == [(1,), (2,)]
        assert sorted(ask("SELECT a FROM e AS OF 100")) == [(1,), (2,), (3,)]
        assert sorted(ask("SELECT a FROM e AS OF 101")) == [(2,), (3,), (11,)]
        refused(ask, "SELECT a FROM e AS OF 102", "22023", "too far")
        refused(ask, "SELECT a FROM e AS OF (SELECT min(a) FROM e)", "0A000", "a subquery in AS OF")
        found = "(SELECT ts FROM meridian.read_holds LIMIT 1)"
        refused(ask, f"SELECT a FROM e AS OF {found}", "0A000", "a subquery in AS OF")

    in_server(story)


def test_what_mixes_timelines_is_refused() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        refused(ask, "SELECT * FROM e JOIN s USING (a)", "25000", "two timelines")
        refused(ask, "INSERT INTO s SELECT a FROM e", "25000", "two timelines")
        refused(ask, "SELECT * FROM e, w", "25000")
        for first, second in (
            ("INSERT INTO s VALUES (1)", "INSERT INTO e VALUES (1)"),
            ("SELECT * FROM e", "SELECT * FROM s"),
            ("SELECT * FROM e", "CREATE TABLE x (a int)"),
            ("CREATE TABLE x (a int)", "SELECT * FROM w"),
        ):
            ask("BEGIN")
            ask(first)
            refused(ask, second, "25000", "two timelines")
            ask("ROLLBACK")
        # Constants and the server's own relations join any of them.
        assert ask("SELECT count(*) FROM e, meridian.timelines t WHERE t.name = 'line'") == [(3,)]

    in_server(story)


def test_a_transaction_in_another_timeline_is_whole() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        ask("BEGIN")
        ask("INSERT INTO e VALUES (4)")
        ask("SAVEPOINT here")
        ask("DELETE FROM e")
        assert ask("SELECT * FROM e") == []
        ask("ROLLBACK TO here")
        assert len(ask("SELECT * FROM e")) == 4
        ask("COMMIT")
        ask("BEGIN")
        ask("INSERT INTO e VALUES (5)")
        ask("ROLLBACK")
        assert sorted(ask("SELECT a FROM e")) == [(1,), (2,), (3,), (4,)]

    in_server(story)


def test_a_whole_transaction_in_the_past_of_another_timeline() -> None:
    """BEGIN AS OF counts in the timeline of the first table that is read."""

    def story(ask: Ask) -> None:
        made(ask)
        ask("BEGIN AS OF 2")
        assert ask("SELECT 1") == [(1,)]
        assert sorted(ask("SELECT a FROM e")) == [(1,), (2,)]
        assert ask("SELECT meridian_now(), count(*) FROM e") == [(2, 2)]
        assert ask("SELECT count(*) FROM e AS OF 3") == [(3,)]
        refused(ask, "INSERT INTO e VALUES (4)", "25006")
        ask("ROLLBACK")
        ask("BEGIN ISOLATION LEVEL REPEATABLE READ AS OF AT LEAST 1")
        assert sorted(ask("SELECT a FROM e")) == [(1,), (2,), (3,)]
        ask("COMMIT")
        [(middle,)] = ask("SELECT meridian_now()")
        ask("INSERT INTO w VALUES (8)")
        ask("INSERT INTO s VALUES (10)")
        ask(f"BEGIN AS OF {middle}")  # type: ignore[arg-type]
        assert ask("SELECT a FROM w") == [(7,)]
        refused(ask, "SELECT a FROM s", "25000", "two timelines")
        ask("ROLLBACK")
        ask(f"BEGIN AS OF {middle}")  # type: ignore[arg-type]
        assert ask("SELECT a FROM s") == [(9,)]
        refused(ask, "SELECT a FROM e", "25000", "two timelines")
        ask("ROLLBACK")

    in_server(story)


def test_a_past_that_no_timeline_has_is_refused_where_it_is_used() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        for query, sqlstate in (
            ("SELECT a FROM s", "72000"),
            ("SELECT a FROM w", "72000"),
            ("SELECT a FROM nowhere", "42P01"),
        ):
            ask("BEGIN AS OF 2")
            refused(ask, query, sqlstate)
            ask("ROLLBACK")
        ask("BEGIN AS OF 99")
        refused(ask, "SELECT a FROM e", "22023", "too far")
        ask("ROLLBACK")
        # A table that has been dropped since belongs to `system`, which knows its past.
        ask("CREATE TABLE gone (a int)")
        ask("INSERT INTO gone VALUES (5)")
        [(middle,)] = ask("SELECT meridian_now()")
        ask("DROP TABLE gone")
        ask(f"BEGIN AS OF {middle}")  # type: ignore[arg-type]
        assert ask("SELECT a FROM gone") == [(5,)]
        ask("COMMIT")

    in_server(story)


@on_a_loop
async def test_a_described_statement_is_of_the_chosen_timeline() -> None:
    async with running() as stack, connected(stack, 1) as (connection,):
        await connection.execute("CREATE TIMELINE line MANUAL")
        await connection.execute("CREATE TABLE e (a int) IN TIMELINE line")
        for number in (1, 2, 3):
            await connection.execute("INSERT INTO e VALUES (%s)", (number,))
        await connection.execute("BEGIN AS OF 2")
        rows = await connection.execute("SELECT a FROM e WHERE a > %s", (1,), prepare=True)
        assert await rows.fetchall() == [(2,)]
        await connection.execute("DECLARE c CURSOR FOR SELECT a FROM e ORDER BY a")
        assert await (await connection.execute("FETCH ALL c")).fetchall() == [(1,), (2,)]
        await connection.execute("COMMIT")


def test_timelines_are_kept_over_restarts() -> None:
    def after(ask: Ask) -> None:
        assert position(ask) == 4  # flushing and starting again moves nothing
        assert sorted(ask("SELECT a FROM e")) == [(2,), (3,), (11,)]
        assert sorted(ask("SELECT a FROM e AS OF 3")) == [(1,), (2,), (3,)]
        assert ask("SELECT a FROM w") == [(7,)]
        assert ask("SELECT a FROM s") == [(9,)]
        ask("INSERT INTO e VALUES (5)")
        assert position(ask) == 5

    def before(ask: Ask) -> None:
        made(ask)
        ask("UPDATE e SET a = a + 10 WHERE a = 1")

    def later(ask: Ask) -> None:
        assert position(ask) == 5
        assert len(ask("SELECT a FROM e")) == 4

    in_server(before, after, later)


def test_a_timeline_that_is_made_again_begins_afresh() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()

    def dropped(ask: Ask) -> None:
        made(ask)
        ask("ADVANCE TIMELINE line TO 100")
        ask("OPTIMIZE e")
        ask("DROP TABLE e")
        ask("DROP TIMELINE line")

    def again(ask: Ask) -> None:
        ask("CREATE TIMELINE line MANUAL")
        assert position(ask) == 0
        ask("CREATE TABLE e (a int) IN TIMELINE line")
        ask("INSERT INTO e VALUES (1)")
        assert position(ask) == 1
        ask("DROP TABLE e")
        ask("DROP TIMELINE line")
        ask("CREATE TIMELINE line CLOCK system")
        ask("CREATE TABLE e (a int) IN TIMELINE line")
        ask("INSERT INTO e VALUES (2)")

    def kept(ask: Ask) -> None:
        assert ask("SELECT a FROM e") == [(2,)]
        ask("DROP TABLE e")
        ask("DROP TIMELINE line")

    in_server(dropped, again, kept, lambda _ask: None, stash=stash, store=store)
    left = {name for name, rows in stash._collections.items() if rows and "line" in name}
    assert left == set()
    of_tables = {name.split("/")[0] for name in asyncio.run(store.list(""))}
    assert len(of_tables) == 2, "those of w and s"


def test_who_reads_in_a_timeline_that_is_dropped_reads_on() -> None:
    @on_a_loop
    async def story() -> None:
        async with running() as stack, connected(stack, 2) as (reader, other):
            await other.execute("CREATE TIMELINE line MANUAL")
            await other.execute("CREATE TABLE e (a int) IN TIMELINE line")
            await other.execute("INSERT INTO e VALUES (1)")
            await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            assert await value(reader, "SELECT a FROM e") == 1
            await other.execute("DROP TABLE e")
            await other.execute("DROP TIMELINE line")
            await other.execute("CREATE TIMELINE line MANUAL")
            assert await value(reader, "SELECT a FROM e") == 1
            await reader.execute("COMMIT")

    story()


def test_a_timeline_is_dropped_when_nothing_needs_it() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        refused(ask, "DROP TIMELINE line", "2BP01")
        refused(ask, "DROP TIMELINE system", "2BP01")
        refused(ask, "CREATE TIMELINE line", "42710")
        ask("DROP TABLE e")
        ask("DROP TIMELINE line")
        refused(ask, "DROP TIMELINE line", "42704")
        refused(ask, "CREATE TABLE x (a int) IN TIMELINE line", "42704")

    in_server(story)


def test_a_named_read_hold_keeps_history() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        ask("ALTER TABLE e SET (history = '1 microsecond')")
        ask("CREATE READ HOLD past AT 3 IN TIMELINE line")
        for _ in range(3):
            ask("INSERT INTO e VALUES (0)")
        assert len(ask("SELECT a FROM e AS OF 3")) == 3

    in_server(story)


def test_an_advance_beyond_what_a_log_can_say_is_refused() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        for to in (1 << 53, (1 << 63) - 1):
            refused(ask, f"ADVANCE TIMELINE line TO {to}", "22023", "too far")  # type: ignore[arg-type]
        last = (1 << 53) - 1
        ask(f"ADVANCE TIMELINE line TO {last}")  # type: ignore[arg-type]
        ask("INSERT INTO e VALUES (4)")
        assert position(ask) == last + 1
        assert len(ask(f"SELECT a FROM e AS OF {last}")) == 3  # type: ignore[arg-type]

    in_server(story)


def test_now_is_of_the_timeline_that_a_statement_reads_in() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        assert ask("SELECT meridian_now(), count(*) FROM e") == [(3, 3)]
        assert ask("SELECT meridian_now(), count(*) FROM e AS OF 2") == [(2, 2)]
        ask("BEGIN")
        assert ask("SELECT meridian_now() FROM e WHERE a = 1") == [(3,)]
        ask("INSERT INTO e VALUES (meridian_now()::int + 10)")
        ask("COMMIT")
        assert sorted(ask("SELECT a FROM e")) == [(1,), (2,), (3,), (13,)]

    in_server(story)


@on_a_loop
async def test_a_snapshot_of_another_timeline_is_exported() -> None:
    async with running() as stack, connected(stack, 3) as (first, second, writer):
        await writer.execute("create timeline line manual")
        await writer.execute("create table e (a int) in timeline line")
        await writer.execute("insert into e values (1)")
        await first.execute("begin isolation level repeatable read")
        early = await value(first, "select pg_export_snapshot()")
        assert await value(first, "select count(*) from e") == 1
        name = await value(first, "select pg_export_snapshot()")
        await writer.execute("insert into e values (2)")
        await second.execute("begin isolation level repeatable read")
        await second.execute(f"set transaction snapshot '{name}'")
        assert await value(second, "select count(*) from e") == 1
        await second.execute("commit")
        # One of `system` says nothing about rows of another timeline (L1).
        await second.execute("begin isolation level repeatable read")
        await second.execute(f"set transaction snapshot '{early}'")
        with pytest.raises(psycopg.Error) as caught:
            await second.execute("select count(*) from e")
        assert caught.value.sqlstate == "25000"
        await second.execute("rollback")
        await first.execute("commit")


def test_a_block_changes_definitions_of_tables_elsewhere() -> None:
    def story(ask: Ask) -> None:
        made(ask)
        for text in ("ALTER TABLE e ADD COLUMN b int", "CREATE INDEX i ON w (a)", "DROP TABLE w"):
            ask("BEGIN")
            ask(text)  # type: ignore[arg-type]
            ask("COMMIT")
        assert ask("SELECT * FROM e ORDER BY a") == [(1, None), (2, None), (3, None)]

    in_server(story)
