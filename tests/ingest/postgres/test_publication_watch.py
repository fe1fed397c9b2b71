"""A publication that changes: nothing is given past a change that was not looked at (S3)."""

from __future__ import annotations

import pytest

from ingest.postgres.reader import PostgresReader
from ingest.reader import ReaderFailure, ReadLimits, SourceProgress, UpstreamTable
from tests.ingest.postgres.reading import new_rows, read_until_failure
from tests.ingest.upstream_database import UpstreamDatabase, run

TABLES = (
    "CREATE TABLE t (id int PRIMARY KEY)",
    "CREATE TABLE other (id int PRIMARY KEY)",
    "CREATE PUBLICATION p FOR TABLE t",
)


async def started(
    database: UpstreamDatabase, kind: type[PostgresReader] = PostgresReader
) -> tuple[PostgresReader, SourceProgress, list[UpstreamTable]]:
    """A reader whose snapshot is over."""
    reader = database.reader(kind=kind)
    tables = [one for one in (await reader.inspect()).tables if one.reference == "public.t"]
    progress = await reader.prepare(tables)
    identity = await reader.start(progress, tables)
    return reader, SourceProgress(progress.position, identity), tables


async def read_up_to(reader: PostgresReader, position: int) -> int:
    """The number of changes up to there."""
    changes, upto = 0, 0
    while upto < position:
        batch = await reader.read(ReadLimits(wait_ms=1000))
        changes += sum(map(len, batch.changes.values()))
        upto = batch.upto["lsn"]
    return changes


async def check_leaving_table(
    database: UpstreamDatabase, kind: type[PostgresReader] = PostgresReader
) -> None:
    """A table leaves, has a row, and comes back, while a read waits for messages."""
    database.execute(*TABLES)

    def leave() -> None:
        database.execute(
            "ALTER PUBLICATION p DROP TABLE t",
            "INSERT INTO t VALUES (1)",
            "ALTER PUBLICATION p ADD TABLE t",
            "INSERT INTO t VALUES (2)",
        )

    class Leaving(kind):  # type: ignore[misc, valid-type]
        """It leaves after what a read does before it takes messages."""

        left = False

        async def _take_piece(self, loop: object) -> bool:
            if not self.left:
                self.left = True
                leave()
            more: bool = await super()._take_piece(loop)
            return more

    reader, _, _ = await started(database, Leaving)
    newest = (await reader.newest())["lsn"]
    batches, failure = await read_until_failure(reader, upto=newest)
    told = failure is not None or len(new_rows(batches)) == 2
    assert told, "a row of a table that had left was left out without a word"
    assert failure is not None
    assert failure.broken
    assert 'public.t left publication "p" somewhere after LSN' in failure.message
    with pytest.raises(ReaderFailure):
        await reader.read(ReadLimits(wait_ms=1))
    await reader.release()


def test_a_table_that_leaves_and_comes_back_stops_the_source(database: UpstreamDatabase) -> None:
    run(check_leaving_table(database))


CHANGES = [
    ("ALTER PUBLICATION p DROP TABLE t", "left publication"),
    ("DROP PUBLICATION p", "was dropped"),
    ("DROP PUBLICATION p; CREATE PUBLICATION p FOR TABLE t", "was altered"),
    ("ALTER PUBLICATION p SET (publish = 'insert')", "was altered"),
    ("ALTER PUBLICATION p SET TABLE t WHERE (id > 5)", "left publication"),
    ("ALTER PUBLICATION p RENAME TO q", "was dropped"),
    ("DROP TABLE t", "left publication"),
    ("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY)", "left publication"),
    # The rows of before have other values then, which the stream does not tell.
    ("ALTER TABLE t RENAME id TO k; ALTER TABLE t ADD id int", '"id" of public.t was made anew'),
    ("ALTER TABLE t DROP id; ALTER TABLE t ADD id int DEFAULT 7", '"id" of public.t was made anew'),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_what_may_lose_changes_stops_the_source(
    database: UpstreamDatabase, change: str, message: str
) -> None:
    """While it runs, and when it starts again."""

    async def scenario() -> None:
        reader, progress, tables = await started(database)
        await read_up_to(reader, (await reader.newest())["lsn"])
        database.execute(*change.split("; "), "INSERT INTO other VALUES (1)")
        with pytest.raises(ReaderFailure) as failed:
            await read_up_to(reader, (await reader.newest())["lsn"])
        assert failed.value.broken
        assert message in failed.value.message
        with pytest.raises(ReaderFailure) as failed:
            await reader.start(progress, tables)
        assert failed.value.broken
        assert message in failed.value.message
        await reader.release()

    database.execute(*TABLES)
    run(scenario())


REKEYED = [
    "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (other)",
    "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (id)",
]


@pytest.mark.parametrize("change", REKEYED)
def test_a_key_that_is_dropped_stops_the_source(database: UpstreamDatabase, change: str) -> None:
    """With REPLICA IDENTITY FULL nothing in the stream tells it; two rows may have one key then."""

    async def scenario() -> None:
        reader, progress, tables = await started(database)
        database.execute(
            "ALTER TABLE t REPLICA IDENTITY FULL",
            "INSERT INTO t VALUES (1, 1)",
        )
        assert await read_up_to(reader, (await reader.newest())["lsn"]) == 1
        database.execute(*change.split("; "), "INSERT INTO t VALUES (7, 2)")
        newest = (await reader.newest())["lsn"]
        with pytest.raises(ReaderFailure, match=r"the key of table public\.t") as failed:
            await read_up_to(reader, newest)
        assert failed.value.broken
        with pytest.raises(ReaderFailure, match=r"the key of table public\.t") as failed:
            await reader.start(progress, tables)
        assert failed.value.broken
        await reader.release()

    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, other int NOT NULL)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())


