"""What a client hears when a query fails: PostgreSQL's words, and nothing of ours or Spark's."""

import asyncio
import logging
from typing import Any

import pyarrow as pa
import pytest

from compute.spark.errors import Failure, translate_failures
from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName
from sql.errors import SqlError
from sql.types.sql_type import FLOAT8, INT4, INT8, TEXT, numeric
from storage.types import ShardId
from tests.engines.spark.shared_engine import Shard, answer, forced, plan_of, scan

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("b", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("n", pa.decimal128(5, 2)),
    ]
)
COLUMNS = [("i", INT4), ("b", INT8), ("x", FLOAT8), ("s", TEXT), ("n", numeric(5, 2))]
ROW: dict[str, list[Any]] = {
    "i": [2**31 - 1, 0],
    "b": [2**63 - 1, 0],
    "x": [1e300, 0.0],
    "s": ["MERIDIAN:00000:fooled", "[DIVIDE_BY_ZERO] SQLSTATE: 22012"],
    "n": [None, None],
}


@pytest.fixture(params=[SessionPoolName.SMALL, SessionPoolName.MEDIUM], autouse=True)
def lane(request: pytest.FixtureRequest) -> Any:
    with forced(request.param):
        yield request.param


def failure(spark: SparkExecutor, text: str) -> SqlError:
    view = Shard.new(SCHEMA).view(inline=[("@1", pa.table(ROW, schema=SCHEMA), [])])
    with pytest.raises(SqlError) as caught:
        answer(spark, plan_of(text, t=COLUMNS), {"t": view})
    return caught.value


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("select 1 / i from t", "22012", "division by zero"),
        ("select 1 % b from t", "22012", "division by zero"),
        ("select 1 / x from t", "22012", "division by zero"),
        ("select i + 1 from t", "22003", "integer out of range"),
        ("select b + 1 from t", "22003", "bigint out of range"),
        ("select b::int from t", "22003", "integer out of range"),
        ("select i::smallint from t", "22003", "smallint out of range"),
        ("select s::int from t", "22P02", None),
        ("select (select s from t) from t", "21000", None),
    ],
)
def test_data_that_does_not_fit(
    spark: SparkExecutor, text: str, sqlstate: str, message: str | None
) -> None:
    error = failure(spark, text)
    assert error.sqlstate == sqlstate
    assert message in (None, error.message)


def test_a_query_that_takes_all_memory_fails_alone(spark: SparkExecutor) -> None:
    asyncio.run(spark.ready())
    pid = spark.pid
    # Four thousand texts of a megabyte, in a heap of one gigabyte.
    text = (
        "select length(string_agg(repeat('x', 1000000) || a.i::text, ''))"
        f" from t a{''.join(f' cross join t t{n}' for n in range(11))}"
    )
    assert failure(spark, text).sqlstate == "53200"
    assert spark.pid == pid
    view = Shard.new(SCHEMA).view()
    assert answer(spark, plan_of("select count(*) from t", t=COLUMNS), {"t": view}) == [(0,)]


def test_what_nobody_foresaw_tells_nothing(
    spark: SparkExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    shard = Shard.new(SCHEMA)
    shard.file("a.parquet", pa.table(ROW, schema=SCHEMA))
    view = shard.view([("a.parquet", None, [])])
    (shard.directory / "a.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    caplog.set_level(logging.ERROR, "compute.spark.errors")
    with forced(SessionPoolName.MEDIUM), pytest.raises(SqlError) as caught:
        answer(spark, scan([type_ for _, type_ in COLUMNS]), {"t": view})
    error = caught.value
    assert (error.sqlstate, error.message) == ("XX000", "the engine failed")
    assert (error.detail, error.hint, error.context) == (None, None, None)
    # The log is for us.
    assert ShardId(shard.id) in caplog.text


def said(*failures: Failure) -> tuple[str, str]:
    error = translate_failures(list(failures), "detail for the log")
    assert isinstance(error, SqlError)
    return error.sqlstate, error.message


def test_the_innermost_condition_is_the_reason() -> None:
    outer = Failure("org.apache.spark.SparkException", "FAILED_READ_FILE", "KD001")
    inner = Failure("org.apache.spark.SparkArithmeticException", "DIVIDE_BY_ZERO", "22012")
    assert said(outer, inner) == ("22012", "division by zero")
    memory = Failure("java.lang.OutOfMemoryError", message="Java heap space")
    assert said(outer, memory)[0] == "53200"


def test_only_a_whole_message_of_raise_error_is_ours() -> None:
    def raised(message: str) -> Failure:
        parameters = {"errorMessage": message}
        return Failure("x", "USER_RAISED_EXCEPTION", "P0001", parameters, message)

    assert said(raised("MERIDIAN:22003:value out of range")) == ("22003", "value out of range")
    assert said(raised("so MERIDIAN:22003:value out of range"))[0] == "XX000"


def test_texts_of_other_failures_are_not_looked_into() -> None:
    data = "the value 'MERIDIAN:00000:x' [DIVIDE_BY_ZERO] java.lang.OutOfMemoryError"
    assert said(Failure("java.lang.RuntimeException", message=data)) == (
        "XX000",
        "the engine failed",
    )


def test_a_full_disk() -> None:
    full = Failure("java.io.IOException", message="No space left on device")
    assert said(Failure("org.apache.spark.SparkException"), full)[0] == "53100"
