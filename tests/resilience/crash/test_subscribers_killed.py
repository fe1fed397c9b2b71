"""Subscribers of a server that is killed again and again have the table at the end."""

from pathlib import Path

import pytest

from tests.resilience.crash.followed_load import FollowedLoad, FollowedLoadSize
from tests.support.servers import meridian

SHORT = FollowedLoadSize(writers=4, followers=6, strikes=3, transactions=160)
LONG = FollowedLoadSize(writers=16, followers=50, strikes=8, seconds=120)


@pytest.mark.parametrize(
    "size", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_subscribers_resume_after_a_kill(tmp_path: Path, size: FollowedLoadSize) -> None:
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        load = FollowedLoad(lambda: server.dsn, size)
        load.create()

        def strike() -> None:
            server.kill()
            server.start()

        load.run(strike)
        load.judge()
