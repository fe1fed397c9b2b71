"""One simulated run from one integer: scenario, run, verdict.

seed ──▶ Scenario (workload, weather) ──▶ World, clients, nemesis ──▶ History ──▶ judges
                                                └─ aftermath: succession or crash, read all,
                                                   stop, and look at what lies on the disk
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from coordinator.core.messages.catalog_changes import PutTable, PutTimeline
from sql.catalog.catalog import SYSTEM_TIMELINE
from tests.resilience.history.black_box import check_list_append, check_real_time_set
from tests.resilience.history.events import Finding, History, Recorder
from tests.resilience.history.registers import check_registers
from tests.resilience.history.replay import check_replay
from tests.resilience.sim.alterations import Alterations
from tests.resilience.sim.client import Client
from tests.resilience.sim.collections_and_registers import lists, mixed, registers, sets
from tests.resilience.sim.constraints import Bank, Phantom, Skew
from tests.resilience.sim.counters import Counter, Hot
from tests.resilience.sim.definitions import Definitions
from tests.resilience.sim.followers import Followers
from tests.resilience.sim.guarded import Guarded
from tests.resilience.sim.holds import Holds
from tests.resilience.sim.inspection import inspect
from tests.resilience.sim.levels import Levels
from tests.resilience.sim.lines import Lines
from tests.resilience.sim.loop import run
from tests.resilience.sim.memory import Memory
from tests.resilience.sim.migrations import Migrations
from tests.resilience.sim.nemesis import Nemesis
from tests.resilience.sim.notifications import Notifications
from tests.resilience.sim.odds import CALM, WEATHER
from tests.resilience.sim.queues import Queue
from tests.resilience.sim.references import Keys, References
from tests.resilience.sim.rows import by_timeline, timeline_of
from tests.resilience.sim.server import Server, causes
from tests.resilience.sim.session import Session
from tests.resilience.sim.short_writes import ShortWrites
from tests.resilience.sim.sources import Sources
from tests.resilience.sim.user_types import UserTypes
from tests.resilience.sim.uses import Uses
from tests.resilience.sim.views import Views
from tests.resilience.sim.workload import Draw, Plan, Values, Workload
from tests.resilience.sim.world import Broken, Tally, World

WORKLOADS: dict[str, Callable[[Draw], Workload]] = {
    "mixed": mixed,
    "lists": lists,
    "sets": sets,
    "registers": registers,
    "bank": Bank,
    "skew": Skew,
    "phantom": Phantom,
    "counter": Counter,
    "definitions": Definitions,
    "lines": Lines,
    "levels": Levels,
    "holds": Holds,
    "hot": Hot,
    "references": References,
    "keys": Keys,
    "alterations": Alterations,
    "user types": UserTypes,
    "notifications": Notifications,
    "uses": Uses,
    "queue": Queue,
    "guarded": Guarded,
    "migrations": Migrations,
    "short writes": ShortWrites,
    "followers": Followers,
    "sources": Sources,
    "views": Views,
}

STORMS = (
    "crashes",
    "lossy",
    "successions",
    "disks",
    "mixed",
    "clocks",
    "successions",
    "locks",
    "wrong days",
)

END_S = 60.0
"""A run takes a second or two of virtual time; one that takes this long is stuck."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed stands for; workload and weather may be chosen instead."""

    seed: int
    workload: str
    weather: str

    @classmethod
    def of(cls, seed: int, workload: str | None = None, weather: str | None = None) -> "Scenario":
        """Seeds walk through all pairs of workload and weather."""
        names = list(WORKLOADS)
        storm = STORMS[seed // len(names) % len(STORMS)]
        return cls(seed, workload or names[seed % len(names)], weather or storm)

    def __str__(self) -> str:
        return f"SEED={self.seed} ARGS='--workload {self.workload} --weather {self.weather}'"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run showed."""

    scenario: Scenario
    history: History
    findings: tuple[Finding, ...]
    trace: tuple[str, ...]
    tally: Tally

    def report(self) -> str:
        """The findings, and how to see them again."""
        lines = [str(finding) for finding in self.findings]
        return "\n".join([*lines, f"replay: make replay {self.scenario}"])


def simulate(seed: int, workload: str | None = None, weather: str | None = None) -> Outcome:
    """Run one seed: same seed, same outcome, word by word."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return run(_Run(Scenario.of(seed, workload, weather)).outcome())
    finally:
        logging.disable(level)


class _Run:
    """One run; made outside of the loop, used inside."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    async def outcome(self) -> Outcome:
        """Run and judge."""
        scenario = self._scenario
        self._world = world = World(str(scenario), WEATHER[scenario.weather])
        self._values = Values()
        self._workload = WORKLOADS[scenario.workload](Draw(world.random, self._values))
        self._memory = Memory(world)
        self._recorder = Recorder(lambda: int(asyncio.get_running_loop().time() * 1_000_000))
        world.upstream.recorder = self._recorder
        try:
            async with asyncio.timeout(END_S):
                await self._run()
        except TimeoutError:
            world.found("stuck", f"after {END_S} s of virtual time")
        except Exception as error:
            if not all(isinstance(cause, Broken) for cause in causes(error)):
                world.failed(error)
        history = self._recorder.history()
        findings = [*world.findings, *self._judge(history)]
        world.tear_down()
        return Outcome(scenario, history, tuple(findings), tuple(world.trace), world.tally)

    def _judge(self, history: History) -> list[Finding]:
        """A timeline is a history of its own: nothing is promised between two."""
        found = [*self._workload.judge(history)]
        answers = self._memory.answers()
        for name, line in by_timeline(history).items():
            mine = [a for a in answers if timeline_of(a.operation.key).name == name]
            found += check_replay(line, mine)
            found += check_real_time_set(line)
            found += check_list_append(line)
            found += check_registers(line)
        return found

    async def _run(self) -> None:
        world, rng = self._world, self._world.random
        world.start()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(world.keep_serving())
            await self._create_tables()
            for plan in self._workload.first():
                await self._certainly(plan)
            world.odds, world.is_set_up = world.stormy, True
            nemesis = tasks.create_task(Nemesis(world, guards=self._workload.guards).run())
            clients, most = self._workload.crowd()
            work = [self._client().run(rng.randint(most // 2, most)) for _ in range(clients)]
            await asyncio.gather(*work)
            nemesis.cancel()
            await asyncio.wait({nemesis})
            world.odds = CALM
            await self._aftermath()
            serving.cancel()
        self._world.findings += await inspect(world, self._recorder.history())

    def _client(self) -> Client:
        return Client(self._world, self._recorder, self._workload, self._memory, self._values)

    async def _create_tables(self) -> None:
        async def body(session: Session) -> tuple[()]:
            names = self._workload.tables
            tables = [await session.new_table(name) for name in names]
            lines = sorted({timeline_of(name) for name in names} - {SYSTEM_TIMELINE}, key=str)
            await session.define(*map(PutTimeline, lines), *map(PutTable, tables))
            return ()

        server = await self._world.leader()
        session = Session(self._world, server, self._memory, self._values.process())
        await self._world.ask(server, session.run(body), END_S)

    async def _certainly(self, plan: Plan) -> None:
        server = await self._world.leader()
        assert await self._client().once(server, self._values.process(), plan), "it is calm"

    async def _aftermath(self) -> None:
        """The last word: after one more start, everything acknowledged must still be there."""
        world = self._world
        await self._certainly(self._workload.read_all())
        if world.stormy.succession:
            world.start()
        elif not world.is_calm:
            if world.random.random() < 0.5:
                world.fail_power()
            else:
                world.crash(world.servers[-1])
        leader = await world.leader()
        # Those who were deposed may still answer; what they say must be true.
        for server in world.servers:
            if server.is_up:
                await self._client().once(server, self._values.process(), self._workload.plan())
        unsettled = await self._workload.settle(leader)
        if unsettled is not None:
            world.found("unsettled", unsettled)
        for _ in range(4):
            client = self._client()
            await client.once(leader, self._values.process(), self._workload.read_all())
            await client.aside(leader)
        await self._stop(await world.leader())

    async def _see_everybody_off(self, leader: Server) -> None:
        """In calm weather all sessions end, those whose clients have gone, too: then nobody holds
        anything, and nobody waits (K3, T2 of `coordinator/core/locking`).
        """
        cores = [driver.core for driver in leader.driver.lines]
        # Without a clock an OPTIMIZE waits for the next commit (docs/limitations.md).
        clocked = [driver for driver in leader.driver.lines if not driver.core.timeline.manual]
        for _ in range(400):
            left = [queue for core in cores for queue in core._state.locks.queues()]
            if not left and not any(driver.waiting for driver in clocked):
                return
            await asyncio.sleep(0.05)
        waiting = [list(driver._waiting) for driver in clocked]
        self._world.found("left", f"{left} are held or waited for, {waiting} not answered")

    async def _stop(self, leader: Server) -> None:
        await self._see_everybody_off(leader)
        self._world.end(leader)
        cores = [driver.core for driver in leader.driver.lines]
        self._world.since = {core.timeline.name: core.since for core in cores}
        await self._world.ask(leader, leader.driver.stop(), END_S)
        await asyncio.wait({leader.over})
