"""One server with Spark for all that is played on it, script by script."""

from collections.abc import Iterator

import pytest

from tests.support.servers import meridian


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("spark")) as server:
        yield server.dsn
