"""N4, N5, N6 of `strangers.py`: nobody shuts out everybody else."""

import asyncio
from collections.abc import Coroutine, Sequence

import pytest

from coordinator.server.strangers import Stranger, Strangers


class Crowd:
    """Connections to one server. Each has a task, which waits in silence, or busily."""

    def __init__(self, places: int) -> None:
        self.strangers = Strangers(places)
        self.tasks: list[asyncio.Task[bool]] = []
        self.admitted: list[Stranger] = []

    async def come(self, address: str | None, *, is_busy: bool = False) -> bool:
        """Whether it is let in."""
        count = len(self.admitted)
        living = self._live(address, is_busy=is_busy)
        self.tasks.append(asyncio.create_task(living))  # noqa: TID251
        await asyncio.sleep(0)
        return len(self.admitted) > count

    async def _live(self, address: str | None, *, is_busy: bool) -> bool:
        """Whether it was turned away later."""
        one = self.strangers.admit(address)
        if one is None:
            return False
        self.admitted.append(one)
        try:
            if is_busy:
                await asyncio.Event().wait()
            with one.silence():
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            return one.caught()
        finally:
            self.strangers.forget(one)
        raise AssertionError("nobody sets the events")

    async def come_all(self, addresses: Sequence[str | None]) -> int:
        """How many are there at the end."""
        for address in addresses:
            assert await self.come(address)
        await asyncio.sleep(0)
        return self.left()

    def left(self) -> int:
        """How many are there."""
        return sum(not task.done() for task in self.tasks)


def play(story: Coroutine[object, object, None]) -> None:
    """Run it; what still waits is cancelled."""
    asyncio.run(story)


@pytest.mark.parametrize(
    "of_one_site",
    [
        ["10.0.0.1"] * 100,
        ["10.0.0.1", "::ffff:10.0.0.1"] * 50,
        [f"2001:db8::{one:x}" for one in range(100)],
        [f"fe80::{one:x}%eth0" for one in range(1, 101)],
    ],
)
def test_one_site_takes_a_quarter_of_the_places(of_one_site: list[str]) -> None:
    async def story() -> None:
        crowd = Crowd(20)
        assert await crowd.come_all(of_one_site) == 5
        assert await crowd.come_all([f"10.0.1.{one}" for one in range(100)]) == 20
        assert await crowd.come_all([None] * 100) == 40

    play(story())


def test_the_oldest_silent_one_goes() -> None:
    async def story() -> None:
        crowd = Crowd(4)
        assert await crowd.come("10.0.0.1", is_busy=True)
        for last in (2, 3, 4):
            assert await crowd.come(f"10.0.0.{last}")
        busy, *silent = crowd.tasks
        assert await crowd.come("10.0.0.5")
        await asyncio.sleep(0)
        assert [task.done() for task in silent] == [True, False, False]
        assert silent[0].result()
        # A share of one, and the one is busy: nobody goes for a second one of its address.
        assert not await crowd.come("10.0.0.1")
        assert not busy.done()
        assert crowd.left() == 4

    play(story())


def test_places_are_given_back() -> None:
    async def story() -> None:
        strangers = Strangers(2)
        for address in ("10.0.0.1", None, "2001:db8::1"):
            for _ in range(5):
                one = strangers.admit(address)
                assert one is not None
                strangers.forget(one)
                strangers.forget(one)

    play(story())
