"""What the reader of PostgreSQL promises alone: refusals, schema changes, limits, identity."""

from __future__ import annotations

import asyncio

import pytest

from ingest.postgres.replication_connection import ReplicationStream
from ingest.postgres.upstream_types import chosen_columns
from ingest.reader import (
    ReaderFailure,
    ReadLimits,
    SourceProgress,
    UpstreamColumn,
    UpstreamTable,
)
from sql.types.sql_type import INT8, TEXT
from tests.ingest.postgres.reading import new_rows, read_all, read_until_failure, started
from tests.ingest.postgres.table_model import TableModels, upstream_content
from tests.ingest.upstream_database import UpstreamDatabase, run

# ---------------------------------------------------------------- what is refused at once

REFUSED = [
    ([], "42704", "CREATE PUBLICATION"),
    (["CREATE PUBLICATION p WITH (publish = 'insert')"], "0A000", "ALTER PUBLICATION .. SET"),
]


@pytest.mark.parametrize(("statements", "code", "hint"), REFUSED)
def test_a_publication_that_cannot_be_read(
    database: UpstreamDatabase, statements: list[str], code: str, hint: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(ReaderFailure) as failed:
            await database.reader().inspect()
        assert failed.value.code == code
        assert hint in failed.value.hint
        assert database.slots() == [], "nothing was made upstream"

    database.execute(*statements)
    run(scenario())


def test_tables_and_columns_are_refused_only_if_they_are_wanted(
    database: UpstreamDatabase,
) -> None:
    async def scenario() -> None:
        reader = database.reader()
        tables = {table.reference: table for table in (await reader.inspect()).tables}
        assert tables["public.plain"].obstacle is not None
        with pytest.raises(ReaderFailure, match="no replica identity") as failed:
            chosen_columns(tables["public.plain"])
        assert "REPLICA IDENTITY FULL" in failed.value.hint
        strange = tables["public.strange"]
        assert dict(strange.unsupported) == {"r": "int4range", "g": "point"}
        assert [(one.name, one.type.name) for one in strange.columns] == [
            *(("id", "int4"), ("mood", "text"), ("age", "int4"), ("moods", "_int4")),
            *(("v", "varchar"), ("ts", "timestamp")),
        ]
        with pytest.raises(ReaderFailure, match="int4range"):
            chosen_columns(strange, ["g"])
        with pytest.raises(ReaderFailure, match='"none"'):
            chosen_columns(strange, ["none"])
        with pytest.raises(ReaderFailure, match="key"):
            chosen_columns(strange, ["r", "g"], ["id"])
        chosen = chosen_columns(strange, ["r", "id"], ["g", "age"])
        assert chosen.columns[0] == UpstreamColumn("id", TEXT, not_null=True)
        assert [one.name for one in chosen.columns] == ["id", "mood", "moods", "v", "ts", "r"]
        await reader.close()

    database.execute(
        "CREATE TABLE plain (x int)",
        "CREATE TYPE feeling AS ENUM ('good', 'bad')",
        "CREATE DOMAIN years AS int CHECK (value > 0)",
        "CREATE TABLE strange (id int PRIMARY KEY, mood feeling, age years, moods int[], "
        "v varchar(7), ts timestamp(3), r int4range, g point, "
        "twice int GENERATED ALWAYS AS (id * 2) STORED)",
        "CREATE PUBLICATION p FOR TABLE plain, strange",
    )
    run(scenario())


def test_values_of_all_types_are_upstreams(database: UpstreamDatabase) -> None:
    """By the snapshot and by the stream they are the same."""
    values = (
        "1, true, 'x', 1.5, 'NaN', 12345678901234567890.123456789012345678, 'ab ', 'é\\n', "
        r"'\x00ff', '{\"b\": 1, \"a\": [1.0]}', '{\"b\":1}', '2024-02-29', '12:30:00.123456', "
        "'2024-02-29 12:30:00.123456', '2024-02-29 12:30:00+02', '1 mon -2 days', "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL,3}', '{\"a,b\",NULL}', '{2020-01-01}'"
    ).replace('\\"', '"')

    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        parts = [part async for part in reader.snapshot()]
        (row,) = [row for part in parts for row in part.rows.to_pylist()]
        await reader.start(progress, tables)
        database.execute("DELETE FROM t", f"INSERT INTO t VALUES ({values})")
        streamed = new_rows(await read_all(reader))[-1]
        assert isinstance(streamed, tuple)
        plain = ("id", "b", "c", "f4", "n", "bp", "tx", "by", "j", "jb", "u", "ia")
        for at, column in enumerate(tables[0].columns):
            if column.name in plain:
                left, right = row[column.name], streamed[at]
                assert left == (list(right) if isinstance(right, tuple) else right), column.name
        assert str(row["n"]) == "12345678901234567890.123456789012345678"
        assert row["jb"] == '{"b": 1}'
        assert not [bad for part in parts for bad in part.errors]
        await reader.release()

    database.execute(
        'CREATE TABLE t (id int8 PRIMARY KEY, b bool, c "char", f4 float4, f8 float8, '
        "n numeric(38,18), bp char(5), tx text, by bytea, j json, jb jsonb, d date, tm time, "
        "ts timestamp, tz timestamptz, iv interval, u uuid, ia int[], ta text[], da date[])",
        f"INSERT INTO t VALUES ({values})",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())


# ---------------------------------------------------------------- schema changes (a.10)

T = ("CREATE TABLE t (id int PRIMARY KEY, v varchar(5), x int)", "CREATE PUBLICATION p FOR TABLE t")
BREAKING = [
    ("ALTER TABLE t DROP COLUMN x", "42703", 'column "x" of public.t is gone upstream'),
    ("ALTER TABLE t RENAME COLUMN x TO y", "42703", 'column "x" of public.t is gone upstream'),
    ("ALTER TABLE t ALTER COLUMN x TYPE bigint", "42804", "has type bigint upstream, and integer"),
    ("ALTER TABLE t ALTER COLUMN v TYPE varchar(6)", "42804", "varying(6) upstream"),
    ("ALTER TABLE t REPLICA IDENTITY NOTHING", "55000", "replica identity of public.t"),
    (
        "DELETE FROM t; ALTER TABLE t ALTER x SET DEFAULT 1, ALTER x SET NOT NULL; "
        "CREATE UNIQUE INDEX i ON t (x); "
        "ALTER TABLE t REPLICA IDENTITY USING INDEX i",
        *("55000", "replica identity of public.t was changed upstream: it was id"),
    ),
]


@pytest.mark.parametrize(("change", "code", "message"), BREAKING)
def test_columns_that_do_not_fit_stop_the_source_before_their_first_row(
    database: UpstreamDatabase, change: str, code: str, message: str
) -> None:
    async def scenario() -> None:
        reader, progress, tables = await started(database)
        database.execute(
            *("INSERT INTO t (id) VALUES (1)", *change.split("; ")),
            "INSERT INTO t SELECT 2",
        )
        batches, failure = await read_until_failure(reader)
        assert new_rows(batches) == [(1, None, None)], "what was before it is given"
        assert (failure.code, failure.broken) == (code, True)
        assert message in failure.message
        assert failure.hint
        if code == "42703":
            # A person drops the column here: it goes on at the same record.
            (table,) = tables
            narrow = UpstreamTable(table.reference, table.columns[:2], table.key)
            await reader.start(SourceProgress(batches[-1].upto, progress.identity), [narrow])
            assert new_rows(await read_all(reader)) == [(2, None)]
        await reader.release()

    database.execute(*T)
    run(scenario())


GOING_ON = [
    "ALTER TABLE t ADD COLUMN z int DEFAULT 7",
    "ALTER TABLE t ADD COLUMN z int; ALTER TABLE t DROP COLUMN z",
    "ALTER TABLE t ALTER COLUMN v TYPE varchar(3)",
    "ALTER TABLE t ALTER COLUMN x TYPE smallint",
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "CREATE DOMAIN small AS int2; ALTER TABLE t ALTER COLUMN x TYPE small",
]


@pytest.mark.parametrize("change", GOING_ON)
def test_columns_that_still_fit_go_on(database: UpstreamDatabase, change: str) -> None:
    async def scenario() -> None:
        reader, _, _ = await started(database)
        database.execute(
            *("INSERT INTO t (id) VALUES (1)", *change.split("; ")),
            *("INSERT INTO t (id, x) VALUES (2, 5)", "UPDATE t SET id = 3 WHERE id = 2"),
        )
        assert new_rows(await read_all(reader)) == [(1, None, None), (2, None, 5), (3, None, 5)]
        await reader.release()

    database.execute(*T)
    run(scenario())


def test_a_wider_column_here_reads_on_when_upstream_widens_its_own(
    database: UpstreamDatabase,
) -> None:
    async def scenario() -> None:
        columns = (
            UpstreamColumn("id", INT8, not_null=True),
            UpstreamColumn("v", TEXT),
            UpstreamColumn("x", TEXT),
        )
        reader, _, _ = await started(database, UpstreamTable("public.t", columns, ("id",)))
        database.execute(
            *(
                "ALTER TABLE t ALTER COLUMN id TYPE bigint",
                "ALTER TABLE t ALTER x TYPE point USING NULL",
            ),
            f"INSERT INTO t VALUES ({1 << 40}, 'v', '(1,2)')",
        )
        assert new_rows(await read_all(reader)) == [(1 << 40, "v", "(1,2)")]
        await reader.release()

    database.execute(*T)
    run(scenario())


# ---------------------------------------------------------------- limits


def test_a_large_transaction_comes_in_parts(database: UpstreamDatabase) -> None:
    """What came before it is given first, and what comes behind it with its end."""

    async def scenario() -> None:
        reader, progress, _ = await started(database, part_size=20_000)
        database.execute(
            "INSERT INTO t (id) VALUES (1)",
            "INSERT INTO t (id) SELECT generate_series(2, 5000)",
            "INSERT INTO t (id) VALUES (5001)",
        )
        newest = (await reader.newest())["lsn"]
        batches = [await reader.read(ReadLimits(wait_ms=20))]
        while batches[-1].upto["lsn"] < newest:
            batches.append(await reader.read(ReadLimits(wait_ms=20)))
        assert [row[0] for row in new_rows(batches)] == list(range(1, 5002))
        parts = [batch for batch in batches if not batch.ends]
        assert len(parts) > 2
        assert batches[0].ends
        assert {batch.upto["lsn"] for batch in parts} == {batches[0].upto["lsn"]}
        assert all(batch.size < 21_000 for batch in parts)
        assert progress.position["lsn"] < batches[0].upto["lsn"]
        await reader.release()

    database.execute(*T)
    run(scenario())


def test_a_row_beyond_the_limit_is_refused(database: UpstreamDatabase) -> None:
    """What came before it is given first; memory stays below the limit."""

    async def scenario() -> None:
        reader, _, _ = await started(database, record_max=20_000)
        database.execute(
            "INSERT INTO t (id) VALUES (1)",
            "INSERT INTO t (id, w) VALUES (2, repeat('x', 20000))",
        )
        batches, failure = await read_until_failure(reader)
        assert len(new_rows(batches)) == 1
        assert (failure.code, failure.broken, failure.place) == ("54000", True, None)
        assert "a row of public.t has more than 20000 bytes" in failure.message
        await reader.release()

    database.execute(*T, "ALTER TABLE t ADD COLUMN w text")
    run(scenario())


def test_a_large_transaction_lets_others_run(database: UpstreamDatabase) -> None:
    async def scenario() -> None:
        reader, _, _ = await started(database)
        database.execute("INSERT INTO t SELECT g, 'v', g FROM generate_series(1, 30000) g")
        loop = asyncio.get_running_loop()
        turns = 0

        def count() -> None:
            nonlocal turns
            turns += 1
            if not done:
                loop.call_soon(count)

        done = False
        count()
        assert len(new_rows(await read_all(reader))) == 30_000
        done = True
        assert turns > 3
        await reader.release()

    database.execute(*T)
    run(scenario())


def test_a_status_is_sent_while_nobody_reads() -> None:
    """K2. And no position is in it before one was acknowledged (K1)."""

    class Sent:
        def __init__(self) -> None:
            self.bodies: list[bytes] = []
            self.three = asyncio.Event()

        def send(self, body: bytes) -> bool:
            self.bodies.append(body)
            if len(self.bodies) == 3:
                self.three.set()
            return True

        def close(self) -> None:
            pass

    async def scenario() -> None:
        link = Sent()
        stream = ReplicationStream(link, 0.001)  # type: ignore[arg-type]
        await link.three.wait()
        assert {body[:25] for body in link.bodies} == {b"r" + bytes(24)}
        stream.acknowledge(7)
        stream.acknowledge(5)
        assert link.bodies[-1][:25] == b"r" + (7).to_bytes(8, "big") * 3
        stream.close()

    run(scenario())


# ---------------------------------------------------------------- large keys


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL", "USING INDEX i"])
def test_large_keys_that_stay(database: UpstreamDatabase, identity: str) -> None:
    """Upstream leaves a key that is stored apart out of the new row, and sends the old one."""
    database.execute(
        "CREATE TABLE t (n int, big text PRIMARY KEY, x text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTERNAL",
        "CREATE UNIQUE INDEX i ON t (big)",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
        "INSERT INTO t SELECT i, repeat(i::text, 2500), repeat('x', 9000) "
        "FROM generate_series(1, 3) i",
        "CREATE PUBLICATION p FOR TABLE t",
    )

    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        models = TableModels(tables)
        async for part in reader.snapshot():
            models.load(part)
        await reader.start(progress, tables)
        database.execute(
            "UPDATE t SET n = n + 10",
            "UPDATE t SET big = big || 'z' WHERE n = 12",
            "BEGIN; UPDATE t SET n = 20 WHERE n = 13; UPDATE t SET big = 'short' WHERE n = 20; "
            "UPDATE t SET n = 21 WHERE n = 20; COMMIT",
            "UPDATE t SET big = repeat('k', 2600) WHERE n = 21",
            "DELETE FROM t WHERE n = 11",
        )
        for batch in await read_all(reader):
            models.apply(batch)
        await reader.release()
        expected = upstream_content(tables[0], database.copied("SELECT * FROM t"))
        assert models.content()["public.t"] == expected

    run(scenario())


def test_two_tables_of_one_reference_are_refused(database: UpstreamDatabase) -> None:
    """A point in a name: nobody could say which of them is meant."""
    database.execute('CREATE SCHEMA "a.b"', "CREATE SCHEMA a")

    async def scenario() -> None:
        reader = database.reader()
        (table,) = (await reader.inspect()).tables
        with pytest.raises(ReaderFailure, match=r"two tables .* are called a\.b\.c"):
            chosen_columns(table)
        await reader.close()

    try:
        database.execute(
            'CREATE TABLE "a.b".c (id int PRIMARY KEY)',
            'CREATE TABLE a."b.c" (id int PRIMARY KEY)',
            'CREATE PUBLICATION p FOR TABLE "a.b".c, a."b.c"',
        )
        run(scenario())
    finally:
        database.execute('DROP SCHEMA "a.b", a CASCADE')
