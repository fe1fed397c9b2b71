"""Places for jobs in threads: so many run at a time; a cancelled one gives its place to the next.

    submit ─▶ waits ─▶ has a place, runs ─▶ ended
                            └─ give_back: cancelled, still running; the next one has its place

DuckDB looks seldom whether it is interrupted, its optimizer not at all. Who waits for a place does
not wait for that.

INVARIANTS
  L1  no more jobs than `places` run that somebody waits for, and no more than `spare` beside them
      that nobody does. When there are so many, a cancelled job keeps its place until it ends.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from storage.threads import Threads, run_with_catchable_errors

R = TypeVar("R")


class Places:
    """See the module. Thread-safe."""

    def __init__(self, places: int, spare: int, name: str) -> None:
        self._places = places
        self._spare = spare
        self._threads = Threads(places + spare, name)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._holders: set[Future[Any]] = set()
        self._given_back: set[Future[Any]] = set()
        self._closed = False

    def submit(self, work: Callable[[], R]) -> "Future[R]":
        """Run work in a thread, when it has a place. Raises RuntimeError after the end."""
        job: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("there are no places any more")
            self._waiting.append((job, work))
        self._fill()
        return job

    def give_back(self, job: "Future[Any]") -> None:
        """Nobody waits for a job any more, which may not end soon (L1)."""
        with self._lock:
            if job not in self._holders or len(self._given_back) >= self._spare:
                return
            self._holders.discard(job)
            self._given_back.add(job)
        self._fill()

    def shutdown(self) -> None:
        """Begin nothing more, and wait for what runs."""
        with self._lock:
            self._closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for job, _ in waiting:
            job.cancel()
        self._threads.shutdown(wait=True)

    def _fill(self) -> None:
        """Give free places to those who wait."""
        with self._lock:
            while self._waiting and len(self._holders) < self._places:
                job, work = self._waiting.popleft()
                if job.set_running_or_notify_cancel():
                    self._holders.add(job)
                    self._threads.submit(partial(self._run, job, work))

    def _run(self, job: "Future[R]", work: Callable[[], R]) -> None:
        try:
            result = run_with_catchable_errors(work)
        except Exception as error:
            self._leave(job)
            job.set_exception(error)
        else:
            self._leave(job)
            job.set_result(result)

    def _leave(self, job: "Future[Any]") -> None:
        with self._lock:
            self._holders.discard(job)
            self._given_back.discard(job)
        self._fill()
