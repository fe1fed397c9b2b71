"""Values that no column here can take: told with their place, never skipped (F7, D2)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ingest.postgres.upstream_types import chosen_columns
from ingest.reader import ReaderFailure, ReadLimits, SourceProgress
from tests.ingest.postgres.reading import new_rows, read_all, read_until_failure, started
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
    for batch in await read_all(reader):
        models.apply(batch)
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
        reader, progress, tables = await started(database)
        database.execute(
            "INSERT INTO t VALUES ('2020-01-01', 1)",
            f"INSERT INTO t VALUES ('2020-01-02', 2), ({BAD}, 3), ('2020-01-04', 4)",
            f"UPDATE t SET x = 5 WHERE at = {BAD}",
            f"UPDATE t SET at = '2020-01-05' WHERE at = {BAD}",
        )
        batches, failure = await read_until_failure(reader)
        assert [row[1] for row in new_rows(batches)] == [1], "what is before it"
        assert failure.broken
        assert failure.place is not None
        assert failure.place["row"] == 2
        with pytest.raises(ReaderFailure):
            await reader.read(ReadLimits(wait_ms=1))
        # The same place every time, until a person decides.
        stored = SourceProgress(batches[-1].upto, progress.identity)
        await reader.start(stored, tables)
        batches, again = await read_until_failure(reader)
        assert (again.place, new_rows(batches)) == (failure.place, [])
        skipping = replace(stored, skip=(failure.place,))
        await reader.start(skipping, tables)
        batches, second = await read_until_failure(reader)
        assert [row[1] for row in new_rows(batches)] == [2, 4]
        (bad,) = [bad for batch in batches for bad in batch.errors]
        assert bad.key is None
        assert second.place is not None
        skipping = replace(stored, skip=(failure.place, second.place))
        await reader.start(skipping, tables)
        batches = await read_all(reader)
        # The row whose key could not be read comes as a new one when it can.
        changes = [one for batch in batches for one in batch.changes.get("public.t", ())]
        assert [(one.old, one.new[1]) for one in changes if one.new] == [
            *((None, 2), (None, 4), (None, 5))
        ]
        assert sum(len(batch.errors) for batch in batches) == 2
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
        for batch in await read_all(reader):
            models.apply(batch)
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


def test_any_change_of_columns_stops_a_source_that_wants_it(database: UpstreamDatabase) -> None:
    async def scenario() -> None:
        database.execute(
            "CREATE TYPE mood AS ENUM ('glad')",
            "CREATE TABLE t (id int PRIMARY KEY, value numeric(9, 2), feels mood)",
            "CREATE PUBLICATION p FOR TABLE t",
        )
        (found,) = (await database.reader().inspect()).tables
        only = (("id", "integer"), ("value", "numeric(9,2)"), ("feels", "text"))
        reader, _, _ = await started(database, replace(found, only=only))
        database.execute(
            "INSERT INTO t VALUES (1, 1, 'glad')",
            "ALTER TABLE t ADD COLUMN more text",
            "INSERT INTO t VALUES (2, 2, 'glad', 'x')",
        )
        batches, failure = await read_until_failure(reader)
        assert len(new_rows(batches)) == 1
        assert failure is not None
        assert (failure.code, failure.broken) == ("42804", True)
        assert failure.message == "columns of public.t were changed upstream: more"
        await reader.release()

    run(scenario())


def test_times_that_no_table_stores_are_bad_values(database: UpstreamDatabase) -> None:
    """Other readers of Delta end with the year 9999; so do tables that are written to here."""
    late = {"d": "'10000-01-01'", "ts": "'294276-01-01'", "tz": "'10000-01-02'"}
    columns = ", ".join([*late, "ds"])
    last = "'9999-12-31', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', NULL"
    rows = (
        f"INSERT INTO t (id, {columns}) VALUES (1, {last})",
        *(
            f"INSERT INTO t (id, {name}) VALUES ({at}, {value})"
            for at, (name, value) in enumerate(late.items(), 2)
        ),
        "INSERT INTO t (id, ds) VALUES (5, '{2020-01-01,NULL,5874897-12-31}'), (6, '{9999-12-31}')",
    )
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, ds date[])",
        *rows,
        "CREATE PUBLICATION p FOR TABLE t",
    )

    async def scenario() -> None:
        reader = database.reader()
        tables = list((await reader.inspect()).tables)
        progress = await reader.prepare(tables)
        parts = [part async for part in reader.snapshot()]
        copied = [row["id"] for part in parts for row in part.rows.to_pylist()]
        told = [bad.code for part in parts for bad in part.errors]
        assert (copied, told) == ([1, 6], ["22008"] * 4)
        await reader.start(progress, tables)
        database.execute("DELETE FROM t", *rows)
        batches = await read_all(reader)
        assert [row[0] for row in new_rows(batches)] == [1, 6]
        assert [bad.code for batch in batches for bad in batch.errors] == ["22008"] * 4
        await reader.release()

    run(scenario())
