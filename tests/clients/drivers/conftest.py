"""One server for all driver tests; each test has tables of its own."""

from collections.abc import Iterator

import pytest

from tests.support.stack import serving


@pytest.fixture(scope="session")
def dsn() -> Iterator[str]:
    """The DSN of a running server."""
    with serving() as address:
        yield address
