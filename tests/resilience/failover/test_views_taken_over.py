"""Views over a bank, while coordinators take over from each other: they are their queries."""

from itertools import cycle
from pathlib import Path

import pytest

from tests.resilience.crash.viewed_load import ViewedLoad, ViewedLoadSize
from tests.resilience.failover.coordinators import sharing

pytestmark = pytest.mark.slow

SIZE = ViewedLoadSize(writers=8, readers=4, strikes=6, between=150, looks=100)


def test_views_are_their_queries_at_the_next_coordinator(tmp_path: Path) -> None:
    """It is killed, or stands still until another one leads; then it ends by itself."""
    with sharing(tmp_path, 2) as shared:
        leader, other = shared.coordinators
        leader.server.start()
        load = ViewedLoad(lambda: leader.server.dsn, SIZE)
        load.create()
        ways = cycle(("killed", "paused"))

        def strike() -> None:
            nonlocal leader, other
            old, new = leader, other
            way = next(ways)
            if way == "killed":
                old.server.kill()
            else:
                old.pause()
            new.server.start()
            leader, other = new, old
            if way == "paused":
                old.resume()
                assert old.server.wait() == 1, old.server.log

        load.run(strike)
        load.settle()
        assert leader.server.stop() == 0, leader.server.log
        checked = shared.check()
        assert checked.returncode == 0, checked.stdout + checked.stderr
        leader.server.start()
        load.judge(shared.warehouse)
