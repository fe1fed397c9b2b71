"""Subscribers of coordinators that take over from each other have the table at the end."""

from pathlib import Path

import pytest

from tests.resilience.crash.followed_load import FollowedLoad, FollowedLoadSize
from tests.resilience.failover.coordinators import TakeOvers, sharing

pytestmark = pytest.mark.slow

SIZE = FollowedLoadSize(writers=16, followers=50, strikes=6, seconds=120)


def test_subscribers_resume_at_the_next_coordinator(tmp_path: Path) -> None:
    """It is killed, or stands still until another one leads; then it ends by itself."""
    with sharing(tmp_path, 2) as shared:
        pair = TakeOvers(shared)
        load = FollowedLoad(lambda: pair.leader.server.dsn, SIZE)
        load.create()
        load.run(pair.strike)
        load.judge()
        assert pair.leader.server.stop() == 0, pair.leader.server.log
        checked = shared.check()
        assert checked.returncode == 0, checked.stdout + checked.stderr
