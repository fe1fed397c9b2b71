"""Constant queries that take long stand in nobody's way (J1 of `execution/in_process.py`)."""

from threading import Event, Thread
from typing import Any

import psycopg
import pytest

from coordinator.execution import in_process
from tests.support.stack import serving

SECONDS_MAX = 60

LONG = {
    "growing": ("select regexp_count(repeat('ab', 60), 'a')", None),
    "given": ("select regexp_count(%s, 'a')", ["ab" * 6_000]),
    "written": (f"select regexp_count('{'ab' * 6_000}', 'a')", None),
}


class Held:
    """What runs beside the loop, held until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.let_go = Event(), Event()
        self._apart = in_process._apart  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(in_process, "_apart", self._held)

    def _held(self, *args: Any) -> object:
        self.begun.set()
        assert self.let_go.wait(SECONDS_MAX)
        return self._apart(*args)


@pytest.mark.parametrize("name", LONG)
def test_others_go_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, parameters = LONG[name]
    held = Held(monkeypatch)
    with serving() as dsn, psycopg.connect(dsn) as one, psycopg.connect(dsn) as other:
        taking = Thread(target=lambda: one.execute(query.encode(), parameters))
        taking.start()
        assert held.begun.wait(SECONDS_MAX)
        assert other.execute("select 1").fetchone() == (1,)
        held.let_go.set()
        taking.join()
        assert one.execute("select 2").fetchone() == (2,)


def test_they_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select repeat('ab', 6)")
        held.let_go.set()
        connection.execute("reset statement_timeout")
        assert connection.execute("select length(repeat('ab', 6))").fetchone() == (12,)
