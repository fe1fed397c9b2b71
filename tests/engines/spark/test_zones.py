"""Spark's time zones against ours: zones that differ are listed."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from compute.spark.executor import SparkExecutor
from sql.emit.zones import has_java_rules
from sql.types.datetime.timezones import find_zone, offset_at_utc, zone_names
from sql.types.sql_type import SqlType
from storage.batch import ShardView
from tests.engines.spark.shared_engine import Shard, answer, plan_of

pytestmark = pytest.mark.spark

_ZONES_AT_ONCE = 50
_INSTANTS = [
    datetime(year, month, day, tzinfo=UTC)
    for year in (1700, 1850, *range(1881, 2101, 4))
    for month in range(1, 13)
    for day in (1, 15)
]


@pytest.fixture(scope="module")
def instants() -> ShardView:
    table = pa.table({"w": pa.array(_INSTANTS, pa.timestamp("us", "UTC"))})
    return Shard.new(table.schema).view(inline=[("@1", table, [])])


def differing(spark: SparkExecutor, names: list[str], instants: ShardView) -> set[str]:
    """The zones, of those named, in which Spark shows another local time than we."""
    offsets = ", ".join(f"extract(epoch from w at time zone '{name}')::int8" for name in names)
    plan = plan_of(
        f"select extract(epoch from w)::int8, {offsets} from t", t=[("w", SqlType("timestamptz"))]
    )
    zones = [(place, name, find_zone(name)) for place, name in enumerate(names, start=1)]
    return {
        name
        for row in answer(spark, plan, {"t": instants})
        for place, name, zone in zones
        if zone is not None and row[place] - row[0] != offset_at_utc(zone, row[0])
    }


def test_java_has_our_rules_where_spark_uses_them(
    spark: SparkExecutor, instants: ShardView
) -> None:
    native = [name for name in zone_names() if has_java_rules(find_zone(name))]
    assert len(native) > 500
    for start in range(0, len(native), _ZONES_AT_ONCE):
        assert not differing(spark, native[start : start + _ZONES_AT_ONCE], instants)


def test_listed_zones_are_converted_by_our_rules(spark: SparkExecutor, instants: ShardView) -> None:
    listed = [name for name in zone_names() if "/" in name and not has_java_rules(find_zone(name))]
    assert "America/Vancouver" in listed
    assert not differing(spark, listed[:10], instants)
