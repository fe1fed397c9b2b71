"""One coordinator of a simulation: a process, a clock, and its ways to the stash and the store."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from compute.access.key_index import KeyIndex
from coordinator.core.settings import CoreSettings
from coordinator.driver.driver import Driver, MaintainEffect
from coordinator.driver.sources import SourceComponents
from coordinator.driver.timelines import Timelines
from coordinator.execution.change_streams.shared_steps import SharedSteps
from coordinator.server.recovery import recover_timelines
from sql.catalog.catalog import Catalog, Timeline
from sql.statements.bound import Subscribe
from storage.clock import DoubtingClock
from storage.errors import Corrupt, Determinate, Fatal, Fenced, StorageError
from storage.object_store import ObjectStore
from storage.shard import Fence
from storage.stash import Stash
from storage.types import Epoch, Timestamp
from tests.resilience.sim.clock_watch import BootTime, ClockWatch
from tests.resilience.sim.faults import FaultyStash
from tests.resilience.sim.lock_watch import watch
from tests.resilience.sim.process import Process
from tests.resilience.sim.rows import schema_of

T = TypeVar("T")
START_US = 1_700_000_000_000_000


class WallClock:
    """The loop's virtual time plus an offset that the nemesis moves; it may stand still."""

    def __init__(self) -> None:
        self.offset_us = 0
        self.stands_at: Timestamp | None = None

    def now(self) -> Timestamp:
        """Microseconds."""
        if self.stands_at is not None:
            return self.stands_at
        elapsed = int(asyncio.get_running_loop().time() * 1_000_000)
        return Timestamp(START_US + elapsed + self.offset_us)

    def stop(self) -> None:
        """Stand still."""
        self.stands_at = self.now()

    def go(self) -> None:
        """Show the right time again."""
        self.stands_at = None


class Server:
    """See the module. `over` is done when the process has ended; `failure` is a bug it died of."""

    def __init__(
        self,
        number: int,
        wall: WallClock,
        settings: CoreSettings,
        found: Callable[[str, str], None],
        *,
        jump_max_us: int,
        maintain: MaintainEffect,
        sources: Callable[["Server"], SourceComponents],
    ) -> None:
        """`found` is told what must not be. `jump_max_us`: of a clock that is believed."""
        self.number = number
        self.process = Process(f"server {number}")
        self.wall = wall
        self.clock = DoubtingClock(wall, BootTime(), jump_max_us)
        self._clock_watch = ClockWatch(self.clock, found)
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cause: BaseException | None = None
        self.cut_off = False
        self.slowness = 1.0
        self._settings = settings
        self._found = found
        self._driver: Timelines | None = None
        self._stash: FaultyStash | None = None
        self.key_index: KeyIndex | None = None
        self.told = SharedSteps()
        self.statements: dict[tuple[int, bool, int | None], Subscribe] = {}
        """Of followers, by the table and key that each has: those of one are told alike."""
        self._maintain = maintain
        self._sources = sources

    @property
    def is_started(self) -> bool:
        """True if start-up came to its end."""
        return self._driver is not None

    @property
    def is_up(self) -> bool:
        """True if it answers, or would if it were not paused."""
        return self._driver is not None and not self.over.done()

    @property
    def driver(self) -> Timelines:
        """What sessions talk to."""
        assert self._driver is not None, "only a server that is up is talked to"
        return self._driver

    @property
    def epoch(self) -> Epoch | None:
        """What it got when it took over."""
        return None if self._stash is None else self._stash.epoch

    def start(self, stash: FaultyStash, store: ObjectStore) -> None:
        """Begin to serve."""
        self._stash = stash
        self.process.start(self._live(stash, store)).add_done_callback(self._ended)

    def kill(self) -> None:
        """As by kill -9."""
        self.process.kill()
        self._is_over()

    def tear_down(self) -> None:
        """The run is over: let tasks end, and do nothing more."""
        if self._driver is not None:
            for driver in self._driver.lines:
                driver._over = True
        self.process.tear_down()

    def accept_clock(self) -> bool:
        """As `SELECT meridian.accept_clock()`: whether it was doubted."""
        doubted = self.clock.accept()
        if doubted:
            self._clock_watch.believe()
        return doubted

    async def _live(self, stash: Stash, store: ObjectStore) -> None:
        driver = await recover_timelines(
            stash,
            store,
            self.clock,
            self._settings,
            schema_of,
            run_blocking=on_the_spot,
            sources=self._sources(self),
        )
        _refuse_fenced(driver)
        self._watch(driver)
        driver.system.maintain_views = self._maintain
        self._driver = driver
        await driver.run()

    def _watch(self, timelines: Timelines) -> None:
        for driver in timelines.lines:
            watch(driver.core, self._found)
            self._clock_watch.watch(driver.core)
        open_line = timelines._open_line

        async def opened(timeline: Timeline, catalog: Catalog) -> Driver:
            driver = await open_line(timeline, catalog)
            watch(driver.core, self._found)
            self._clock_watch.watch(driver.core)
            return driver

        timelines._open_line = opened

    def _ended(self, life: "asyncio.Task[None]") -> None:
        self.cause = None if life.cancelled() else life.exception()
        self.process.kill()
        self._is_over()

    def _is_over(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


def _refuse_fenced(timelines: Timelines) -> None:
    """Nothing is damaged here but by a bug: a table that is fenced at the start shows one."""
    everything = [entry for driver in timelines.lines for entry in driver.core.shards.items()]
    for shard, state in everything:
        if state.fence is Fence.UNREADABLE:
            raise Determinate(f"injected: {shard} could not be read")
        if state.fenced:
            raise Corrupt(f"{shard} is fenced")


def causes(error: BaseException | None) -> list[BaseException]:
    """The exceptions inside of groups."""
    if error is None:
        return []
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in causes(inner)]
    return [error]


def is_bug(server: Server, *, deposed: bool) -> bool:
    """True if a server died of something that no fault explains."""
    for cause in causes(server.cause):
        match cause:
            case Fenced() if deposed:
                continue
            case Corrupt() if deposed and not server.is_started:
                continue  # what it read has been changed by a successor meanwhile
            case Fatal():
                continue
            case StorageError() if not server.is_started and "injected" in str(cause):
                continue
            case _:
                return True
    return False


async def on_the_spot(work: Callable[[], T]) -> T:
    """Run what the server runs in a thread; a simulation has none."""
    return work()
