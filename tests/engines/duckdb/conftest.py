"""One engine for the tests of a module."""

from collections.abc import Iterator

import pytest

from tests.engines.duckdb.local_engine import Engine, opened


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(tmp_path_factory.mktemp("local")) as engine:
        yield engine
