"""Watch whether a cluster of Spark has executors: a query never waits for ever for one.

    start    context ─▶ no executors: waits in the supervisor's thread ─▶ sessions verified ─▶ ready
                               └─ queries that wait with it ─▶ after `wait_s` NoExecutors (57P03)
    query    its work ──┬─ done ─▶ its result
                        └─ no executors for `wait_s` ─▶ NoExecutors, the query is cancelled

INVARIANTS
  W1  the JVM stays: executors that come later serve the next query. It goes if the master gives the
      application up, which it does when executors keep on ending; then another one is started.
  W2  Spark is asked in a thread, and only while a query has not ended for a second.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from time import monotonic, sleep
from typing import Final, TypeVar

from py4j.protocol import Py4JJavaError

from compute.executor import NoExecutors
from compute.spark.gateway import JavaObject

log = logging.getLogger(__name__)

R = TypeVar("R")

POLL_SECONDS: Final = 1.0
"""How often a query that runs looks for executors. Larger: its refusal comes later."""

_START_POLL_SECONDS: Final = 0.2

EXECUTORS_NEED: Final = (
    "executors need a Java with the module jdk.incubator.vector (the one that comes with Python has"
    " none), Python with this package, the directories of this server, and a way to"
    " spark_driver_host"
)


class ClusterWatch:
    """See the module; one for each query. `count` asks Spark for the number of executors."""

    def __init__(self, count: Callable[[], int], threads: Executor, *, wait_s: float) -> None:
        self._count = count
        self._threads = threads
        self._wait_s = wait_s
        self._asked = monotonic()
        self._without_since: float | None = None

    async def until(self, work: "asyncio.Future[R]") -> R:
        """What the work gives. Raises NoExecutors."""
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=POLL_SECONDS)
                if not work.done():
                    await self.check()
            return work.result()
        except BaseException:
            # What has not begun never does; what has is cancelled by the caller.
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            work.cancel()
            raise

    async def check(self) -> None:
        """Raises NoExecutors if there have been none for so long; asks now and then (W2)."""
        now = monotonic()
        if now - self._asked < POLL_SECONDS:
            return
        last, self._asked = self._asked, now
        loop = asyncio.get_running_loop()
        if await loop.run_in_executor(self._threads, self._count):
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = last
        if monotonic() - self._without_since >= self._wait_s:
            raise no_executors()


def no_executors() -> NoExecutors:
    """Says in one line what executors need."""
    log.warning("the cluster has no executors: %s", EXECUTORS_NEED)
    return NoExecutors("the cluster has no executors")


class StartWatch:
    """Waits for the first executor when a JVM has started, and tells for how long already."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._since: float | None = None

    def until_there(self, context: JavaObject) -> None:
        """Return when there is an executor. Raises NoExecutors if there will be none (W1)."""
        self._since = monotonic()
        try:
            while executor_count(context) < 1:
                sleep(_START_POLL_SECONDS)
        except Py4JJavaError as error:
            raise no_executors() from error
        finally:
            self._since = None

    async def ready(self, start: "asyncio.Future[R]") -> R:
        """What the start gives. Raises NoExecutors if that takes too long for want of some."""
        began = monotonic()
        start.add_done_callback(lambda done: done.cancelled() or done.exception())
        while not start.done():
            await asyncio.wait({start}, timeout=POLL_SECONDS)
            since = self._since
            if start.done() or since is None:
                continue
            if monotonic() - max(began, since) >= self._wait_s:
                raise no_executors()
        return start.result()


def executor_count(context: JavaObject) -> int:
    """Of a SparkContext; the driver is not one."""
    return len(context.statusTracker().getExecutorInfos()) - 1
