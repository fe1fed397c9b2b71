"""Answers of one turn of the loop are written together, and those of who is alone at once."""

import asyncio

import pytest

from coordinator.server.turn_writes import ALONE_MAX, AT_ONCE, FLUSH_THRESHOLD_BYTES, TurnWrites

SHORT = 100
"""The bytes of an answer."""


class _Client:
    def __init__(self, written: list["_Client"], *, fails: bool = False) -> None:
        self._written, self._fails = written, fails
        self.given_up = False

    def write(self) -> None:
        if self._fails:
            raise RuntimeError("broken")
        self._written.append(self)

    def give_up(self) -> None:
        self.given_up = True


def test_several_are_written_at_the_end_of_the_turn_in_order() -> None:
    written: list[_Client] = []
    one, two = _Client(written), _Client(written)

    async def scenario() -> None:
        writes = TurnWrites()
        for client in (two, one, two):
            writes.answered(client, SHORT)
        assert not written
        await asyncio.sleep(0)
        assert written == [two, one]

    asyncio.run(scenario())


def test_who_is_alone_is_written_at_once_until_others_come() -> None:
    written: list[_Client] = []
    one, two = _Client(written), _Client(written)

    async def scenario() -> None:
        writes = TurnWrites()
        for _ in range(ALONE_MAX):
            writes.answered(one, SHORT)
            await asyncio.sleep(0)
        written.clear()
        for count in range(AT_ONCE):
            writes.answered(one, SHORT)
            assert len(written) == count + 1
        writes.answered(one, SHORT)
        assert len(written) == AT_ONCE, "now and then we look whether others have come"
        writes.answered(two, SHORT)
        await asyncio.sleep(0)
        written.clear()
        for client in (one, two):
            writes.answered(client, SHORT)
        assert not written, "they have"
        await asyncio.sleep(0)
        assert written == [one, two]

    asyncio.run(scenario())


def test_a_connection_that_is_closed_is_written_before(caplog: pytest.LogCaptureFixture) -> None:
    """W1; and W3: who fails does not keep the others from theirs."""
    written: list[_Client] = []
    one, two, broken = _Client(written), _Client(written), _Client(written, fails=True)

    async def scenario() -> None:
        writes = TurnWrites()
        for client in (broken, one, two):
            writes.answered(client, SHORT)
        writes.write_before_close(two)
        assert written == [two]
        writes.write_before_close(two)
        await asyncio.sleep(0)
        assert written == [two, one]
        assert broken.given_up
        assert not one.given_up

    asyncio.run(scenario())
    assert "cannot write" in caplog.text


def test_who_fails_at_once_or_as_it_is_closed_raises_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W3: the driver tells of a commit, and nothing may reach it; closing goes on."""
    alone, closed = _Client([], fails=True), _Client([], fails=True)

    async def scenario() -> None:
        writes = TurnWrites()
        writes.answered(closed, SHORT)
        writes.write_before_close(closed)
        assert closed.given_up
        for _ in range(ALONE_MAX):
            writes.answered(_Client([]), SHORT)
            await asyncio.sleep(0)
        writes.answered(alone, SHORT)
        assert alone.given_up

    asyncio.run(scenario())
    assert caplog.text.count("cannot write") == 2


def test_much_is_written_at_once() -> None:
    """W4; what waited of the same connection is written with it."""
    written: list[_Client] = []
    one, two = _Client(written), _Client(written)

    async def scenario() -> None:
        writes = TurnWrites()
        writes.answered(one, SHORT)
        writes.answered(two, SHORT)
        writes.answered(one, FLUSH_THRESHOLD_BYTES + 1)
        assert written == [one]
        await asyncio.sleep(0)
        assert written == [one, one, two], "who has nothing to say writes nothing"

    asyncio.run(scenario())
