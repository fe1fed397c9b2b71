"""kill -9 in the middle of concurrent inserts: nothing acknowledged is lost, nothing is doubled.

The page cache survives a kill, so this proves recovery, not the disk: power failures are computed
from what the server has synced (`tests/resilience/faults/test_power.py`).
"""

import random
from pathlib import Path

import pytest

from tests.resilience.crash.load import Load
from tests.resilience.history.black_box import check_real_time_set
from tests.resilience.history.events import History, Kind, ReadSet
from tests.support.servers import ON_SPARK, Meridian, meridian

REFERENCE = ("--spark-master", "reference")
STARTING = (*ON_SPARK, "--set", "spark_start=eager")


@pytest.mark.parametrize(
    ("options", "kills", "kills_per_read"),
    [
        # Without a JVM the server is back within a second: many crashes, each one read.
        pytest.param(REFERENCE, 8, 1, id="reference-eight"),
        # Without a read, the next kill also hits a server whose engine is still starting.
        pytest.param(STARTING, 4, 2, id="spark-four", marks=pytest.mark.spark),
        pytest.param(REFERENCE, 60, 1, id="reference-sixty", marks=pytest.mark.slow),
        pytest.param(
            STARTING, 20, 1, id="spark-twenty", marks=[pytest.mark.spark, pytest.mark.slow]
        ),
    ],
)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, options: tuple[str, ...], kills: int, kills_per_read: int
) -> None:
    rng = random.Random(kills)
    load = Load(writers=8, readers=1)
    with meridian(tmp_path, options) as server:
        load.create(server.dsn)
        for kill in range(1, kills + 1):
            load.run_until(server.dsn, rng.randint(20, 400), server.kill)
            _assert_checked(server)
            server.start()
            if kill % kills_per_read == 0:
                load.read(server.dsn)
        load.read(server.dsn)
        assert server.stop() == 0, server.log
        _assert_checked(server)
    _assert_worth_it(load.history(), kills)
    found = check_real_time_set(load.history())
    assert not found, "\n".join(map(str, found[:5]))


def _assert_checked(server: Meridian) -> None:
    checked = server.check()
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _assert_worth_it(history: History, kills: int) -> None:
    """A run proves something only with unknown outcomes, and reads that saw the most of it."""
    transactions = history.transactions()
    unknown = [t for t in transactions if t.status is Kind.INFO]
    assert len(unknown) >= kills, "every kill should catch somebody in the middle"
    reads = [
        operation
        for t in transactions
        if t.is_ok
        for operation in t.operations
        if isinstance(operation, ReadSet) and operation.key == "kept"
    ]
    assert max(len(read.values or ()) for read in reads) >= 5 * kills
