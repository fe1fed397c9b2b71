"""What a whole test session shares: one JVM, started when the first test asks for it."""

import hypothesis
import pytest

from compute.spark.executor import SparkExecutor
from tests.engines.spark import shared_engine

# Timing is never asserted: a busy machine makes no example wrong.
hypothesis.settings.register_profile("meridian", deadline=None)
hypothesis.settings.load_profile("meridian")


@pytest.fixture(scope="session")
def spark() -> SparkExecutor:
    """The engine of the session; tests of several modules use the same JVM."""
    return shared_engine.executor()


def pytest_sessionfinish() -> None:
    shared_engine.close()
