"""delta-rs, DuckDB and delta-spark read every version and get what our own view shows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyroaring import BitMap64

from storage.clock import SystemClock
from storage.delta.schema import decode_schema
from tests.session.execution.test_foreign_moments import told_bank
from tests.support.foreign_readers import ForeignReader, delta_spark_reader, duckdb_reader
from tests.unit.storage.delta.foreign import (
    EPOCH,
    LATE,
    LONG,
    SCHEMA,
    Row,
    Story,
    normal,
    plain,
    row,
    tell_story,
)

FIRST_COLUMNS = "k, b, i2, i4, f4, f8, n9, n18, n38, s, hex(x)"
DUCKDB_COLUMNS = f"{FIRST_COLUMNS}, d - DATE '1970-01-01', epoch_us(ts), epoch_us(tz)"
SPARK_COLUMNS = (
    f"{FIRST_COLUMNS}, unix_date(d), unix_micros(CAST(ts AS timestamp)), unix_micros(tz)"
)

# What a reader may skip files by, and which rows there are in truth.
PREDICATES: dict[str, Callable[[Row], bool | None]] = {
    "k = 9223372036854775807": lambda row: row["k"] == 2**63 - 1,
    "k < -1": lambda row: row["k"] < -1,
    "i2 = 32767": lambda row: row["i2"] == 32_767,
    "i4 <= -2147483647": lambda row: row["i4"] is not None and row["i4"] <= -(2**31) + 1,
    "n9 = CAST('9999999.99' AS DECIMAL(9, 2))": lambda row: row["n9"] == Decimal("9999999.99"),
    "n18 < -999999999999999": lambda row: row["n18"] is not None and row["n18"] < -(10**15) + 1,
    "n38 > 99999999999999999999": lambda row: row["n38"] is not None and row["n38"] > 10**20 - 1,
    f"s = '{LONG}'": lambda row: row["s"] == LONG,
    f"s > '{LONG[:32]}'": lambda row: row["s"] is not None and row["s"] > LONG[:32],
    "s = 'row 103'": lambda row: row["s"] == "row 103",
    "d = DATE '0001-01-01'": lambda row: row["d"] is not None and row["d"].year == 1,
    "d >= DATE '9999-12-31'": lambda row: row["d"] is not None and row["d"].year == 9999,
    "ts > TIMESTAMP '9999-12-31 23:59:59.999998'": lambda row: row["ts"] == LATE,
    "ts = TIMESTAMP '2020-01-01 00:18:23.000103'": lambda row: row["k"] == 1_103,
    "s IS NULL": lambda row: row["s"] is None,
    "f4 > 1e38": lambda row: row["f4"] is not None and row["f4"] > 1e38,
    "b": lambda row: row["b"],
    "k BETWEEN 1000 AND 1010": lambda row: 1_000 <= row["k"] <= 1_010,
}
TOO_LATE = "ts > TIMESTAMP '9999-12-31 23:59:59.999998'"
"""DataFusion's timestamp literals end in the year 2262."""

PROBED = 5
"""The version that predicates are tried on: the extreme rows are still there."""


def counts_query(*, without: str = "") -> str:
    return " UNION ALL ".join(
        f"SELECT {number}, count(*) FROM t WHERE {predicate}"
        for number, predicate in enumerate(PREDICATES)
        if predicate != without
    )


@dataclass(frozen=True)
class Written:
    story: Story
    path: Path
    counts: list[list[int]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    story = tell_story()
    rows = story.rows_at(story.cuts[PROBED])
    counts = [
        [number, sum(1 for row in rows if matches(row))]
        for number, matches in enumerate(PREDICATES.values())
    ]
    return Written(story, story.write_out(tmp_path_factory.mktemp("warehouse")), counts)


def query_rust(table: DeltaTable, query: str) -> list[Row]:
    builder = QueryBuilder().register("t", table)
    return pa.table(builder.execute(query).read_all()).to_pylist()


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
    assert len(written.story.answers) == 10
    assert len({len(rows) for rows in written.story.answers.values()}) >= 6
    assert sum(1 for _, count in written.counts if count) >= 10


def test_delta_rs_reads_every_version(written: Written) -> None:
    for version, rows in written.story.answers.items():
        table = DeltaTable(written.path, version=version)
        assert normal(map(plain, query_rust(table, "SELECT * FROM t"))) == rows, version


def test_delta_rs_skips_no_row(written: Written) -> None:
    table = DeltaTable(written.path, version=PROBED)
    answer = query_rust(table, counts_query(without=TOO_LATE))
    skipped = [*PREDICATES].index(TOO_LATE)
    expected = [pair for pair in written.counts if pair[0] != skipped]
    assert sorted([*row.values()] for row in answer) == expected


def test_delta_rs_sees_our_column_metadata(written: Written) -> None:
    assert decode_schema(DeltaTable(written.path).schema().to_json()) == SCHEMA


@pytest.fixture(scope="module")
def duckdb() -> Iterator[ForeignReader]:
    with duckdb_reader() as reader:
        yield reader


def test_duckdb_reads_every_version(written: Written, duckdb: ForeignReader) -> None:
    for version, rows in written.story.answers.items():
        answer = duckdb.query(
            f"SELECT {DUCKDB_COLUMNS} FROM t", {"t": written.path}, {"t": version}
        )
        assert normal(answer) == rows, version


def test_duckdb_skips_no_row(written: Written, duckdb: ForeignReader) -> None:
    counts = duckdb.query(counts_query(), {"t": written.path}, {"t": PROBED})
    assert sorted(map(list, counts)) == written.counts


@pytest.fixture(scope="module")
def vacuumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], int]:
    """A table that promises no history: its path, its rows, its newest version."""
    story = Story(SystemClock().now() - 60_000_000)
    story.state = replace(story.state, retention_us=0)
    for first in range(0, 50, 10):
        source = story.commit([row(k) for k in range(first, first + 10)])
        story.commit([], {source: BitMap64([0, 1])})
        story.flush()
    story.compact()
    story.commit([row(100)])
    story.flush()
    deleted = story.vacuum()
    assert sum(name.endswith(".parquet") for name in deleted) == 4
    assert sum(name.endswith(".json") for name in deleted) == 5
    newest = story.state.versions[-1].number
    path = story.write_out(tmp_path_factory.mktemp("vacuumed"))
    return path, story.answers[newest], newest


