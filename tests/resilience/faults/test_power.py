"""Power failures: what was acknowledged is there although the disk forgets what was not synced.

    load, journaled ─▶ kill ─▶ for each moment and loss: the tree of the disk ─▶ check, start, read
                                └ the history up to that moment ──────────────▶ judged with the read

The syncs of SQLite, of our store and of everything else in the process go through libc, where
they are journaled; that the journal is complete is a test of its own (P3 of `journal.py`).
"""

import asyncio
import contextlib
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from coordinator.config import Settings
from coordinator.server.check import check
from tests.resilience.faults.clients import Account, Client
from tests.resilience.faults.journal import Disk, Loss, Record, read_journal
from tests.resilience.faults.preload import Faults, Kind
from tests.resilience.faults.running import REFERENCE, Plan, load, report_on
from tests.resilience.faults.workloads import Bank, Lists, Registers, Sets, Workload
from tests.resilience.history.events import Finding, History
from tests.support.servers import Meridian, meridian

HONEST = Kind(0)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A server that was loaded and killed, and all that is known about it."""

    disk: Disk
    records: Sequence[Record]
    created_ns: int
    account: Account
    workload: Workload

    def history_until(self, end: int) -> History:
        """What clients were told before record `end` was written: no answer rests on it."""
        events = self.account.history().events
        if end < len(self.records):
            events = tuple(e for e in events if e.at < self.records[end].at_ns)
        return History(events)


def _load(
    directory: Path,
    workload: Workload,
    plan: Plan,
    *,
    lying: Kind = HONEST,
    continued: Account | None = None,
) -> Loaded:
    faults = Faults(directory, journal=True)
    faults.lie_about_syncs(lying)
    disk = Disk(faults.root)
    with meridian(faults.root, plan.options, faults.environment) as server:
        account = asyncio.run(load(server, faults, workload, plan, continued))
        server.kill()
    created = account.history().events[0].at
    return Loaded(disk, read_journal(faults.journal), created, account, workload)


def _after_failure(loaded: Loaded, end: int, directory: Path, loss: Loss) -> Account:
    """Cut the power before record `end`, start a server on what is left, read everything."""
    loaded.disk.advance(loaded.records, end)
    loaded.disk.write_to(directory, loss, random.Random(end))
    account = Account(loaded.history_until(end))
    server = Meridian(directory, REFERENCE)
    said = io.StringIO()
    # In this process: most of the time of a checking process would be its start.
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = check(Settings(data_dir=str(server.data)))
    if code != 0:
        account.findings.append(Finding("damage", said.getvalue()))
        return account
    try:
        server.start()
        asyncio.run(_read_all(account, server.dsn, loaded.workload))
    finally:
        server.kill()
    return account


async def _read_all(account: Account, dsn: str, workload: Workload) -> None:
    client = await Client.connect(account, dsn)
    try:
        if not await workload.read_all(client):
            account.findings.append(Finding("unanswered", str(dict(account.states))))
    finally:
        client.close()


def _moments(loaded: Loaded, count: int, seed: int) -> list[int]:
    """Record numbers after the tables were made, in order."""
    first = next(n for n, r in enumerate(loaded.records) if r.at_ns > loaded.created_ns)
    return sorted(random.Random(seed).sample(range(first, len(loaded.records) + 1), count))


def _findings(loaded: Loaded, tmp_path: Path, count: int, losses: Sequence[Loss]) -> list[Finding]:
    found: list[Finding] = []
    for number, end in enumerate(_moments(loaded, count, seed=count)):
        loss = losses[number % len(losses)]
        place = tmp_path / f"{end}-{loss.value}"
        account = _after_failure(loaded, end, place, loss)
        found += [*account.findings, *loaded.workload.judge(account)]
    return found


@pytest.mark.parametrize(
    ("workload", "failures"),
    [
        pytest.param(Sets, 5, id="sets"),
        pytest.param(Sets, 60, id="sets-many", marks=pytest.mark.slow),
        pytest.param(Bank, 40, id="bank-many", marks=pytest.mark.slow),
        pytest.param(Lists, 20, id="lists-many", marks=pytest.mark.slow),
        pytest.param(Registers, 20, id="registers-many", marks=pytest.mark.slow),
    ],
)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, workload: type[Workload], failures: int
) -> None:
    loaded = _load(tmp_path / "loaded", workload(), Plan([], between=40 + 2 * failures))
    report = report_on(f"{workload.__name__} power x{failures}", loaded.account, loaded.workload)
    found = [*report.findings, *_findings(loaded, tmp_path, failures, tuple(Loss))]
    assert not found, "\n".join(map(str, found[:5]))


@pytest.mark.slow
def test_one_failure_after_the_other(tmp_path: Path) -> None:
    # A failure hits what the recovery from the one before has just written, too.
    workload, account = Sets(), None
    rng = random.Random(1)
    for number in range(12):
        place = tmp_path / str(number)
        plan = Plan([], between=rng.randint(5, 60), seed=number)
        loaded = _load(place, workload, plan, continued=account)
        first = 0 if number else _moments(loaded, 1, seed=number)[0]
        end = rng.randint(first, len(loaded.records))
        after = tmp_path / str(number + 1) / "root"
        after.parent.mkdir()
        account = _after_failure(loaded, end, after, rng.choice([*Loss]))
        found = [*account.findings, *workload.judge(account)]
        assert not found, "\n".join(map(str, found[:5]))


@pytest.mark.parametrize("lying", [Kind.STASH, Kind.WAREHOUSE], ids=["stash", "warehouse"])
def test_a_disk_that_does_not_sync_is_found_out(tmp_path: Path, lying: Kind) -> None:
    # The judge is judged: syncs that do nothing must be seen as missing commits.
    loaded = _load(tmp_path / "loaded", Sets(), Plan([], between=60), lying=lying)
    account = _after_failure(loaded, len(loaded.records), tmp_path / "after", Loss.ALL)
    assert account.findings or loaded.workload.judge(account)


def test_the_journal_has_seen_everything(tmp_path: Path) -> None:
    loaded = _load(tmp_path / "loaded", Sets(), Plan([], between=30))
    loaded.disk.advance(loaded.records, len(loaded.records))
    loaded.disk.write_to(tmp_path / "after", Loss.NONE, random.Random(0))
    assert _tree(tmp_path / "after" / "data") == _tree(tmp_path / "loaded" / "root" / "data")


def _tree(root: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if not path.is_socket()  # it holds nothing, and its server makes it anew
    }
