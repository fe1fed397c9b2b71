"""A thread pool whose failures always reach the task that awaits the work.

INVARIANTS
  T1  a task that awaits work of a thread learns how it ended. An asyncio future takes no
      StopIteration, and would never end; other exceptions that no `except Exception` catches would
      end the server (D3 of `coordinator/server/server.py`).
"""

from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Threads(ThreadPoolExecutor):
    """A pool for work that tasks wait for (T1)."""

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """Do it in a thread."""
        return super().submit(partial(run_with_catchable_errors, partial(fn, *args, **kwargs)))


def run_with_catchable_errors(work: Callable[[], R]) -> R:
    """The result of work whose failures can be awaited (T1)."""
    try:
        return work()
    except (StopIteration, CancelledError) as error:
        raise AssertionError("T1: a thread's work ended out of turn") from error
    except Exception:
        raise
    except BaseException as error:
        raise AssertionError("T1: a thread's work ended out of turn") from error
