"""Tables fed by a PostgreSQL that is written to, while the server or PostgreSQL is struck."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.resilience.upstream.example import show
from tests.resilience.upstream.feed import (
    Feed,
    crash_upstream,
    fed,
    finish,
    kill,
    pause,
    restart_upstream,
    stop_in_order,
)


@pytest.mark.parametrize("strike", [kill, pause, crash_upstream])
def test_struck_once(strike: Callable[[Feed], None], tmp_path: Path) -> None:
    with fed(tmp_path) as feed:
        feed.progress()
        strike(feed)
        feed.progress()
        finish(feed)


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", [False, True])
def test_struck_often(synchronous: bool, tmp_path: Path) -> None:
    with fed(tmp_path, synchronous=synchronous) as feed:
        for _ in range(4):
            for strike in (kill, pause, stop_in_order, crash_upstream, kill, restart_upstream):
                feed.progress()
                strike(feed)
        feed.progress()
        finish(feed)


def test_the_example(tmp_path: Path) -> None:
    """With a synchronous upstream no COMMIT returns that is not readable here, although the server
    is killed in between.
    """
    told: list[str] = []
    assert show(tmp_path, told.append, clients=4, kills=1, commits=40) == 0
    assert "never a miss" in told[-1]
