"""Code in threads stops between two bytecodes, and its thread goes on with others' work."""

import asyncio
import re
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

import compute.reference
import sql.regex
import sql.types
from compute.interruption import Computation, ComputationStopped, stoppable
from storage.threads import Threads


def endless(begun: threading.Event) -> None:
    begun.set()
    count = 0
    while True:
        count += 1


def stopped(computation: Computation, job: "Future[object]") -> None:
    while not job.done():
        computation.stop()


def test_a_loop_stops_and_its_thread_serves_others() -> None:
    with Threads(1) as threads:
        for _ in range(50):
            computation, begun = Computation(), threading.Event()
            job = threads.submit(computation.run, lambda begun=begun: endless(begun))
            begun.wait()
            stopped(computation, job)
            assert isinstance(job.exception(), ComputationStopped)
            assert threads.submit(sum, [1, 2]).result() == 3


def test_stops_at_any_moment_hit_nobody_else() -> None:
    """Short work, stopped about when it ends: the next one in the thread is not hit."""
    with Threads(2) as threads:
        for rounds in range(500):
            computation = Computation()
            job = threads.submit(computation.run, lambda n=rounds: sum(range(n)))
            computation.stop()
            other = threads.submit(lambda: [number * number for number in range(200)])
            assert job.exception() is None or isinstance(job.exception(), ComputationStopped)
            assert len(other.result()) == 200


def test_nothing_begins_that_was_stopped() -> None:
    computation = Computation()
    assert computation.run(lambda: 7) == 7
    computation.stop()
    with pytest.raises(ComputationStopped):
        computation.run(lambda: pytest.fail("begun"))


def test_failures_come_through() -> None:
    def fails() -> None:
        raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        Computation().run(fails)


def test_several_threads_of_one_computation() -> None:
    with Threads(3) as threads:
        computation = Computation()
        begun = [threading.Event() for _ in range(3)]
        jobs = [threads.submit(computation.run, lambda one=one: endless(one)) for one in begun]
        for one in begun:
            one.wait()
        for job in jobs:
            stopped(computation, job)


def test_who_swallows_it_is_stopped_again() -> None:
    """An exception that is lost, as in a finalizer, is raised anew."""

    def stubborn(begun: threading.Event) -> None:
        try:
            endless(begun)
        except BaseException:
            endless(begun)

    with Threads(1) as threads:
        computation, begun = Computation(), threading.Event()
        job = threads.submit(computation.run, lambda: stubborn(begun))
        begun.wait()
        stopped(computation, job)
        assert isinstance(job.exception(), ComputationStopped)


def test_locks_of_python_are_not_broken() -> None:
    """While an import or a lock of `threading` is on the stack, nothing is raised."""
    held, let_go = threading.Event(), threading.Event()

    def waits() -> str:
        held.set()
        let_go.wait()
        return "whole"

    with Threads(1) as threads:
        computation = Computation()
        job = threads.submit(computation.run, waits)
        held.wait()
        computation.stop()
        let_go.set()
        stopped(computation, job)
        assert job.exception() is None or isinstance(job.exception(), ComputationStopped)
        assert threads.submit(let_go.is_set).result()


def test_a_cancelled_task_stops_its_thread() -> None:
    async def story() -> None:
        begun = threading.Event()
        with Threads(1) as threads:
            task = asyncio.get_running_loop().create_task(
                stoppable(threads, lambda: endless(begun))
            )
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await stoppable(threads, lambda: 5) == 5

    asyncio.run(story())


@pytest.mark.parametrize("package", [compute.reference, sql.regex, sql.types])
def test_the_evaluator_has_no_locks(package: object) -> None:
    """I2: a lock that is taken when the exception comes would never be given back."""
    (place,) = package.__path__  # type: ignore[attr-defined]
    for path in Path(place).rglob("*.py"):
        found = re.search(r"^\s*(import|from) (threading|asyncio)\b|Lock\(", path.read_text(), re.M)
        is_executor = path.match("compute/reference/executor.py")
        assert found is None or (is_executor and "asyncio" in found[0]), path.name
