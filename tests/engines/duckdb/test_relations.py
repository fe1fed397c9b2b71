"""Views of shards in every shape, as tables of rows and as files that DuckDB reads itself."""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from sql.plan.nodes import ColumnId, PlanColumn, Scan
from sql.types.sql_type import (
    DATE,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)
from storage.batch import ShardView
from tests.engines.duckdb.local_engine import Engine, Shard, T, plan_of

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])
COLUMNS = [("id", INT4), ("name", TEXT)]
EVERYTHING = "select id, name from t"


@pytest.fixture(params=["rows", "files"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How the engine reads small views."""
    never = mock.patch("compute.duckdb.relations.is_small_view", return_value=False)
    with never if request.param == "files" else nullcontext():
        yield request.param


def rows(*ids: int | None) -> pa.Table:
    return pa.table([list(ids), [f"n{id_}" for id_ in ids]], schema=SCHEMA)


def ids(engine: Engine, view: ShardView) -> list[Any]:
    return sorted(id_ for id_, _ in engine.answer(plan_of(EVERYTHING, COLUMNS), view))


def test_files_limits_holes_and_rows_in_memory(engine: Engine, way: str) -> None:
    shard = Shard(engine, SCHEMA)
    for number in range(4):
        shard.file(f"{number}.parquet", rows(*range(10 * number, 10 * number + 10)))
    view = shard.view(
        [
            ("0.parquet", None, []),
            ("1.parquet", 5, []),
            ("2.parquet", None, [0, 9]),
            ("3.parquet", 3, [1]),
        ],
        [("@100", rows(100, 101), [0]), ("@own", rows(200), [])],
    )
    assert ids(engine, view) == [*range(15), *range(21, 29), 30, 32, 101, 200]
    # The same files without one row: the engine must not take it for the view it knows.
    fewer = shard.view([("0.parquet", None, [3]), ("2.parquet", None, [0])])
    assert ids(engine, fewer) == [0, 1, 2, *range(4, 10), *range(21, 30)]
    assert ids(engine, view) == [*range(15), *range(21, 29), 30, 32, 101, 200]


def test_identities(engine: Engine, way: str) -> None:
    shard = Shard(engine, SCHEMA)
    shard.file("b.parquet", rows(1, 2, 3))
    shard.file("a.parquet", rows(4, 5))
    view = shard.view(
        [("b.parquet", None, [1]), ("a.parquet", None, [])], [("@7", rows(6, 7), [0])]
    )
    columns = [PlanColumn(ColumnId(n), "c", type_) for n, type_ in enumerate([INT4, TEXT, INT8])]
    plan = Scan(T, "t", (columns[0],), (0,), (columns[1], columns[2]))
    expected = [
        (1, "b.parquet", 0), (3, "b.parquet", 2), (4, "a.parquet", 0), (5, "a.parquet", 1),
        (7, "@7", 1),
    ]  # fmt: skip
    assert sorted(engine.answer(plan, view)) == expected


def test_a_file_may_be_older_than_a_column_and_have_another_order(engine: Engine, way: str) -> None:
    shard = Shard(engine, SCHEMA)
    shard.file("old.parquet", pa.table({"id": pa.array([1, 2], pa.int32())}))
    shard.file("turned.parquet", rows(3).select(["name", "id"]))
    view = shard.view([("old.parquet", None, []), ("turned.parquet", None, [])])
    found = engine.answer(plan_of(EVERYTHING, COLUMNS), view)
    assert sorted(found) == [(1, None), (2, None), (3, "n3")]


@pytest.mark.parametrize("names", [["a", "A"], ["filename", "file_row_number"], ['"', "a b;--"]])
def test_names_of_columns_do_not_matter(engine: Engine, way: str, names: Sequence[str]) -> None:
    schema = pa.schema([(name, pa.int64()) for name in names])
    shard = Shard(engine, schema)
    shard.file("x.parquet", pa.table([[1, 2], [3, 4]], schema=schema))
    shard.file("y.parquet", pa.table([[5, 6], [7, 8]], schema=schema))
    view = shard.view([("x.parquet", None, []), ("y.parquet", None, [0])])
    plan = plan_of("select a, b from t", [("a", INT8), ("b", INT8)])
    assert sorted(engine.answer(plan, view)) == [(1, 3), (2, 4), (6, 8)]


@pytest.mark.parametrize("type_", [FLOAT4, FLOAT8], ids=["float4", "float8"])
def test_nan_is_found_although_statistics_leave_it_out(
    engine: Engine, way: str, type_: SqlType
) -> None:
    schema = pa.schema([("x", pa.float32() if type_ == FLOAT4 else pa.float64())])
    shard = Shard(engine, schema)
    shard.file("x.parquet", pa.table([[1.0, math.nan, -0.0, None]], schema=schema))
    view = shard.view([("x.parquet", None, [])])
    for condition, count in (("x > 5", 1), ("x = 'NaN'", 1), ("not x <= 5", 1), ("x >= 0", 3)):
        plan = plan_of(f"select count(*) from t where {condition}", [("x", type_)])
        assert engine.answer(plan, view) == [(count,)], condition


def test_times_are_read_in_utc(engine: Engine, way: str) -> None:
    schema = pa.schema(
        [("d", pa.date32()), ("s", pa.timestamp("us")), ("z", pa.timestamp("us", tz="UTC"))]
    )
    values = [[0, -800_000], [1_711_846_800_123_456, -1], [1_711_846_800_123_456, -1]]
    arrays = [
        pa.array(column, pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
        for column, type_ in zip(values, schema.types, strict=True)
    ]
    shard = Shard(engine, schema)
    shard.file("x.parquet", pa.table(arrays, schema=schema))
    view = shard.view([("x.parquet", None, [])], [("@1", pa.table(arrays, schema=schema), [])])
    columns = [("d", DATE), ("s", TIMESTAMP), ("z", TIMESTAMPTZ)]
    plan = plan_of("select count(*) from t where s = z at time zone 'UTC'", columns)
    assert engine.answer(plan, view) == [(4,)]
    plan = plan_of("select count(distinct d), count(distinct s), count(distinct z) from t", columns)
    assert engine.answer(plan, view) == [(2, 2, 2)]


def test_tables_that_nobody_uses_are_dropped(engine: Engine) -> None:
    shard = Shard(engine, SCHEMA)
    database = engine.executor.instances.newest.database
    with mock.patch("compute.duckdb.relations.TABLES_MAX", 3):
        for number in range(20):
            view = shard.view(inline=[(f"@{number}", rows(number), [])])
            # Read again it becomes a table.
            for _ in range(3):
                assert ids(engine, view) == [number]
        [(count,)] = database.execute("select count(*) from duckdb_tables()").fetchall()
        assert count <= 4
    # A statement that has failed does not keep its tables in use.
    assert all(
        not table.users for table in engine.executor.instances.newest.relations._tables.values()
    )