def test_a_compacted_and_vacuumed_table_reads_the_same(
    vacuumed: tuple[Path, list[str], int], duckdb: ForeignReader
) -> None:
    path, rows, _ = vacuumed
    assert normal(map(plain, query_rust(DeltaTable(path), "SELECT * FROM t"))) == rows
    assert normal(duckdb.query(f"SELECT {DUCKDB_COLUMNS} FROM t", {"t": path})) == rows


@pytest.mark.spark
def test_delta_spark_reads_a_compacted_and_vacuumed_table(
    vacuumed: tuple[Path, list[str], int], spark: ForeignReader
) -> None:
    path, rows, newest = vacuumed
    query = f"SELECT {SPARK_COLUMNS} FROM t"
    assert normal(spark.query(query, {"t": path})) == rows
    assert normal(spark.query(query, {"t": path}, {"t": newest})) == rows


@pytest.fixture(scope="module")
def spark() -> Iterator[ForeignReader]:
    with delta_spark_reader() as reader:
        yield reader


@pytest.mark.spark
def test_delta_spark_reads_every_version(written: Written, spark: ForeignReader) -> None:
    for version, rows in written.story.answers.items():
        answer = spark.query(f"SELECT {SPARK_COLUMNS} FROM t", {"t": written.path}, {"t": version})
        assert normal(answer) == rows, version


@pytest.mark.spark
def test_delta_spark_reads_at_every_cut(written: Written, spark: ForeignReader) -> None:
    """A version begins at the very millisecond of its cut; before it, there is the older one."""
    for version, cut in written.story.cuts.items():
        for ms, expected in ((-1, version - 1), (0, version)):
            if expected >= 0:
                moment = (EPOCH + timedelta(microseconds=cut + ms * 1_000)).isoformat(" ")
                table = f"delta.`{written.path}` TIMESTAMP AS OF '{moment}'"
                answer = spark.query(f"SELECT count(*), sum(k % 1000003) FROM {table}", {})
                at_version = spark.query(
                    "SELECT count(*), sum(k % 1000003) FROM t",
                    {"t": written.path},
                    {"t": expected},
                )
                assert answer == at_version, (version, ms)


@pytest.mark.spark
def test_delta_spark_has_our_answer_at_a_moment(spark: ForeignReader, tmp_path: Path) -> None:
    """Two tables at one moment: opening one takes it seconds. More in `test_shared_cuts.py`."""
    bank = told_bank(tmp_path)
    # It refuses a time after a table's last version.
    last = min(times[-1] for times in bank.versions.values())
    ms = max(ms for ms in bank.answers if ms <= last)
    at = f"TIMESTAMP AS OF '{(EPOCH + timedelta(milliseconds=ms)).isoformat(' ')}'"
    two = dict([*bank.paths.items()][:2])
    parts = [f"SELECT '{n}', id, balance FROM delta.`{path}` {at}" for n, path in two.items()]
    found = spark.query(f"{' UNION ALL '.join(parts)} ORDER BY 1, 2", {})
    assert found == [row for row in bank.answers[ms] if row[0] in two], ms


@pytest.mark.spark
def test_delta_spark_skips_no_row(written: Written, spark: ForeignReader) -> None:
    counts = spark.query(counts_query(), {"t": written.path}, {"t": PROBED})
    assert sorted(map(list, counts)) == written.counts
