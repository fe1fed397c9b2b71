"""Views over a bank, while coordinators take over from each other: they are their queries."""

from pathlib import Path

import pytest

from tests.resilience.crash.viewed_load import ViewedLoad, ViewedLoadSize
from tests.resilience.failover.coordinators import TakeOvers, sharing

pytestmark = pytest.mark.slow

SIZE = ViewedLoadSize(writers=8, readers=4, strikes=6, between=150, looks=100)


def test_views_are_their_queries_at_the_next_coordinator(tmp_path: Path) -> None:
    """It is killed, or stands still until another one leads; then it ends by itself."""
    with sharing(tmp_path, 2) as shared:
        pair = TakeOvers(shared)
        load = ViewedLoad(lambda: pair.leader.server.dsn, SIZE)
        load.create()
        load.run(pair.strike)
        load.settle()
        assert pair.leader.server.stop() == 0, pair.leader.server.log
        checked = shared.check()
        assert checked.returncode == 0, checked.stdout + checked.stderr
        pair.leader.server.start()
        load.judge(shared.warehouse)
