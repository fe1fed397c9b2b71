"""The reader beside upstreams that wait, end connections, lose logs or are others (S1, S5)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ingest.postgres.publication import check_system, left_timeline
from ingest.postgres.reader import PostgresReader
from ingest.reader import ReaderFailure, ReadLimits, SourceProgress
from tests.ingest.postgres.reading import new_rows, read_all, read_until_failure, started
from tests.ingest.upstream_database import UpstreamDatabase, run
from tests.support.synchronous import commits_wait_for

T = ("CREATE TABLE t (id int PRIMARY KEY, v varchar(5), x int)", "CREATE PUBLICATION p FOR TABLE t")


# ---------------------------------------------------------------- synchronous upstream (S1)


def test_a_synchronous_upstream_waits_for_the_acknowledgement(database: UpstreamDatabase) -> None:
    """Also for commits that the publication has nothing of; asking for the newest never waits."""

    async def commit(text: str) -> threading.Thread:
        def statement() -> None:
            import psycopg

            with psycopg.connect(database.dsn, autocommit=True) as connection:
                connection.execute(text.encode())

        thread = threading.Thread(target=statement, daemon=True)
        thread.start()
        return thread

    async def scenario() -> None:
        reader, _, _ = await started(database)
        commits_wait_for(database.dsn, "feed")
        try:
            assert (await reader.inspect()).notices, "the person is told of the order"
            await read_all(reader)
            for text in ("INSERT INTO t (id) VALUES (1)", "INSERT INTO other VALUES (1)"):
                thread = await commit(text)
                while thread.is_alive():
                    batch = await reader.read(ReadLimits(wait_ms=1000))
                    changes = new_rows([batch])
                    if changes:
                        await read_all(reader)
                        assert thread.is_alive(), "COMMIT returned before the acknowledgement"
                    await reader.acknowledge(batch.upto)
                    await asyncio.to_thread(thread.join, 0.05)
        finally:
            commits_wait_for(database.dsn, "")
        await reader.release()

    database.execute(*T, "CREATE TABLE other (x int)")
    run(scenario())


def test_a_slot_that_cannot_be_made_in_time_leaves_nothing(database: UpstreamDatabase) -> None:
    """Upstream waits for a transaction that runs; beyond the time it is given up."""

    async def scenario() -> None:
        import psycopg

        with psycopg.connect(database.dsn) as holder:
            holder.execute("INSERT INTO t (id) VALUES (1)")
            reader = database.reader(slot_seconds=0.2)
            tables = list((await reader.inspect()).tables)
            with pytest.raises(ReaderFailure, match="waits for transactions") as failed:
                await reader.prepare(tables)
            assert (failed.value.code, failed.value.broken) == ("57014", False)
            assert database.slots() == []
        await reader.prepare(tables)
        assert len(database.slots()) == 1
        await reader.release()

    database.execute(*T)
    run(scenario())


def test_connections_that_upstream_ends_are_made_again(database: UpstreamDatabase) -> None:
    """The one that watches by itself, the stream by the next start; nothing is given twice."""

    async def scenario() -> None:
        reader, progress, tables = await started(database)
        database.execute("INSERT INTO t (id) VALUES (1)")
        batches = await read_all(reader)
        end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name"
        database.execute(f"{end} = 'feed_watch'")
        with pytest.raises(ReaderFailure) as failed:
            await reader.newest()
        assert not failed.value.broken
        await reader.newest()
        database.execute(f"{end} = 'feed'", "INSERT INTO t (id) VALUES (2)")
        more, failure = await read_until_failure(reader)
        assert failure is not None
        assert not failure.broken
        assert new_rows(more) == []
        upto = (more or batches)[-1].upto
        await reader.start(SourceProgress(upto, progress.identity), tables)
        assert new_rows(await read_all(reader)) == [(2, None, None)]
        await reader.release()

    database.execute(*T)
    run(scenario())


# ---------------------------------------------------------------- identity (S5), lost slots


def test_a_slot_whose_log_is_gone_is_lost_for_good(database: UpstreamDatabase) -> None:
    async def scenario() -> None:
        reader, progress, tables = await started(database)
        await reader.close()
        database.execute(
            "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()"
        )
        try:
            for _ in range(3):
                database.execute("INSERT INTO t (id) SELECT max(id) + 1 FROM t HAVING max(id) > 0")
                database.execute("CREATE TABLE filler (x int); DROP TABLE filler")
                database.execute("SELECT pg_switch_wal()", "CHECKPOINT")
            with pytest.raises(ReaderFailure) as failed:
                await reader.start(progress, tables)
        finally:
            database.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
        assert (failed.value.code, failed.value.broken) == ("55000", True)
        assert "RESNAPSHOT" in failed.value.hint
        await reader.release()

    database.execute(*T)
    run(scenario())


HISTORY = "1\t0/3000000\tno recovery target specified\n\n2\t0/5000000\tbefore\n"


def test_a_history_of_timelines() -> None:
    assert left_timeline(HISTORY, 1) == 0x3000000
    assert left_timeline(HISTORY, 2) == 0x5000000
    assert left_timeline(HISTORY, 3) is None


class Identified:
    """A replication connection to a server on a timeline."""

    def __init__(self, timeline: int, newest: str) -> None:
        self._rows = [("7", str(timeline), newest, "d")]

    async def query(self, text: str) -> list[tuple[str, ...]]:
        return self._rows if text == "IDENTIFY_SYSTEM" else [("3.history", HISTORY)]


SYSTEMS = [
    (1, "0/4000000", 1, 0x2000000, None),
    (3, "0/6000000", 1, 0x3000000, None),
    (3, "0/6000000", 1, 0x3000001, "left timeline 1 at LSN 0/3000000"),
    (3, "0/6000000", 2, 0x5000000, None),
    (3, "0/4000000", 2, 0x4500000, "ends at LSN 0/4000000"),
    (1, "0/6000000", 2, 0x1000000, "on timeline 1, and was on 2"),
    (9, "0/6000000", 3, 0x1000000, "left timeline 3 never"),
]


@pytest.mark.parametrize(("timeline", "newest", "known", "after", "message"), SYSTEMS)
def test_a_promoted_or_restored_upstream_is_noticed(
    timeline: int, newest: str, known: int, after: int, message: str | None
) -> None:
    async def scenario() -> None:
        link = Identified(timeline, newest)
        identity = {"system": "7", "database": "d", "timeline": str(known)}
        if message is None:
            now = await check_system(link, identity, after)  # type: ignore[arg-type]
            assert now.timeline == timeline
            return
        with pytest.raises(ReaderFailure) as failed:
            await check_system(link, identity, after)  # type: ignore[arg-type]
        assert failed.value.broken
        assert message in failed.value.message

    run(scenario())


# ---------------------------------------------------------------- tables that come later


def test_changes_that_the_copy_of_a_later_table_has_are_left_out(
    database: UpstreamDatabase,
) -> None:
    async def scenario() -> None:
        reader = database.reader()
        tables = sorted((await reader.inspect()).tables, key=lambda one: one.reference)
        other, table = tables
        progress = await reader.prepare([table])
        identity = await reader.start(progress, [table])
        database.execute("INSERT INTO t (id) VALUES (1)", "INSERT INTO other VALUES (1)")
        copy = PostgresReader(
            database.address(), publication="p", slot=f"{database.slot[:-1]}2", name="feed_add"
        )
        copied = await copy.prepare([other])
        database.execute("INSERT INTO other VALUES (2)", "INSERT INTO t (id) VALUES (2)")
        rows = [part.rows.num_rows async for part in copy.snapshot()]
        assert sum(rows) == 1
        await copy.release()
        later = {other.reference: copied.position}
        await reader.start(SourceProgress(progress.position, identity, later), [table, other])
        batches = await read_all(reader)
        assert new_rows(batches) == [(1, None, None), (2, None, None)]
        assert new_rows(batches, "public.other") == [(2,)]
        await reader.release()

    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(5), x int)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t, other",
    )
    run(scenario())
