"""Leadership: which question answers which read."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from coordinator.driver.leadership import WATCH_TICKS, Leadership
from storage.errors import Determinate, Fenced
from storage.memory import MemoryStash
from storage.types import Epoch


class SlowStash(MemoryStash):
    """Each question waits for a word from the test."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[asyncio.Future[None]] = []

    async def confirm(self, epoch: Epoch) -> None:
        question: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.questions.append(question)
        await question
        await super().confirm(epoch)


class ExclusiveStash(SlowStash):
    @property
    def exclusive(self) -> bool:
        return True


Story = Callable[[SlowStash, Leadership, asyncio.TaskGroup], Awaitable[None]]


def tell(story: Story, stash: SlowStash | None = None) -> None:
    async def whole() -> None:
        slow = stash or SlowStash()
        epoch = await slow.fence()
        async with asyncio.TaskGroup() as tasks:
            leadership = Leadership(slow, epoch, lambda work: void(tasks.create_task(work)))
            await story(slow, leadership, tasks)

    asyncio.run(whole())


def void(_task: object) -> None:
    """Leadership does not look at the task."""


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_one_question_answers_all_who_waited_when_it_went_out() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        first = [tasks.create_task(leadership.confirm()) for _ in range(3)]
        await settle()
        assert len(stash.questions) == 1
        late = [tasks.create_task(leadership.confirm()) for _ in range(2)]
        await settle()
        assert len(stash.questions) == 1
        stash.questions[0].set_result(None)
        await settle()
        assert all(task.done() for task in first)
        # F1: whoever asked while the first was under way needs the second.
        assert not any(task.done() for task in late)
        assert len(stash.questions) == 2
        stash.questions[1].set_result(None)
        await settle()
        assert all(task.done() for task in late)

    tell(story)


def test_a_read_that_asks_after_the_take_over_is_not_answered_by_an_older_question() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        before = tasks.create_task(leadership.confirm())
        await settle()
        stash.questions[0].set_result(None)
        await settle()
        assert before.done()
        await stash.fence()
        late = tasks.create_task(outcome(leadership))
        await settle()
        stash.questions[1].set_result(None)
        assert isinstance(await late, Fenced)

    with pytest.raises(ExceptionGroup) as ended:
        tell(story)
    # F3: the driver's group ends with it.
    assert ended.group_contains(Fenced)


async def outcome(leadership: Leadership) -> BaseException | None:
    try:
        await leadership.confirm()
    except BaseException as error:
        return error
    return None


def test_fenced_is_told_to_all_who_wait() -> None:
    outcomes: list[asyncio.Task[BaseException | None]] = []

    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        async with asyncio.TaskGroup() as own:
            outcomes.append(own.create_task(outcome(leadership)))
            await settle()
            outcomes.append(own.create_task(outcome(leadership)))
            await settle()
            await stash.fence()
            stash.questions[0].set_result(None)

    with pytest.raises(ExceptionGroup):
        tell(story)
    assert [type(task.result()) for task in outcomes] == [Fenced, Fenced]


def test_a_stash_that_is_away_fails_those_who_asked_and_no_other() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        first = tasks.create_task(outcome(leadership))
        await settle()
        second = tasks.create_task(outcome(leadership))
        await settle()
        stash.questions[0].set_exception(Determinate("away"))
        await settle()
        assert isinstance(first.result(), Determinate)
        assert not second.done()
        stash.questions[1].set_result(None)
        assert await second is None

    tell(story)


def test_who_gives_up_leaves_the_others_waiting() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        gone = tasks.create_task(leadership.confirm())
        stays = tasks.create_task(leadership.confirm())
        await settle()
        gone.cancel()
        await settle()
        stash.questions[0].set_result(None)
        await stays

    tell(story)


def test_an_exclusive_stash_is_never_asked() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        await leadership.confirm()
        for _ in range(WATCH_TICKS):
            leadership.tick()
        await settle()
        assert not stash.questions

    tell(story, ExclusiveStash())


def test_a_coordinator_that_nobody_asks_learns_that_it_is_deposed() -> None:
    async def story(stash: SlowStash, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        await stash.fence()
        for _ in range(WATCH_TICKS):
            leadership.tick()
        await settle()
        stash.questions[0].set_result(None)

    with pytest.raises(ExceptionGroup) as ended:
        tell(story)
    assert ended.group_contains(Fenced)
