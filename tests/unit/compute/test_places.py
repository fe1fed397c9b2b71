"""Places of an engine: how many run, who waits, and what a cancelled job leaves to others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

import pytest

from compute.duckdb.places import Places


class Stuck:
    """Work that ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.let_go.wait()
        return "ended"


@pytest.fixture
def made() -> Iterator[Callable[[int, int], Places]]:
    opened: list[Places] = []

    def make(places: int, spare: int) -> Places:
        opened.append(Places(places, spare, "places"))
        return opened[-1]

    yield make
    for each in opened:
        each.shutdown()


def test_who_comes_later_waits(made: Callable[[int, int], Places]) -> None:
    places, first = made(1, 0), Stuck()
    job, other = places.submit(first), places.submit(lambda: 7)
    first.begun.wait()
    assert not other.running()
    assert not other.done()
    first.let_go.set()
    assert (job.result(), other.result()) == ("ended", 7)


def test_a_cancelled_job_gives_its_place_back(made: Callable[[int, int], Places]) -> None:
    places, first, second = made(1, 1), Stuck(), Stuck()
    job = places.submit(first)
    first.begun.wait()
    later = places.submit(second)
    places.give_back(job)
    second.begun.wait()
    # There is one spare thread, and it is taken: the second keeps its place.
    places.give_back(later)
    last = places.submit(lambda: 7)
    assert not last.running()
    second.let_go.set()
    assert last.result() == 7
    first.let_go.set()
    assert (job.result(), later.result()) == ("ended", "ended")
    places.give_back(job)


def test_who_waits_can_be_cancelled(made: Callable[[int, int], Places]) -> None:
    places, first = made(1, 0), Stuck()
    job, other, last = places.submit(first), places.submit(lambda: 7), places.submit(lambda: 8)
    assert other.cancel()
    first.let_go.set()
    assert last.result() == 8
    assert job.result() == "ended"


def test_failures_leave_the_place(made: Callable[[int, int], Places]) -> None:
    def fails() -> None:
        raise ValueError("own")

    places = made(1, 0)
    assert isinstance(places.submit(fails).exception(), ValueError)
    assert places.submit(lambda: 7).result() == 7


def test_nothing_begins_after_the_end() -> None:
    places, first = Places(1, 0, "places"), Stuck()
    job, other = places.submit(first), places.submit(lambda: 7)
    ending = threading.Thread(target=places.shutdown)
    ending.start()
    with pytest.raises(CancelledError):
        other.result()
    first.let_go.set()
    ending.join()
    assert job.result() == "ended"
    with pytest.raises(RuntimeError):
        places.submit(lambda: 7)
