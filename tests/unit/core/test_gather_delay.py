"""How long a commit waits for others (P1 and P2 of `core/commit_delay.py`)."""

import asyncio
from collections.abc import Awaitable, Callable

from coordinator.driver.gather_delay import TURNS_MAX, WAIT_S, GatherDelay

Story = Callable[[GatherDelay, list[bool]], Awaitable[None]]


def tell(story: Story) -> None:
    async def whole() -> None:
        ended: list[bool] = []
        await story(GatherDelay(ended.append), ended)

    asyncio.run(whole())


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_turn_without_a_message_ends_it() -> None:
    async def story(delay: GatherDelay, ended: list[bool]) -> None:
        delay.wait(until_heard=False)
        assert not ended
        await turns(2)
        assert ended == [False]
        await turns(5)
        assert ended == [False]

    tell(story)


def test_messages_prolong_it_by_so_many_turns() -> None:
    async def story(delay: GatherDelay, ended: list[bool]) -> None:
        delay.wait(until_heard=False)
        for _ in range(TURNS_MAX - 1):
            delay.heard()
            await turns(1)
            assert not ended
        delay.heard()
        await turns(1)
        assert ended == [False]

    tell(story)


def test_a_message_ends_the_wait_for_somebody() -> None:
    async def story(delay: GatherDelay, ended: list[bool]) -> None:
        delay.wait(until_heard=True)
        await turns(20)
        assert not ended
        delay.heard()
        await turns(2)
        assert ended == [False]

    tell(story)


def test_who_does_not_come_is_not_waited_for() -> None:
    async def story(delay: GatherDelay, ended: list[bool]) -> None:
        delay.wait(until_heard=True)
        assert not ended
        await asyncio.sleep(2 * WAIT_S)
        assert ended == [True]
        # The next wait begins anew.
        delay.wait(until_heard=False)
        await turns(2)
        assert ended == [True, False]

    tell(story)


def test_it_is_late_though_somebody_comes_again_and_again() -> None:
    """Whoever is asked to go on waiting does so until the time that the first wait has set."""

    async def whole() -> None:
        ended: list[bool] = []

        def over(is_late: bool) -> None:
            ended.append(is_late)
            if not is_late:
                delay.wait(until_heard=True)

        delay = GatherDelay(over)
        delay.wait(until_heard=True)
        while True not in ended:
            delay.heard()
            await asyncio.sleep(0)
        assert ended.count(True) == 1
        await asyncio.sleep(5 * WAIT_S)
        assert ended.count(True) == 1

    asyncio.run(whole())
