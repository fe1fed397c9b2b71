"""Slots of coordinators that follow each other: the old one may go on, unaware (F8, F11)."""

from __future__ import annotations

from ingest.reader import SourceProgress
from tests.ingest.postgres.reading import new_rows, read_all, started
from tests.ingest.upstream_database import UpstreamDatabase, run
from tests.session.change_streams.followers import until

T = ("CREATE TABLE t (id int PRIMARY KEY, v text, x int)", "CREATE PUBLICATION p FOR TABLE t")


def test_who_was_deposed_takes_nothing_from_its_successor(database: UpstreamDatabase) -> None:
    """It has stood still before it made its slot, and makes it now."""

    async def scenario() -> None:
        successor, progress, tables = await started(database, epoch=7)
        database.execute("INSERT INTO t (id) VALUES (1)")
        deposed = database.reader(epoch=5)
        await deposed.prepare(tables)
        await deposed.close()
        assert _names(database) == [f"{database.slot}_5", f"{database.slot}_7"]
        assert new_rows(await read_all(successor)) == [(1, None, None)]
        # Its slot would hold the log of upstream for ever.
        identity = await successor.start(progress, tables)
        assert _names(database) == [f"{database.slot}_7"]
        assert identity["slot"] == f"{database.slot}_7"
        assert new_rows(await read_all(successor)) == [(1, None, None)]
        await successor.release()
        assert database.slots() == []

    database.execute(*T)
    run(scenario())


def test_a_successor_reads_by_the_slot_that_is_there(database: UpstreamDatabase) -> None:
    """Also if it was made before slots had epochs. What nobody uses of its generation and of those
    before goes; what is made for the next one stays.
    """

    async def scenario() -> None:
        first, progress, tables = await started(database)
        await first.close()
        old = SourceProgress(
            progress.position, {k: v for k, v in progress.identity.items() if k != "slot"}
        )
        family = database.slot.removesuffix("1")
        for name in ("0_9", "1_3", "1_8", "2_4", "2", "1_joins"):
            database.rows(
                f"SELECT pg_create_logical_replication_slot('{family}{name}', 'pgoutput')"
            )
        successor = database.reader(epoch=4)
        identity = await successor.start(old, tables)
        assert identity["slot"] == database.slot
        left = {name.removeprefix(family) for name in _names(database)}
        assert left == {"1", "1_8", "2_4", "2", "1_joins"}
        database.execute("INSERT INTO t (id) VALUES (1)")
        assert new_rows(await read_all(successor)) == [(1, None, None)]
        await successor.close()

    database.execute(*T)
    run(scenario())


def test_a_slot_is_taken_from_whoever_stands_still_with_a_full_connection(
    database: UpstreamDatabase,
) -> None:
    """Whoever sends to it waits in telling that it ends, and has to be told twice."""

    async def scenario() -> None:
        stopped, progress, tables = await started(database)
        for n in range(0, 40_000, 1_000):
            database.execute(
                f"INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series({n}, {n} + 999) i"
            )
        full = "SELECT FROM pg_stat_activity WHERE wait_event = 'WalSenderWriteData'"
        until(lambda: database.rows(full))
        successor = database.reader(epoch=2)
        identity = await successor.start(progress, tables)
        rows = new_rows(await read_all(successor))
        assert len(rows) == 40_000
        assert identity["slot"] == database.slot
        await stopped.close()
        await successor.release()

    database.execute(*T)
    run(scenario())


def _names(database: UpstreamDatabase) -> list[str]:
    return sorted(name for name, _ in database.slots())
