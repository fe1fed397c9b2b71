"""The statements about types on Spark: what it answers is what PostgreSQL answers."""

import pytest

from compute.executor import Run
from compute.spark.executor import SparkExecutor
from sql.plan.nodes import Plan
from tests.postgres.types.corpus import Rows, rows_of_batches
from tests.postgres.types.test_corpus import check

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["arrays", "intervals", "times"])
def test_spark_answers_as_postgresql(name: str, spark: SparkExecutor) -> None:
    async def on_spark(plan: Plan) -> Rows:
        return await rows_of_batches(plan, spark.run(Run(plan, {})))

    check(name, "spark", on_spark)
