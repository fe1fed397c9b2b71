"""real_time_recency: what had been committed upstream before the query came is in its answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from coordinator.transaction.transaction import SessionTransaction
from sql.catalog.catalog import Table
from tests.ingest.sources.asking import refusal, refused, rows
from tests.ingest.upstream_database import UpstreamDatabase
from tests.session.change_streams.followers import until


@pytest.fixture
def recent(connected: psycopg.Connection, database: UpstreamDatabase) -> psycopg.Connection:
    """A table `t` that is fed, and a session that asks for the newest."""
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    connected.execute("create source s from postgres connection c (publication 'p')")
    connected.execute("create table t from source s (reference 'public.t')")
    connected.execute("set real_time_recency = on")
    return connected


def test_every_commit_upstream_is_seen_by_the_next_query(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    for n in range(1, 15):
        database.execute(f"INSERT INTO t VALUES ({n})")
        assert rows(recent, f"select count(*), max(a) from t where a <= {n}") == [(n, n)]
        # Also by the short ways, of a prepared statement, a template and a block.
        found = recent.execute("select a from t where a = %s", (n,), prepare=True).fetchall()
        assert found == [(n,)]


def test_an_idle_upstream_is_waited_for_no_longer_than_it_takes_to_say_so(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """Positions alone never meet where nothing is written."""
    database.execute("SELECT pg_switch_wal()")
    for _ in range(3):
        assert rows(recent, "select count(*) from t") == [(0,)]
    database.execute("CREATE TABLE other (a int)", "INSERT INTO other VALUES (1)")
    assert rows(recent, "select count(*) from t") == [(0,)]


def test_views_joins_and_writes_wait_too(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    recent.execute("create view v as select a from t")
    recent.execute(
        "create materialized view m with (refresh = 'on commit') as select count(*) as n from t"
    )
    recent.execute("create table own (a int)")
    statements = (
        ("insert into own select max(a) from t", "select max(a) from own"),
        ("create table made as select max(a) as a from v", "select a from made"),
        ("update own set a = (select max(a) from t)", "select max(a) from own"),
    )
    for n, (statement, query) in enumerate(statements, 1):
        database.execute(f"INSERT INTO t VALUES ({n})")
        recent.execute(statement.encode())
        recent.execute("set real_time_recency = off")
        assert rows(recent, query) == [(n,)]
        recent.execute("set real_time_recency = on")
        database.execute(f"INSERT INTO t VALUES ({10 + n})")
        assert rows(recent, "select n from m") == [(2 * n,)]
        database.execute(f"DELETE FROM t WHERE a = {10 + n}", f"INSERT INTO t VALUES ({-n})")
        assert rows(recent, "select count(*) from v") == [(2 * n,)]
    with recent.cursor().copy("copy (select count(*) from t) to stdout") as copied:
        assert b"".join(bytes(block) for block in copied) == b"6\n"


def test_a_block_waits_at_its_first_snapshot(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    recent.execute("begin")
    database.execute("INSERT INTO t VALUES (1)")
    assert rows(recent, "select a from t") == [(1,)]
    database.execute("INSERT INTO t VALUES (2)")
    assert rows(recent, "select a from t") == [(1,)]
    recent.execute("commit")
    recent.execute("create table own (a int)")
    recent.execute("begin")
    assert rows(recent, "select count(*) from own") == [(0,)]
    assert refusal(recent, "select a from t") == (
        "55000",
        'the transaction has not waited for source "s"',
    )
    recent.execute("rollback")
    # The past does not wait, and neither does what reads no table of a source.
    assert rows(recent, "select count(*) from t as of now()")[0][0] in (0, 1, 2)
    recent.execute("begin as of now()")
    assert rows(recent, "select count(*) from t")[0][0] in (0, 1, 2)
    recent.execute("commit")


def test_a_source_that_stands_is_no_answer(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    recent.execute("create table own (a int)")
    assert rows(recent, "select count(*) from t") == [(0,)]
    recent.execute("alter source s pause")
    assert refusal(recent, "select * from t") == ("57014", 'source "s" is paused')
    assert rows(recent, "select count(*) from own") == [(0,)]
    recent.execute("set real_time_recency = off")
    assert rows(recent, "select count(*) from t") == [(0,)]
    recent.execute("set real_time_recency = on")
    recent.execute("alter source s resume")
    database.execute("INSERT INTO t VALUES (1)")
    assert rows(recent, "select a from t") == [(1,)]
    database.execute("DROP PUBLICATION p")
    error = refused(recent, "select a from t")
    assert error.sqlstate == "57014"
    assert 'source "s" is broken: publication "p" was dropped' in str(error.diag.message_primary)


def test_weaker_levels_do_not_have_it(recent: psycopg.Connection) -> None:
    recent.execute("set default_transaction_isolation = 'repeatable read'")
    assert refusal(recent, "select * from t")[0] == "0A000"
    recent.execute("set real_time_recency = off")
    recent.execute("select * from t")
    assert refusal(recent, "set real_time_recency = 'perhaps'")[0] == "22023"
    assert refusal(recent, "set real_time_recency_timeout = 0")[0] == "22023"


@contextmanager
def silent(client: psycopg.Connection, database: UpstreamDatabase) -> Iterator[None]:
    """Upstream answers queries, and sends nothing any more."""
    assert rows(client, "select count(*) from t") == [(0,)]
    senders = (
        "SELECT active_pid FROM pg_replication_slots"
        " WHERE database = current_database() AND active_pid IS NOT NULL"
    )
    # The one of the test before may still be on its way out.
    until(lambda: len(database.rows(senders)) == 1)
    ((sender,),) = database.rows(senders)
    os.kill(sender, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(sender, signal.SIGCONT)


def test_it_ends_with_its_time_and_names_positions(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    with silent(recent, database):
        recent.execute("set real_time_recency_timeout = '300ms'")
        error = refused(recent, "select a from t")
        assert (error.sqlstate, error.diag.message_primary) == (
            "57014",
            'source "s" has not come to what upstream has within 0.3 s',
        )
        detail = str(error.diag.message_detail)
        place = r"[0-9A-F]+/[0-9A-F]+"
        assert re.fullmatch(
            rf"Upstream's position is {place}, the source is at {place} and running\.", detail
        )
        recent.execute("set real_time_recency_timeout = '30s'")
    database.execute("INSERT INTO t VALUES (1)")
    assert rows(recent, "select a from t") == [(1,)]


def test_a_wait_can_be_seen_and_cancelled(
    recent: psycopg.Connection, database: UpstreamDatabase, fed_server: str
) -> None:
    with silent(recent, database), psycopg.connect(fed_server, autocommit=True) as other:
        waits = (
            "select pid from pg_stat_activity where wait_event = 'RealTimeRecency'"
            f" and pid = {recent.info.backend_pid}"
        )

        def cancel() -> None:
            until(lambda: rows(other, waits))
            recent.cancel_safe()

        with ThreadPoolExecutor(1) as threads:
            cancelling = threads.submit(cancel)
            error = refused(recent, "select a from t")
            cancelling.result()
        assert error.diag.message_primary == "canceling statement due to user request"


def test_explain_timestamp_tells_the_sources(
    recent: psycopg.Connection, database: UpstreamDatabase
) -> None:
    database.execute("INSERT INTO t VALUES (1)")
    recent.execute("create view v as select a from t")
    recent.execute("create materialized view m with (refresh = 'on commit') as select a from t")
    assert rows(recent, "select a from t") == [(1,)]
    for name in ("t", "v", "m"):
        lines = [line for (line,) in rows(recent, f"explain timestamp for select * from {name}")]
        at = lines.index("Sources:")
        assert re.fullmatch(r"  here\.s: running, at [0-9A-F]+/[0-9A-F]+", lines[at + 1])
    ((text,),) = rows(recent, "explain (format json) timestamp for select * from t")
    (told,) = json.loads(text)["sources"]
    assert (told["schema"], told["source"], told["state"]) == ("here", "s", "running")
    assert told["position"]["lsn"] > 0
    recent.execute("create table own (a int)")
    assert all("Sources" not in line for (line,) in rows(recent, "explain timestamp for table own"))


def test_who_begins_again_has_waited_before_its_lease(
    recent: psycopg.Connection,
    database: UpstreamDatabase,
    fed_server: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own lease would keep the source from what it waits for (L2 of `core/leases.py`)."""
    lease, leased = SessionTransaction.lease, list[Sequence[Table]]()

    async def and_upstream_goes_on(self: SessionTransaction, tables: tuple[Table, ...]) -> None:
        await lease(self, tables)
        leased.append(tables)
        await asyncio.to_thread(database.execute, "INSERT INTO t VALUES (2)")

    monkeypatch.setattr(SessionTransaction, "lease", and_upstream_goes_on)
    recent.execute("create table own (a int)")
    recent.execute("insert into own values (0)")
    recent.execute("set real_time_recency_timeout = '2s'")
    database.execute("INSERT INTO t VALUES (1)")
    slow = "update own set a = a + (select count(*) from t) + length(pg_advisory_lock(1)::text)"
    held = "select 1 from pg_locks where locktype = 'advisory' and not granted"
    with psycopg.connect(fed_server, autocommit=True) as other, ThreadPoolExecutor(1) as threads:
        other.execute("select pg_advisory_lock(1)")
        running = threads.submit(recent.execute, slow)
        until(lambda: rows(other, held))
        other.execute("update here.own set a = 10")
        other.execute("select pg_advisory_unlock(1)")
        running.result()
    assert [[table.name for table in tables] for tables in leased] == [["own", "t"]]
    assert rows(recent, "select a from own") in ([(11,)], [(12,)])
