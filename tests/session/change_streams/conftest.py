"""A server for each module, which tells progress and compares answers often."""

from collections.abc import Iterator

import pytest

from coordinator.core.settings import CoreSettings
from tests.support.stack import serving

SOON = CoreSettings(subscribe_progress_us=50_000, subscribe_compare_us=20_000)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving(core=SOON) as found:
        yield found
