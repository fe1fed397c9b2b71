"""delta-rs, DuckDB and delta-spark read every version and get what our own view shows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from storage.delta.schema import decode_schema
from storage.types import Timestamp
from tests.delta.duckdb_reader import query_duckdb
from tests.delta.foreign import LONG, SCHEMA, Story, normal, tell_story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERYTHING = "SELECT * FROM {t}"

PREDICATES = [
    "k = 9223372036854775807",
    "k < -1",
    "i2 = 32767",
    "i4 <= -2147483648",
    "n9 = 9999999.99",
    "n18 <= -999999999999999.999",
    f"s = '{LONG}'",
    f"s > '{LONG[:32]}'",
    "s = 'row 103'",
    "d = DATE '0001-01-01'",
    "d >= DATE '9999-12-31'",
    "ts = TIMESTAMP '2020-01-01 00:01:43.000103'",
    "ts > TIMESTAMP '9999-12-31 23:59:59.999998'",
    "f8 IS NULL",
    "f4 > 1e38",
    "b",
    "n38 IS NOT NULL AND k BETWEEN 1000 AND 1010",
]


@dataclass(frozen=True)
class Written:
    story: Story
    path: Path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    story = tell_story()
    return Written(story, story.write_out(tmp_path_factory.mktemp("warehouse")))


def count(written: Written, predicate: str) -> int:
    """How many rows a reader that never skips finds."""
    rows = pa.Table.from_pylist(written.story.rows_at(written.story.now), schema=SCHEMA)
    return len(query_rust_arrow(rows, f"SELECT * FROM t WHERE {predicate}"))


def query_rust_arrow(rows: pa.Table, query: str) -> list[dict]:
    builder = QueryBuilder().register("t", rows)  # type: ignore[arg-type]
    return pa.table(builder.execute(query).read_all()).to_pylist()


def query_rust(table: DeltaTable, query: str) -> list[dict]:
    builder = QueryBuilder().register("t", table)
    return pa.table(builder.execute(query.format(t="t")).read_all()).to_pylist()


def test_the_story_has_every_kind_of_version(written: Written) -> None:
    names = {path.name.split("-")[0].split("_v")[0] for path in written.path.iterdir()}
    assert names == {"part", "staged", "deletion", "_delta_log"}
    vectors = {
        live.vector.storage_type
        for version in written.story.state.versions
        for live in version.files.live_files()
        if live.vector is not None
    }
    assert vectors == {"i", "u"}
    assert len(written.story.answers) == 8
    assert len({len(rows) for rows in written.story.answers.values()}) >= 6


def test_delta_rs_reads_every_version(written: Written) -> None:
    for version, rows in written.story.answers.items():
        table = DeltaTable(written.path, version=version)
        assert normal(query_rust(table, EVERYTHING)) == rows, version


def test_delta_rs_sees_our_column_metadata(written: Written) -> None:
    assert decode_schema(DeltaTable(written.path).schema().to_json()) == SCHEMA


def test_duckdb_reads_every_version(written: Written) -> None:
    for version, rows in written.story.answers.items():
        answer = pa.ipc.open_stream(query_duckdb(written.path, EVERYTHING, version=version))
        assert normal(answer.read_all().to_pylist()) == rows, version


@pytest.fixture(scope="module")
def spark() -> Iterator["SparkSession"]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", "io.delta:delta-spark_4.2_2.13:4.4.0")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def spark_rows(frame: "DataFrame") -> list[str]:
    return normal(frame.toArrow().to_pylist())


@pytest.mark.spark
def test_delta_spark_reads_every_version(written: Written, spark: "SparkSession") -> None:
    for version, rows in written.story.answers.items():
        frame = spark.sql(f"SELECT * FROM delta.`{written.path}` VERSION AS OF {version}")
        assert spark_rows(frame) == rows, version


@pytest.mark.spark
def test_delta_spark_reads_every_cut(written: Written, spark: "SparkSession") -> None:
    answers, cuts = written.story.answers, written.story.cuts
    for version, cut in cuts.items():
        for ms, expected in ((-1, version - 1), (0, version), (1, version)):
            if expected < 0 or (ms > 0 and version + 1 not in cuts):
                continue
            moment = datetime(1970, 1, 1) + timedelta(microseconds=cut + ms * 1_000)
            frame = spark.sql(
                f"SELECT * FROM delta.`{written.path}` TIMESTAMP AS OF '{moment.isoformat(' ')}'"
            )
            assert spark_rows(frame) == answers[expected], (version, ms)
