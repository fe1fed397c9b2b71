"""Values that no column here can take: told with their place, never skipped (F7, D2)."""

from __future__ import annotations

import json

import pytest

from ingest.postgres.upstream_types import chosen_columns
from ingest.reader import ReaderFailure, ReadLimits, SourceProgress
from tests.ingest.postgres.table_model import TableModels, upstream_content
from tests.ingest.upstream_database import UpstreamDatabase, run

BAD = "'infinity'"


async def check_bad_records(database: UpstreamDatabase) -> None:
    """The table is upstream without the keys whose errors are open."""
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz, n numeric)",
        "INSERT INTO t VALUES (1, '2020-01-01', 1), (2, 'infinity', 2), (3, '2020-01-01', 'NaN')",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    reader = database.reader()
    tables = list((await reader.inspect()).tables)
    progress = await reader.prepare(tables)
    models = TableModels(tables)
    async for part in reader.snapshot():
        models.load(part)
    await reader.start(progress, tables)
    database.execute(
        f"INSERT INTO t VALUES (4, '2020-01-01', 4), (5, {BAD}, 5)",
        f"UPDATE t SET at = {BAD} WHERE id = 1",
        "UPDATE t SET at = '2021-01-01' WHERE id = 2",
        "UPDATE t SET id = 9, n = 1e30 WHERE id = 4",
        "DELETE FROM t WHERE id = 3",
        "INSERT INTO t VALUES (6, '4713-01-01 BC', 0)",
    )
    newest = (await reader.newest())["lsn"]
    upto = 0
    while upto < newest:
        batch = await reader.read(ReadLimits(wait_ms=1000))
        models.apply(batch)
        upto = batch.upto["lsn"]
    await reader.release()
    told = [json.loads(bad.key or b"{}").get("id") for bad in models.errors]
    (table,) = tables
    good = database.copied("SELECT * FROM t WHERE id NOT IN (1, 5, 6, 9)")
    assert models.content()["public.t"] == upstream_content(table, good), (
        "a record is neither in the table nor an error"
    )
    assert told == ["2", "3", "5", "1", "9", "6"], "a record is neither in the table nor an error"
    assert [bad.code for bad in models.errors] == [
        "22008",
        "22003",
        "22008",
        "22008",
        "22003",
        "22008",
    ]
    stream = models.errors[2:]
    assert [bad.place["row"] for bad in stream] == [2, 1, 1, 1]
    assert json.loads(stream[0].value or b"")["at"] == "infinity"
    assert all("/" in str(bad.place["lsn"]) for bad in stream)
    assert 'column "at": ' in stream[0].message


def test_bad_values_are_told_and_take_the_row_before_with_them(
    database: UpstreamDatabase,
) -> None:
    run(check_bad_records(database))


def test_a_key_that_cannot_be_read_stops_the_source_until_it_is_skipped(
    database: UpstreamDatabase,
) -> None:
    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        await reader.start(progress, tables)
        database.execute(
            "INSERT INTO t VALUES ('2020-01-01', 1)",
            f"INSERT INTO t VALUES ('2020-01-02', 2), ({BAD}, 3), ('2020-01-04', 4)",
            f"UPDATE t SET x = 5 WHERE at = {BAD}",
            f"UPDATE t SET at = '2020-01-05' WHERE at = {BAD}",
        )
        batch = await reader.read(ReadLimits(wait_ms=1000))
        assert [change.new[1] for change in batch.changes["public.t"]] == [1], "what is before it"
        failures = []
        for _ in range(2):
            with pytest.raises(ReaderFailure) as failed:
                await reader.read(ReadLimits(wait_ms=1000))
            failures.append(failed.value)
            assert failed.value.broken
            assert failed.value.place is not None
            assert failed.value.place["row"] == 2
        stored = SourceProgress(batch.upto, progress.identity)
        # The same place every time, until a person decides.
        await reader.start(stored, tables)
        with pytest.raises(ReaderFailure) as failed:
            await reader.read(ReadLimits(wait_ms=1000))
        skip = [failed.value.place]
        assert skip == [failures[0].place]
        await reader.start(SourceProgress(batch.upto, progress.identity, {}, tuple(skip)), tables)
        batch = await reader.read(ReadLimits(wait_ms=1000))
        assert [change.new[1] for change in batch.changes["public.t"]] == [2, 4]
        ((bad,),) = [batch.errors]
        assert bad.key is None
        with pytest.raises(ReaderFailure) as failed:
            await reader.read(ReadLimits(wait_ms=1000))
        skip.append(failed.value.place)
        await reader.start(SourceProgress(batch.upto, progress.identity, {}, tuple(skip)), tables)
        batch = await reader.read(ReadLimits(wait_ms=1000))
        assert len(batch.errors) == 1
        # The row whose key could not be read comes as a new one when it can.
        (change,) = batch.changes["public.t"]
        assert change.old is None
        assert change.new is not None
        assert change.new[1] == 5
        await reader.release()

    database.execute(
        "CREATE TABLE t (at date PRIMARY KEY, x int)", "CREATE PUBLICATION p FOR TABLE t"
    )
    run(scenario())


def test_without_a_key_bad_rows_are_told_and_good_ones_change(database: UpstreamDatabase) -> None:
    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        models = TableModels(tables)
        await reader.start(progress, tables)
        database.execute(
            f"INSERT INTO t VALUES ('2020-01-01', 1), ({BAD}, 2), ({BAD}, 3), ('2020-01-01', 1)",
            "UPDATE t SET at = '2020-01-02' WHERE x = 2",
            f"UPDATE t SET at = {BAD} WHERE ctid = (SELECT min(ctid) FROM t WHERE x = 1)",
            "DELETE FROM t WHERE x = 3",
        )
        newest = (await reader.newest())["lsn"]
        upto = 0
        while upto < newest:
            batch = await reader.read(ReadLimits(wait_ms=1000))
            models.apply(batch)
            upto = batch.upto["lsn"]
        (table,) = tables
        good = database.copied("SELECT * FROM t WHERE at < 'infinity'")
        assert models.content()["public.t"] == upstream_content(table, good)
        assert len(models.errors) == 3
        await reader.release()

    database.execute(
        "CREATE TABLE t (at date, x int)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())


def test_a_column_may_be_read_as_text_in_place(database: UpstreamDatabase) -> None:
    """Then its values are good, whatever they are."""

    async def scenario() -> None:
        reader = database.reader()
        ((table,),) = [(await reader.inspect()).tables]
        chosen = chosen_columns(table, ["at", "r"], ["z"])
        progress = await reader.prepare([chosen])
        rows = [row async for part in reader.snapshot() for row in part.rows.to_pylist()]
        assert rows == [{"id": 1, "at": "infinity", "r": "[1,5)"}]
        await reader.start(progress, [chosen])
        database.execute("UPDATE t SET r = 'empty'")
        batch = await reader.read(ReadLimits(wait_ms=1000))
        assert batch.changes["public.t"][0].new == (1, "infinity", "empty")
        await reader.release()

    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at date, r int4range, z box)",
        "INSERT INTO t VALUES (1, 'infinity', '[1,4]')",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    run(scenario())
