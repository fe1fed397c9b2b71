"""Clients of a simulation: they ask, record what they were told, and do not know the rest.

INVARIANTS
  R1  `fail` is recorded only for what certainly did not happen: refused with a SQLSTATE that says
      so, or over before the server was asked to commit. Everything else that ended badly is `info`.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial

from coordinator.core.messages.identities import Isolation
from sql.errors import SqlError
from tests.resilience.history.events import Recorder
from tests.resilience.sim.memory import Memory
from tests.resilience.sim.odds import CALM
from tests.resilience.sim.server import Server
from tests.resilience.sim.session import Session
from tests.resilience.sim.side_reads import STALENESS_US_MAX, Aside
from tests.resilience.sim.transaction import Result
from tests.resilience.sim.workload import Plan, Values, Workload
from tests.resilience.sim.world import Gone, World

DEFINITE = ("40001", "40P01", "55P03", "58030", "53100", "53200")
"""What the server may refuse with here; all of them say that it certainly did not happen."""

UNKNOWN = ("57P01", "40003", "08007")
"""The server ends, or does not know itself."""

DEFAULT = Isolation.STRICT_SERIALIZABLE
WEAK = (
    DEFAULT,
    Isolation.SERIALIZABLE,
    Isolation.REPEATABLE_READ,
    Isolation.READ_COMMITTED,
)

PATIENCE_S = 1.5
CALM_PATIENCE_S = 20.0
"""Long enough for all lines to be served: whoever still waits then waits for ever."""


@dataclass(slots=True)
class Client:
    """See the module."""

    world: World
    recorder: Recorder
    workload: Workload
    memory: Memory
    values: Values

    async def run(self, transactions: int) -> None:
        """Some transactions one after the other; a new process number after an unknown outcome."""
        rng = self.world.random
        process = self.values.process()
        for _ in range(transactions):
            await asyncio.sleep(rng.random() * 0.02)
            server = await self.world.server()
            if not await self.once(server, process, self.workload.plan()):
                process = self.values.process()
            if rng.random() < 0.35:
                await self.aside(await self.world.server())

    async def once(self, server: Server, process: int, plan: Plan) -> bool:
        """One transaction; False if its outcome is unknown."""
        owner = self.values.process()
        session = Session(
            self.world,
            server,
            self.memory,
            owner,
            plan.isolation,
            timeline=plan.timeline,
            plain=plan.plain,
        )
        self.recorder.invoke(process, *plan.operations)
        try:
            work = session.run(plan.body, alone=plan.alone)
            result: Result = await self.world.ask(server, work, self._patience())
        except SqlError as error:
            definite = (*DEFINITE, *plan.refusals, *self.workload.refusals)
            if error.sqlstate not in (*definite, *UNKNOWN):
                self.world.failed(error)
            elif plan.sure and self._has_no_excuse(error):
                self.world.found("refused", f"{error.sqlstate} {error} for {plan.operations}")
            certain = error.sqlstate in definite or not session.asked_to_commit
        except Gone:
            if self.world.is_calm:
                self.world.found("unanswered", f"{plan.operations}")
            certain = server.over.done() and not session.asked_to_commit
        except Exception as error:
            self.world.failed(error)
            certain = False
        else:
            if self.world.random.random() >= self.world.odds.reply_lost:
                self.recorder.ok(process, *result.operations, ts=result.ts)
                return True
            certain = False
        if certain:
            self.recorder.fail(process)
        else:
            self.recorder.info(process)
        return certain

    def _has_no_excuse(self, error: SqlError) -> bool:
        """Whether a plan that takes its locks should have gone through at its first try."""
        world = self.world
        good = world.is_calm and world.is_precise and world.settings.locks
        return good and error.sqlstate in ("40001", "40P01")

    async def aside(self, server: Server) -> None:
        """Time travel, stale reads or maintenance, beside the history."""
        try:
            await self.world.ask(server, self._aside(server), self._patience())
        except Gone:
            return
        except SqlError as error:
            if error.sqlstate not in (*DEFINITE, *UNKNOWN, *self.workload.refusals):
                self.world.failed(error)
        except Exception as error:  # as above
            self.world.failed(error)

    def _aside(self, server: Server) -> Coroutine[None, None, None]:
        rng = self.world.random
        session = partial(Aside, self.world, server, self.memory, self.values.process())
        if rng.random() < self.workload.upkeep:
            return session(DEFAULT).maintain()
        if rng.random() < 0.25:
            stale = rng.choice((0, rng.randrange(STALENESS_US_MAX)))
            return session(Isolation.BOUNDED_STALENESS, staleness_us=stale).ask_stale(stale)
        return session(rng.choice(WEAK)).ask_again()

    def _patience(self) -> float:
        rng = self.world.random
        if rng.random() < self.world.odds.client_gone:
            return rng.random() * 0.03
        if self.world.odds.succession:
            # Who waits for a leader that is cut off does not see what the next one does.
            return rng.choice((0.04, 0.08, PATIENCE_S))
        return CALM_PATIENCE_S if self.world.odds == CALM else PATIENCE_S
