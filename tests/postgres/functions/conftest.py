"""One bare Spark session for all that run emitted statements: PySpark starts one in a process."""

from collections.abc import Iterator

import pytest

from tests.postgres.functions.spark_session import Spark, started


@pytest.fixture(scope="package")
def spark() -> Iterator[Spark]:
    with started() as session:
        yield session
