"""What is done to a server under load, one fault after the other.

    strike(run): wait for some acknowledgements ▶ the fault ▶ back to normal

INVARIANTS
  N1  after a strike the server serves again, or is started again; the load goes on.
  N2  a fault that should have been felt says so if it was not.
"""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from tests.resilience.faults.clients import ANSWER_SECONDS_MAX, Account
from tests.resilience.faults.preload import Faults, Kind
from tests.support.processes import children
from tests.support.servers import Meridian

PAUSE_S = 0.4
"""How long a stopped server stands still. Longer says no more: nobody else may serve meanwhile."""

HOURS = 3600.0

CUT_AGE_S = 6.0
"""So old is what must be flushed."""


class Target:
    """A server under load, as a nemesis sees it."""

    def __init__(
        self, server: Meridian, faults: Faults, account: Account, rng: random.Random
    ) -> None:
        self.server = server
        self.faults = faults
        self.account = account
        self.rng = rng
        self.hurried_s = 0.0

    async def progress(self, acknowledged: int) -> None:
        """Wait for so many more acknowledgements."""
        await self.account.reach(self.account.acknowledged + acknowledged)

    def make_cuts_due(self) -> None:
        """Let what was written be old enough for the tables' files: the clock goes on by itself."""
        self.hurried_s += CUT_AGE_S
        self.faults.set_clock(self.hurried_s)

    def versions(self) -> dict[Path, int]:
        """The number of versions of each table that has some."""
        logs = (self.server.data / "warehouse").glob("*/_delta_log")
        return {log.parent: len([*log.glob("*.json")]) for log in logs}

    async def restart(self) -> None:
        """Start the server again, if it is not running."""
        await asyncio.to_thread(self.server.start)


Strike: TypeAlias = Callable[[Target], Awaitable[None]]


async def kill(target: Target) -> None:
    """kill -9, check what is there, start again."""
    target.server.kill()
    checked = await asyncio.to_thread(target.server.check)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    await target.restart()


async def stop_in_order(target: Target) -> None:
    """SIGTERM under load: what is in flight ends or fails cleanly, and the exit code is 0."""
    code = await asyncio.to_thread(target.server.stop)
    assert code == 0, target.server.log
    await target.restart()


async def restart_loop(target: Target) -> None:
    """kill -9 at random moments of the start, many times; then it must come up."""
    target.server.kill()
    for _ in range(6):
        await asyncio.to_thread(target.server.start_and_kill, target.rng.random() * 2)
    await target.restart()


async def pause(target: Target) -> None:
    """SIGSTOP, and later SIGCONT."""
    os.kill(target.server.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(PAUSE_S)
    finally:
        os.kill(target.server.pid, signal.SIGCONT)


async def kill_jvm(target: Target) -> None:
    """kill -9 of the JVM alone: the server stays, and starts another one."""
    await _until(target, lambda: bool(children(target.server.pid)))
    for child in children(target.server.pid):
        os.kill(child, signal.SIGKILL)
    await target.progress(5)
    assert target.server.is_running, target.server.log


async def clock_jumps(target: Target) -> None:
    """Two hours ahead, back, an hour behind, and back: with the load going on all the time."""
    for offset in (2 * HOURS, 0.0, -HOURS, 0.0):
        target.faults.set_clock(offset)
        await target.progress(10)


async def clock_behind_at_start(target: Target) -> None:
    """The clock is an hour behind when the server starts, and right at the next start."""
    for offset in (-HOURS, 0.0):
        target.server.kill()
        target.faults.set_clock(offset)
        await target.restart()
        await target.progress(10)


async def disk_full(target: Target) -> None:
    """No space for a while; when it returns, the server goes on without a restart."""
    await _refusing(target, lambda: target.faults.leave_space(target.rng.randrange(40_000)))
    target.faults.leave_space(None)
    await target.progress(10)
    assert target.server.is_running, target.server.log


async def table_full(target: Target) -> None:
    """No space in one table's directory: that table lags behind, the others do not."""
    await _until_cut(target, lambda: bool(target.versions()))
    victim = target.rng.choice(sorted(target.versions()))
    others = {table: count for table, count in target.versions().items() if table != victim}
    target.faults.fill(victim)
    try:
        refused = target.faults.refused
        await _until_cut(target, lambda: target.faults.refused > refused)
        await _until_cut(target, lambda: _all_beyond(target, others))
    finally:
        target.faults.fill(None)
    behind = target.versions()[victim]
    await _until_cut(target, lambda: target.versions()[victim] > behind)
    assert target.server.is_running, target.server.log


def _all_beyond(target: Target, before: Mapping[Path, int]) -> bool:
    now = target.versions()
    return all(now[table] > count for table, count in before.items())


async def _until_cut(target: Target, reached: Callable[[], bool]) -> None:
    """Cut after cut, with the load going on."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        while not reached():
            target.make_cuts_due()
            await target.progress(5)


async def writes_fail(target: Target) -> None:
    """EIO for a few writes to the stash, and to the warehouse: outcomes are looked up."""
    for kind in (Kind.STASH, Kind.WAREHOUSE):
        await _refusing(target, lambda kind=kind: target.faults.fail_writes(2, kind))
        target.make_cuts_due()
        await target.progress(10)
    assert target.server.is_running, target.server.log


async def sync_fails(target: Target) -> None:
    """EIO from fsync: the process ends by itself, and a restart recovers."""
    for kind in (Kind.STASH, Kind.WAREHOUSE):
        target.faults.fail_syncs(1, kind)
        target.make_cuts_due()
        code = await asyncio.to_thread(target.server.wait)
        assert code == 1, f"the server went on after a failed sync: {code}\n{target.server.log}"
        await target.restart()
        await target.progress(10)


async def _refusing(target: Target, arm: Callable[[], None]) -> None:
    """Arm a fault and wait until it has been felt (N2)."""
    before = target.faults.refused
    arm()
    target.make_cuts_due()
    await _until(target, lambda: target.faults.refused > before)


async def _until(target: Target, reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        while not reached():
            assert target.server.is_running, target.server.log
            await asyncio.sleep(0.02)


STRIKES: Mapping[str, Strike] = {
    strike.__name__: strike
    for strike in (
        kill,
        stop_in_order,
        restart_loop,
        pause,
        clock_jumps,
        clock_behind_at_start,
        disk_full,
        table_full,
        writes_fail,
        sync_fails,
    )
}
