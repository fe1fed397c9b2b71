"""What all tests share: a time limit, and one JVM, started when the first one asks for it."""

import faulthandler
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from compute.spark.executor import SparkExecutor
from tests.engines.spark import shared_engine
from tests.support.loop_watch import EVERY_LOOP, WATCH
from tests.support.time_limit import SHARE, time_limit

# Timing is never asserted: a busy machine makes no example wrong.
hypothesis.settings.register_profile("meridian", deadline=None)
hypothesis.settings.load_profile("meridian")


@pytest.fixture(scope="session")
def spark() -> SparkExecutor:
    """The engine of the session; tests of several modules use the same JVM."""
    return shared_engine.executor()


@pytest.fixture
def bounded_callbacks() -> Iterator[None]:
    """The test fails if a callback of the server's loop computes for too long."""
    with WATCH.watching():
        yield
    WATCH.check()


@pytest.fixture(autouse=EVERY_LOOP)
def _bounded_callbacks_everywhere(bounded_callbacks: None) -> None:
    """For a run over the whole suite."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that waits for ever fails; one that is meant to take minutes may take any number."""
    seconds = float(item.config.getini("faulthandler_timeout"))
    if not seconds:
        return (yield)
    if item.get_closest_marker("slow") is not None:
        faulthandler.cancel_dump_traceback_later()
        return (yield)
    with time_limit(seconds * SHARE):
        return (yield)


def pytest_sessionfinish() -> None:
    shared_engine.close()
