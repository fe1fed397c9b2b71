"""What a query made in the JVM is let go when it is done."""

import gc

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject

from compute.spark.executor import SparkExecutor
from compute.spark.session import SessionPoolName
from sql.types.sql_type import INT8
from tests.engines.spark.shared_engine import Shard, answer, forced, plan_of

pytestmark = pytest.mark.spark


def _objects() -> int:
    """Objects of the JVM that we hold."""
    return sum(isinstance(item, JavaObject) for item in gc.get_objects())


def test_no_object_of_the_jvm_waits_for_the_collector_of_cycles(spark: SparkExecutor) -> None:
    schema = pa.schema([("id", pa.int64())])
    views = {"t": Shard.new(schema).view(inline=[("@1", pa.table({"id": [1, 2]}, schema), [])])}
    with forced(SessionPoolName.LARGE):  # which keeps no statement
        for least in range(2):  # the first one finds the lane not warm
            gc.collect()
            gc.disable()
            try:
                plan = plan_of(f"select id from t where id > {least}", t=[("id", INT8)])
                answer(spark, plan, views)
                held = _objects()
            finally:
                gc.enable()
    gc.collect()
    assert held == _objects()
