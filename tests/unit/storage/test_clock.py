"""A wall clock that jumps ahead is not believed (J1-J3 of `storage/clock.py`)."""

import asyncio
import logging
from dataclasses import dataclass

import pytest

from compute.arrow import table_schema
from coordinator.core.messages.catalog_changes import PutTable
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.settings import CoreSettings
from coordinator.driver.driver import Driver
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from storage.clock import BootClock, Clock, DoubtingClock, SystemClock, accept_clock, clock_state
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import Timestamp
from tests.resilience.sim.loop import VirtualTimeLoop

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 1_440 * MINUTE
START = 1_700_000_000 * SECOND


@dataclass
class Hands:
    """Two clocks that a test turns by hand."""

    boot_us: int = 5 * DAY
    wall_us: int = START

    def clock(self, jump_max_us: int = MINUTE) -> DoubtingClock:
        return DoubtingClock(Hand(self, "wall_us"), Hand(self, "boot_us"), jump_max_us)

    def pass_time(self, us: int) -> None:
        self.boot_us += us
        self.wall_us += us


@dataclass
class Hand:
    hands: Hands
    name: str

    def now(self) -> Timestamp:
        return Timestamp(getattr(self.hands, self.name))


def test_time_passes_however_long_nobody_asks() -> None:
    """A suspended laptop, a paused process: both clocks went on."""
    hands = Hands()
    clock = hands.clock()
    hands.pass_time(10 * DAY)
    assert clock.now() == START + 10 * DAY
    assert clock.state.jumps == 0


def test_small_steps_are_believed() -> None:
    hands = Hands()
    clock = hands.clock()
    for _ in range(5):
        hands.wall_us += MINUTE
        assert clock.now() == hands.wall_us
    hands.wall_us += MINUTE + 1
    assert clock.now() == hands.wall_us - MINUTE - 1


def test_a_jump_ahead_is_not_believed_until_the_clock_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hands = Hands()
    clock = hands.clock()
    with caplog.at_level(logging.WARNING, "meridian.clock"):
        hands.wall_us += 10 * DAY
        assert clock.now() == START
        hands.pass_time(3 * SECOND)
        assert clock.now() == START + 3 * SECOND
        assert (clock.state.jumps, clock.state.doubted) == (1, True)
        hands.wall_us -= 10 * DAY - SECOND
        assert clock.now() == START + 4 * SECOND
        assert (clock.state.jumps, clock.state.doubted) == (1, False)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith("the clock has jumped ahead by 10 days, 0:00:00")


def test_a_step_back_is_believed_and_so_is_its_end() -> None:
    """J3: an hour back, and an hour forth again."""
    hands = Hands()
    clock = hands.clock()
    hands.wall_us -= 60 * MINUTE
    assert clock.now() == START - 60 * MINUTE
    hands.wall_us += 60 * MINUTE
    assert clock.now() == START
    assert clock.state.jumps == 0


def test_a_jump_that_nobody_has_seen_is_accepted_as_one() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_us += DAY
    assert accept_clock(clock)
    assert clock.state.jumps == 1
    assert clock.now() == START + DAY


def test_an_accepted_clock_is_believed() -> None:
    hands = Hands()
    clock = hands.clock()
    assert not accept_clock(clock)
    hands.wall_us += 10 * DAY
    assert clock.now() == START
    assert accept_clock(clock)
    assert clock.now() == START + 10 * DAY
    assert clock_state(clock).doubted is False


def test_a_process_that_stops_between_two_readings_sees_no_jump() -> None:
    hands = Hands()

    class Pausing:
        pause_us = 0

        def now(self) -> Timestamp:
            found = Timestamp(hands.wall_us)
            hands.pass_time(self.pause_us)
            return found

    wall = Pausing()
    clock = DoubtingClock(wall, Hand(hands, "boot_us"), MINUTE)
    wall.pause_us = DAY
    clock.now()
    wall.pause_us = 0
    assert clock.now() == START + DAY
    assert clock.state.jumps == 0


def test_the_machines_own_clocks_agree() -> None:
    clock = DoubtingClock(SystemClock(), BootClock(), MINUTE)
    assert abs(clock.now() - SystemClock().now()) < MINUTE
    assert not accept_clock(SystemClock())
    assert clock_state(SystemClock()).jumps == 0


# --- a server ----------------------------------------------------------------------------------


class LoopClock:
    """The virtual time of the loop, and as much as a test adds."""

    def __init__(self, start_us: int) -> None:
        self.start_us = start_us

    def now(self) -> Timestamp:
        return Timestamp(self.start_us + int(asyncio.get_running_loop().time() * SECOND))


async def served(clock: Clock) -> Driver:
    timelines = await recover_timelines(
        MemoryStash(),
        MemoryObjectStore(),
        clock,
        CoreSettings(history_us=MINUTE),
        lambda table: table_schema(table.columns),
        run_blocking=at_once,
    )
    return timelines.system


async def at_once(work: object) -> object:
    assert callable(work)
    return work()


async def create(driver: Driver) -> Timestamp:
    txn = driver.begin(ConnectionId(0))
    await driver.snapshot(txn)
    oid, shard = await driver.new_table_id()
    table = Table(oid, "public", f"t{oid}", shard, (Column("v", INT8),))
    driver.change_catalog(txn, [PutTable(table)])
    return await driver.commit(txn)


async def moment_ahead(*, doubting: bool) -> tuple[int, int, int]:
    """A server whose clock is ten days ahead for a moment, and right again: how far `since` and
    two commits, one in that moment, are from the right time. Microseconds.
    """
    wall, boot = LoopClock(START), LoopClock(0)
    driver = await served(DoubtingClock(wall, boot, MINUTE) if doubting else wall)
    running = asyncio.ensure_future(driver.run())  # noqa: TID251 - ended below
    await asyncio.sleep(0)
    try:
        await create(driver)
        await asyncio.sleep(120)
        wall.start_us += 10 * DAY
        then = await create(driver) - (wall.now() - 10 * DAY)
        await asyncio.sleep(3)
        wall.start_us -= 10 * DAY
        await asyncio.sleep(30)
        later = await create(driver) - wall.now()
        (seen,) = driver.observe()
        assert seen.clock.jumps == int(doubting)
        assert not seen.clock.doubted
        return seen.since - wall.now(), then, later
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_one_wrong_moment_takes_no_history_away() -> None:
    """And it does without the doubt: the test sees what it is about."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        since, then, later = runner.run(moment_ahead(doubting=True))
    assert -2 * MINUTE < since <= -MINUTE + SECOND
    assert abs(then) < SECOND
    assert abs(later) < SECOND
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        since, then, later = runner.run(moment_ahead(doubting=False))
    assert since > 9 * DAY
    assert then > 9 * DAY
    assert later > 9 * DAY
