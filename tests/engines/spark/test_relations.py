"""Views of shards as Spark sees them: all rows, no others, under their identities."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.spark.deleted_rows import deleted_row_blocks
from compute.spark.executor import SparkExecutor
from compute.spark.relations import DELETED_LITERALS_MAX
from compute.spark.session import SessionPoolName
from sql.types.sql_type import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    bpchar,
    numeric,
)
from storage.batch import DataFile, FileSlice
from storage.types import Source
from tests.engines.spark.shared_engine import Shard, answer, forced, plan_of, scan

pytestmark = pytest.mark.spark

IDS = pa.schema([("id", pa.int64())])


@pytest.fixture(
    params=[SessionPoolName.SMALL, SessionPoolName.MEDIUM, SessionPoolName.LARGE], autouse=True
)
def lane(request: pytest.FixtureRequest) -> Any:
    with forced(request.param, spooled=request.param is SessionPoolName.LARGE):
        yield request.param


def ids(*values: int | range) -> pa.Table:
    return pa.table([[n for v in values for n in (v if isinstance(v, range) else [v])]], schema=IDS)


def test_an_empty_shard_has_no_rows(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    assert answer(spark, scan([INT8]), {"t": shard.view()}) == []
    assert answer(spark, scan([INT8], identity=True), {"t": shard.view()}) == []


def test_a_file_without_rows(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids())
    assert answer(spark, scan([INT8]), {"t": shard.view([("a.parquet", None, [])])}) == []


def test_files_and_inline_rows_are_one_relation_with_identities(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids(range(5)))
    shard.file("b.parquet", ids(range(10, 15)))
    shard.file("c.parquet", ids(20, 21))
    view = shard.view(
        [("a.parquet", 4, [1]), ("b.parquet", None, []), ("c.parquet", None, [0, 1])],
        [("@7", ids(30, 31, 32), [0]), ("@9", ids(40), []), ("@own", ids(50, 51), [1])],
    )
    expected = [
        (0, "a.parquet", 0), (2, "a.parquet", 2), (3, "a.parquet", 3),
        *((10 + n, "b.parquet", n) for n in range(5)),
        (31, "@7", 1), (32, "@7", 2), (40, "@9", 0), (50, "@own", 0),
    ]  # fmt: skip
    assert sorted(answer(spark, scan([INT8], identity=True), {"t": view})) == expected
    assert sorted(answer(spark, scan([INT8]), {"t": view})) == [(row[0],) for row in expected]


def test_more_deleted_rows_than_a_filter_holds(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids(range(2000)))
    shard.file("b.parquet", ids(range(5000, 5010)))
    gone = range(0, 3 * DELETED_LITERALS_MAX, 2)
    view = shard.view([("a.parquet", 1000, gone), ("b.parquet", None, [9])])
    rows = answer(spark, scan([INT8], identity=True), {"t": view})
    left = [n for n in range(1000) if n not in gone]
    assert sorted(rows) == [(n, "a.parquet", n) for n in left] + [
        (5000 + n, "b.parquet", n) for n in range(9)
    ]


def test_deleted_rows_in_every_block_and_at_the_edges_of_words(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids(range(200_000)))
    shard.file("b.parquet", ids(range(300_000, 300_300)))
    gone = {0, 62, 63, 64, 65_535, 65_536, 131_071, 131_072, 199_999, *range(1000, 1300)}
    view = shard.view([("a.parquet", None, sorted(gone)), ("b.parquet", None, [0, 299])])
    rows = answer(spark, scan([INT8], identity=True), {"t": view})
    assert sorted(rows) == [(n, "a.parquet", n) for n in range(200_000) if n not in gone] + [
        (300_000 + n, "b.parquet", n) for n in range(1, 299)
    ]


def test_many_deleted_rows_take_a_bit_of_each_row_and_not_more() -> None:
    deleted = BitMap64(range(0, 10_000_000, 2))
    file = DataFile(Source("a.parquet"), 10_000_000, 0, "")
    assert deleted_row_blocks([FileSlice(file, file.rows, deleted)]).nbytes < 2_000_000


def test_the_tail_grows_and_a_reader_of_the_past_still_sees_the_past(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids(0))
    tail = [(f"@{n}", ids(n), []) for n in range(1, 6)]
    for upto in (1, 3, 5, 2):
        view = shard.view([("a.parquet", None, [])], tail[:upto])
        found = answer(spark, scan([INT8], identity=True), {"t": view})
        assert sorted(found) == [
            (0, "a.parquet", 0),
            *((n, f"@{n}", 0) for n in range(1, upto + 1)),
        ]


def test_own_rows_of_two_transactions_are_not_confused(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    for mine in (1, 2, 3):
        view = shard.view(inline=[("@own", ids(mine), [])])
        assert answer(spark, scan([INT8]), {"t": view}) == [(mine,)]


def test_the_same_rows_deleted_and_not(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    rows = ids(1, 2)
    for deleted, left in (([], [1, 2]), ([0], [2]), ([1], [1]), ([0, 1], [])):
        view = shard.view(inline=[("@1", rows, deleted)])
        assert answer(spark, scan([INT8]), {"t": view}) == [(n,) for n in left]


TYPES: list[tuple[Any, pa.DataType, list[Any]]] = [
    (BOOL, pa.bool_(), [True, False, None]),
    (INT2, pa.int16(), [-(2**15), 2**15 - 1, None]),
    (INT4, pa.int32(), [-(2**31), 2**31 - 1, None]),
    (INT8, pa.int64(), [-(2**63), 2**63 - 1, None]),
    (FLOAT4, pa.float32(), [-0.0, float("inf"), 1.1754943508222875e-38]),
    (FLOAT8, pa.float64(), [-0.0, float("-inf"), 5e-324]),
    (numeric(5, 2), pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.01"), None]),
    (
        numeric(38, 18),
        pa.decimal128(38, 18),
        [Decimal("99999999999999999999.999999999999999999"), Decimal("-1E-18"), None],
    ),
    (TEXT, pa.string(), ["a\x00b\\n'`\"${env:HOME}\u2028😀", "", None]),
    (bpchar(3), pa.string(), ["ab", "", None]),
    (UUID, pa.string(), ["00000000-0000-0000-0000-00000000000a", None, None]),
    (BYTEA, pa.binary(), [b"\x00\xff'\\", b"", None]),
    (DATE, pa.date32(), [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)]),
    (
        TIMESTAMP,
        pa.timestamp("us"),
        [
            datetime(1, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
            datetime(2024, 3, 31, 2, 30),
        ],
    ),
    (
        TIMESTAMPTZ,
        pa.timestamp("us", tz="UTC"),
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1900, 1, 1, tzinfo=UTC),
        ],
    ),
]


def test_values_come_back_as_they_were_stored(spark: SparkExecutor) -> None:
    schema = pa.schema([(f"a {n}", type_) for n, (_, type_, _) in enumerate(TYPES)])
    rows = pa.table([values for _, _, values in TYPES], schema=schema)
    shard = Shard.new(schema)
    shard.file("a.parquet", rows, store_decimal_as_integer=True)
    view = shard.view([("a.parquet", None, [])], [("@1", rows, [])])
    found = answer(spark, scan([type_ for type_, _, _ in TYPES]), {"t": view})
    expected = [repr(row) for row in zip(*(c.to_pylist() for c in rows.columns), strict=True)]
    # repr: -0.0 equals 0.0.
    assert sorted(map(repr, found)) == sorted(expected * 2)


def test_columns_with_any_names(spark: SparkExecutor) -> None:
    names = ["a", "A", "__source", "_metadata", "f1", "x.y", "`", "ä b;--", "\"'", "${x}"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    shard = Shard.new(schema)
    shard.file("a.parquet", pa.table([[n] for n in range(len(names))], schema=schema))
    for deleted in ([], [5]):
        view = shard.view([("a.parquet", None, deleted)])
        found = answer(spark, scan([INT8] * len(names), identity=True), {"t": view})
        assert found == [(*range(len(names)), "a.parquet", 0)]


def test_a_column_that_the_file_does_not_have_yet(spark: SparkExecutor) -> None:
    shard = Shard.new(pa.schema([("id", pa.int64()), ("added", pa.string())]))
    shard.file("a.parquet", ids(1))
    rows = answer(spark, scan([INT8, TEXT]), {"t": shard.view([("a.parquet", None, [])])})
    assert rows == [(1, None)]


def test_filters_do_not_lose_nan(spark: SparkExecutor) -> None:
    schema = pa.schema([("x", pa.float64()), ("y", pa.float32())])
    shard = Shard.new(schema)
    nan = float("nan")
    shard.file("a.parquet", pa.table([[1.0, nan, -0.0], [1.0, nan, 0.0]], schema=schema))
    for deleted in ([], [7]):
        view = shard.view([("a.parquet", None, deleted)])
        columns = [("x", FLOAT8), ("y", FLOAT4)]
        for text, count in (
            ("select 1 from t where x > 100 and y > 100", 1),
            ("select 1 from t where x = 'NaN'", 1),
            ("select 1 from t where x <> 1", 2),
            ("select 1 from t where x = 0 and y = 0", 1),
        ):
            assert len(answer(spark, plan_of(text, t=columns), {"t": view})) == count


def test_a_filter_on_a_large_file_still_finds_identities(spark: SparkExecutor) -> None:
    # Row groups that the filter skips still count in the index of a row.
    shard = Shard.new(IDS)
    shard.file("a.parquet", ids(range(20_000)), row_group_size=1000)
    view = shard.view([("a.parquet", 19_000, [15_001])])
    plan = plan_of("select id from t where id between 15000 and 15002", t=[("id", INT8)])
    assert sorted(answer(spark, plan, {"t": view})) == [(15_000,), (15_002,)]


def test_the_same_statement_over_other_inputs_answers_anew(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    plan = plan_of("select sum(id)::bigint from t", t=[("id", INT8)])
    for upto in (2, 3, 3, 2):
        view = shard.view(inline=[(f"@{n}", ids(n), []) for n in range(upto)])
        assert answer(spark, plan, {"t": view}) == [(sum(range(upto)),)]


def test_a_volatile_statement_is_never_the_same(spark: SparkExecutor) -> None:
    shard = Shard.new(IDS)
    plan = plan_of("select id + random() from t", t=[("id", INT8)])
    view = shard.view(inline=[("@1", ids(1, 2), [])])
    first, second = (answer(spark, plan, {"t": view}) for _ in range(2))
    assert len({*first, *second}) == 4
