"""What a whole test session shares: one JVM, started when the first test asks for it."""

import pytest

from compute.spark import SparkExecutor
from tests.spark import shared_engine


@pytest.fixture(scope="session")
def spark() -> SparkExecutor:
    """The engine of the session; tests of several modules use the same JVM."""
    return shared_engine.executor()


def pytest_sessionfinish() -> None:
    shared_engine.close()