def test_a_table_with_another_key_is_not_copied(database: UpstreamDatabase) -> None:
    """RESNAPSHOT looks at the key anew."""

    async def scenario() -> None:
        reader, _, tables = await started(database)
        database.execute(
            "ALTER TABLE t DROP CONSTRAINT t_pkey",
            "ALTER TABLE t ADD PRIMARY KEY (other)",
            "ALTER TABLE t REPLICA IDENTITY FULL",
        )
        with pytest.raises(ReaderFailure, match=r"table public\.t is not id") as failed:
            await reader.prepare(tables)
        assert failed.value.broken
        await reader.release()

    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, other int NOT NULL)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())


HARMLESS = [
    "ALTER PUBLICATION p ADD TABLE other",
    "ALTER PUBLICATION p ADD TABLE other; ALTER PUBLICATION p DROP TABLE other",
    "ALTER TABLE t RENAME TO renamed; ALTER TABLE renamed RENAME TO t",
    "CREATE PUBLICATION q FOR ALL TABLES",
    "VACUUM FULL t",
    "ANALYZE",
    "ALTER TABLE t ADD COLUMN z int; ALTER TABLE t ADD COLUMN y int",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "ALTER TABLE t REPLICA IDENTITY FULL; REINDEX INDEX CONCURRENTLY t_pkey",
]


@pytest.mark.parametrize("change", HARMLESS)
def test_what_loses_nothing_does_not_stop_it(database: UpstreamDatabase, change: str) -> None:
    async def scenario() -> None:
        reader, progress, tables = await started(database)
        database.execute(*change.split("; "), "INSERT INTO t VALUES (1)")
        assert await read_up_to(reader, (await reader.newest())["lsn"]) == 1
        await reader.start(progress, tables)
        assert await read_up_to(reader, (await reader.newest())["lsn"]) == 1
        await reader.release()

    database.execute(*TABLES)
    run(scenario())


def test_a_table_keeps_its_name_here_when_it_is_renamed_upstream(
    database: UpstreamDatabase,
) -> None:
    async def scenario() -> None:
        reader, progress, tables = await started(database)
        database.execute("ALTER TABLE t RENAME TO u", "INSERT INTO u VALUES (1)")
        await reader.start(progress, tables)
        batch = await reader.read(ReadLimits())
        assert list(batch.changes) == ["public.t"]
        await reader.release()

    database.execute(*TABLES)
    run(scenario())


@pytest.mark.parametrize(
    "publication", ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public", "FOR TABLE t, other"]
)
def test_every_kind_of_publication(database: UpstreamDatabase, publication: str) -> None:
    async def scenario() -> None:
        reader, _, _ = await started(database)
        database.execute("INSERT INTO t VALUES (1)", "INSERT INTO other VALUES (1)")
        assert await read_up_to(reader, (await reader.newest())["lsn"]) == 1
        await reader.release()

    database.execute(*TABLES[:2], f"CREATE PUBLICATION p {publication}")
    run(scenario())


@pytest.mark.parametrize("root", ["true", "false"])
def test_partitions(database: UpstreamDatabase, root: str) -> None:
    """By their root, or each of its own."""

    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        names = ["public.r"] if root == "true" else ["public.r1", "public.r2"]
        assert [table.reference for table in tables] == names
        progress = await reader.prepare(tables)
        rows = [part.rows.num_rows async for part in reader.snapshot()]
        assert sum(rows) == 2
        await reader.start(progress, tables)
        database.execute("UPDATE r SET id = 3 WHERE id = 1")
        assert await read_up_to(reader, (await reader.newest())["lsn"]) >= 2
        await reader.release()

    database.execute(
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (2)",
        "CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (2) TO (9)",
        "INSERT INTO r VALUES (1), (2)",
        f"CREATE PUBLICATION p FOR TABLE r WITH (publish_via_partition_root = {root})",
    )
    run(scenario())
