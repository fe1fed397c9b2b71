"""The two servers that tests in this folder ask the same: PostgreSQL, and ours."""

from collections.abc import Iterator

import pytest

from tests.support.servers import meridian, postgres


@pytest.fixture(scope="package")
def real() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.fixture(scope="package")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("ours"), ["--spark-master", "reference"]) as server:
        yield server.dsn
