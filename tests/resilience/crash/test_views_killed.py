"""Views over a bank, on a server that is killed again and again: always what their queries say."""

from pathlib import Path

import pytest

from tests.resilience.crash.viewed_load import ViewedLoad, ViewedLoadSize
from tests.support.servers import meridian

SHORT = ViewedLoadSize(writers=4, readers=2, strikes=3, between=40, looks=12)
LONG = ViewedLoadSize(writers=12, readers=4, strikes=15, between=400, looks=200)


@pytest.mark.parametrize(
    "size", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_views_are_their_queries_after_kills(tmp_path: Path, size: ViewedLoadSize) -> None:
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        load = ViewedLoad(lambda: server.dsn, size)
        load.create()

        def strike() -> None:
            server.kill()
            server.start()

        load.run(strike)
        load.settle()
        # A last cut of everything, and recovery from it.
        assert server.stop() == 0, server.log
        checked = server.check()
        assert checked.returncode == 0, checked.stdout + checked.stderr
        server.start()
        load.judge(server.data / "warehouse")
