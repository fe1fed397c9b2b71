"""Visits of the page end by themselves, and their sessions with them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
import uvloop

from coordinator.monitoring import page_visits
from coordinator.monitoring.page_sessions import PageResult
from coordinator.monitoring.page_visits import Visits


@dataclass
class _Session:
    user: str = "ada"
    is_proved: bool = True
    is_over: bool = False

    def __post_init__(self) -> None:
        self.left = asyncio.Event()

    async def ask(self, query: str) -> PageResult:
        return PageResult()

    def leave(self) -> None:
        self.left.set()


def _run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work()

    uvloop.run(bounded())


def test_a_visit_is_found_by_its_cookie_only() -> None:
    async def work() -> None:
        visits, session = Visits(), _Session()
        visit, cookie = visits.begin(session)
        other, second = visits.begin(_Session())
        assert visits.find(cookie) is visit
        assert visits.find(second) is other
        assert len({cookie, second, visit.token, other.token}) == 4
        for wrong in (None, "", cookie[:-1], visit.token, cookie + " "):
            assert visits.find(wrong) is None
        assert visit.has_token(visit.token)
        assert not visit.has_token(other.token)
        assert not visit.has_token("")
        visits.end(cookie)
        assert visits.find(cookie) is None
        assert session.left.is_set()
        visits.end_all()

    _run(work)


def test_an_idle_visit_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_visits, "VISIT_IDLE_S", 0.01)

    async def work() -> None:
        visits, session = Visits(), _Session()
        _, cookie = visits.begin(session)
        await session.left.wait()
        assert visits.find(cookie) is None

    _run(work)


def test_a_visit_ends_however_often_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_visits, "VISIT_S", 0.05)

    async def work() -> None:
        visits, session = Visits(), _Session()
        _, cookie = visits.begin(session)

        async def ask() -> None:
            while True:
                visits.find(cookie)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            asking = group.create_task(ask())
            await session.left.wait()
            asking.cancel()
        assert visits.find(cookie) is None

    _run(work)


def test_a_session_that_is_over_ends_its_visit() -> None:
    async def work() -> None:
        visits, session = Visits(), _Session()
        _, cookie = visits.begin(session)
        session.is_over = True
        assert visits.find(cookie) is None

    _run(work)


def test_for_one_too_many_the_idlest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_visits, "VISITS_MAX", 3)

    async def work() -> None:
        visits = Visits()
        sessions = [_Session() for _ in range(4)]
        cookies = [visits.begin(session)[1] for session in sessions[:3]]
        assert visits.find(cookies[0]) is not None
        visits.begin(sessions[3])
        assert [session.left.is_set() for session in sessions] == [False, True, False, False]
        visits.end_all()
        assert all(session.left.is_set() for session in sessions)

    _run(work)
