"""Operating-system processes of a simulation: their tasks stop when the process does.

    loop ── create_task in a process ──▶ Task(_Halting(coroutine))
                                                │ send, throw: only while the process runs
                pause() ... resume()  ──────────┤ what arrives meanwhile is delivered afterwards
                kill()                ──────────┘ nothing is ever delivered, no `finally` runs

INVARIANTS
  N1  a paused process runs no instruction of its own, whoever wakes it; a killed one never again.
  N2  a task belongs to the process whose context made it, and so do all tasks that it makes.
  N3  after `resume` tasks go on in the order in which they were stopped.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_CURRENT: ContextVar["Process | None"] = ContextVar("process", default=None)


class Process:
    """See the module. Tasks are made by `start`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.paused = False
        self.killed = False
        self._torn_down = False
        self._halted: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._context = copy_context()
        self._context.run(_CURRENT.set, self)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of this process (N2)."""
        loop = asyncio.get_running_loop()
        return loop.create_task(work, context=self._context)

    def pause(self) -> None:
        """Stop where it stands (N1)."""
        self.paused = True

    def resume(self) -> None:
        """Go on (N3); a killed process does not."""
        self.paused = False
        if not self.killed:
            self._release()

    def kill(self) -> None:
        """The end, as by kill -9."""
        self.killed = not self._torn_down

    def tear_down(self) -> None:
        """The run is over: let tasks be cancelled as usual."""
        self._torn_down = True
        self.killed = False
        self.resume()

    @property
    def halted(self) -> bool:
        """True while no task may run."""
        return self.paused or self.killed

    async def halt_here(self) -> None:
        """Called by a task of this process after `kill`: it goes no further."""
        assert self.killed, "N1: only a killed process stops for ever"
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._halted.append(future)
        await future

    def halt(self) -> "asyncio.Future[None]":
        """What a task waits for that may not run."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future._asyncio_future_blocking = True
        self._halted.append(future)
        return future

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Tasks of a halted process must not be collected: that would run their `finally`."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _release(self) -> None:
        halted, self._halted = self._halted, []
        for future in halted:
            if not future.done():
                future.set_result(None)


class _Halting(Coroutine[Any, Any, Any]):
    """A coroutine that is only resumed while its process runs."""

    def __init__(self, process: Process, inner: Coroutine[Any, Any, Any]) -> None:
        self._process = process
        self._inner = inner
        self._held: BaseException | None = None

    def send(self, value: Any) -> Any:
        if self._process.halted:
            return self._process.halt()
        if self._held is not None:
            held, self._held = self._held, None
            return self._inner.throw(held)
        return self._inner.send(value)

    def throw(self, typ: Any, val: Any = None, tb: Any = None) -> Any:
        if self._process.halted:
            self._held = typ if isinstance(typ, BaseException) else typ()
            return self._process.halt()
        return self._inner.throw(typ) if val is None else self._inner.throw(typ, val, tb)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise AssertionError("only a task runs it")


def make_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    *,
    context: Context | None = None,
) -> asyncio.Task[Any]:
    """The task factory of a loop on which processes live (N2)."""
    process = _CURRENT.get() if context is None else context.get(_CURRENT)
    if process is None:
        return asyncio.Task(work, loop=loop, context=context)
    task = asyncio.Task(_Halting(process, work), loop=loop, context=context)
    process.keep(task)
    return task
