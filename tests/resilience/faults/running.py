"""One run: a server, clients with a workload, strikes, and the verdict.

    create ─▶ clients load ── strike ── load ── strike ── load ─▶ read all ─▶ stop, check ─▶ judge

INVARIANTS
  R1  the last read sees a server that nothing is done to any more: it must be answered.
  R2  a run tells how much it has judged, and the shares of conflicts and unknown outcomes.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.resilience.faults.clients import Account, Client, Lost
from tests.resilience.faults.nemesis import Strike, Target
from tests.resilience.faults.preload import Faults
from tests.resilience.faults.time_travel import Historian
from tests.resilience.faults.workloads import Workload
from tests.resilience.history.events import Finding, Kind
from tests.support.servers import Meridian, meridian

REFERENCE = ("--spark-master", "reference")


class Reachable(Protocol):
    """What clients need to know of a server, which may be another one after a restart."""

    @property
    def dsn(self) -> str:
        """Where it listens now."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does. `between` acknowledgements come before, between and after the strikes."""

    strikes: Sequence[Strike] = ()
    clients: int = 6
    between: int = 40
    seed: int = 1
    options: Sequence[str] = REFERENCE


@dataclass(frozen=True, slots=True)
class Report:
    """What a run has judged (R2)."""

    name: str
    transactions: int
    conflicts: int
    unknown: int
    looked_back: int
    states: Counter[str]
    findings: Sequence[Finding]

    def __str__(self) -> str:
        share = 100 / max(1, self.transactions)
        return (
            f"{self.name}: {self.transactions} transactions, "
            f"{self.conflicts * share:.0f} % conflicts, {self.unknown * share:.1f} % unknown, "
            f"{self.looked_back} looks back, answers {dict(self.states)}"
        )


HURRIED = ("--set", "clock_jump_max_s=3600")
"""Cuts are made due by a clock that is set ahead, also beyond the jump that is believed."""

# What the runs of this process have judged, for whoever reports it.
REPORTS: list[Report] = []


def run(name: str, directory: Path, workload: Workload, plan: Plan) -> Report:
    """Run the workload under the strikes; the verdict is in the report."""
    faults = Faults(directory)
    with meridian(faults.root, (*plan.options, *HURRIED), faults.environment) as server:
        account = asyncio.run(load(server, faults, workload, plan))
        assert server.stop() == 0, server.log
        checked = server.check()
        assert checked.returncode == 0, checked.stdout + checked.stderr
    return report_on(name, account, workload)


async def load(
    server: Meridian,
    faults: Faults,
    workload: Workload,
    plan: Plan,
    continued: Account | None = None,
) -> Account:
    """Load the server, strike it, read everything; the account.

    Without an account to continue, the tables are made first.
    """
    account = continued or Account()
    rng = random.Random(plan.seed)
    target = Target(server, faults, account, rng)
    if continued is None:
        await _create(account, server, workload)
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(plan.clients):
            client_rng = random.Random(rng.random())
            tasks.create_task(run_client(account, server, workload.step, client_rng, ended))
        historian = Historian(account, workload.tables)
        tasks.create_task(run_client(account, server, historian.step, random.Random(0), ended))
        for strike in plan.strikes:
            await target.progress(plan.between)
            await strike(target)
        await target.progress(plan.between)
        ended.set()
    client = await Client.connect(account, server.dsn)
    try:
        assert await workload.read_all(client), "R1: the last read is answered"
        await historian.ask_everything(client)
        account.compared += historian.compared
    finally:
        client.close()
    return account


async def _create(account: Account, server: Meridian, workload: Workload) -> None:
    client = await Client.connect(account, server.dsn)
    try:
        await workload.create(client)
    finally:
        client.close()


async def run_client(
    account: Account,
    server: Reachable,
    step: Callable[[Client, random.Random], Awaitable[None]],
    rng: random.Random,
    ended: asyncio.Event,
) -> None:
    """Transaction after transaction, on one connection after the other."""
    while not ended.is_set():
        try:
            client = await Client.connect(account, server.dsn)
        except Lost:
            # Nobody listens; asking again at once would only take time from the start.
            await asyncio.sleep(0.05)
            continue
        try:
            while not ended.is_set():
                await step(client, rng)
        except Lost:
            continue
        finally:
            client.close()


def report_on(name: str, account: Account, workload: Workload) -> Report:
    """Judge an account; the report is kept for whoever tells it."""
    transactions = account.history().transactions()
    report = Report(
        name=name,
        transactions=len(transactions),
        conflicts=account.states["40001"] + account.states["40P01"],
        unknown=sum(t.status is Kind.INFO for t in transactions),
        looked_back=account.compared,
        states=account.states,
        findings=[*account.findings, *workload.judge(account)],
    )
    REPORTS.append(report)
    return report
