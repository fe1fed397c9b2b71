"""The life of JVMs, with a process that only sleeps in the part of the JVM."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from compute.executor import EngineUnavailable
from compute.spark import supervisor as jvm_supervisor
from compute.spark.jvm import Jvm, JvmSettings
from compute.spark.supervisor import JvmState, JvmSupervisor

SECONDS_MAX = 60


class Unconnected:
    """A gateway to nowhere."""

    def disconnect(self) -> None:
        """Nothing to close."""


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Jvm]]:
    """What has been launched so far."""
    done: list[Jvm] = []

    def launch(settings: JvmSettings, stop: threading.Event) -> Jvm:
        del settings, stop
        # It ends when its input closes, as the real one does.
        process = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0
        )
        done.append(Jvm(process, cast("Any", Unconnected())))
        return done[-1]

    monkeypatch.setattr(jvm_supervisor, "launch", launch)
    monkeypatch.setattr(jvm_supervisor, "BACK_OFF_SECONDS", (0.0, 0.0))
    yield done
    assert not [jvm for jvm in done if jvm.alive]


def supervisor(prepare: Any = lambda jvm: jvm.pid) -> JvmSupervisor[int]:
    return JvmSupervisor(JvmSettings(Path("unused")), prepare)


def test_a_jvm_that_dies_is_followed_by_another(launches: list[Jvm]) -> None:
    supervised = supervisor()
    first = supervised.current()
    pid = first.ready.result(SECONDS_MAX)
    assert supervised.pid == pid
    assert supervised.state is JvmState.READY
    assert not first.gone.done()
    launches[0].kill()
    first.gone.result(SECONDS_MAX)
    second = supervised.current()
    assert second is not first
    assert second.ready.result(SECONDS_MAX) != pid
    supervised.close()


def test_those_who_wait_hear_of_a_failed_start(launches: list[Jvm]) -> None:
    failures = [EngineUnavailable("no Java"), RuntimeError("with a path in it")]
    told: list[str] = []
    turn = threading.Semaphore(0)

    def prepare(jvm: Jvm) -> int:
        turn.acquire()
        if failures:
            raise failures.pop(0)
        return jvm.pid

    supervised = supervisor(prepare)
    for _ in range(2):
        generation = supervised.current()
        turn.release()
        with pytest.raises(EngineUnavailable) as caught:
            generation.ready.result(SECONDS_MAX)
        told.append(str(caught.value))
        generation.gone.result(SECONDS_MAX)
    turn.release()
    assert supervised.current().ready.result(SECONDS_MAX) == supervised.pid
    assert told == ["no Java", "spark did not start"]
    supervised.close()


def test_nothing_lives_after_close(launches: list[Jvm]) -> None:
    supervised = supervisor()
    supervised.current().ready.result(SECONDS_MAX)
    supervised.close()
    assert supervised.state is JvmState.DEAD
    assert supervised.pid is None
    with pytest.raises(EngineUnavailable, match="shut down"):
        supervised.current().ready.result(SECONDS_MAX)
    assert len(launches) == 1


def test_close_during_the_start(launches: list[Jvm]) -> None:
    preparing, closing = threading.Event(), threading.Event()

    def prepare(jvm: Jvm) -> int:
        preparing.set()
        assert closing.wait(SECONDS_MAX)
        jvm.wait()
        raise EngineUnavailable("the connection broke")

    supervised = supervisor(prepare)
    assert preparing.wait(SECONDS_MAX)
    waiting = supervised.current()
    closing.set()
    supervised.close()
    with pytest.raises(EngineUnavailable):
        waiting.ready.result(SECONDS_MAX)
