"""One server with Spark for all that is played on it, script by script."""

from collections.abc import Iterator

import pytest

from tests.support.servers import ON_SPARK, meridian


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("spark"), ON_SPARK) as server:
        yield server.dsn
