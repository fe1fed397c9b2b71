"""Do the synchronous work of large statements in threads, so that the event loop stays free.

    text, plan or values ─ small ─▶ at once, on the loop
                         └ large ─▶ a thread: parse, bind, fold, choose, evaluate ─▶ result

Why threads and no processes, as measured on two cores: pglast parses without the GIL, and makes
its tree by calls of Python's own constructors, between which the GIL changes hands. Binder, planner
and evaluator are Python all through. So a loop beside such a thread waits for one switch interval
at a time: with 0.5 ms its p99 is 5 ms and its worst 20 ms, beside a parse of 2 s. A process would
leave the loop alone, but trees and plans had to be pickled, and to read a pickle takes the GIL for
as long as the parse did.

INVARIANTS
  W1  work is a function of values: texts, trees, plans and a catalog, none of which ever changes.
      It starts no effects, and looks at neither session, transaction nor core.
  W2  no collection of cycles runs while there is such work, and for a second after: the collector
      looks at all of a large tree, with the GIL, for longer than anything else here takes. Work
      without end pauses it for 30 seconds at a time.

Not here: work that DuckDB or Arrow do in threads of their own.
"""

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar

from sql.parser.parse import Statement
from sql.types.sql_type import Value
from storage.threads import Threads

R = TypeVar("R")

SWITCH_SECONDS: Final = 0.0005
"""After so long a thread lets the loop have the GIL. Longer: others wait longer, a few times for
each of their statements. Shorter: large statements take longer."""

LARGE_TEXT: Final = 4_096
"""Characters. A text of this length takes 5 to 20 ms to parse, bind and plan. Larger: the loop
stands still for longer. Smaller: more statements pay for the hand-over, some 0.1 ms."""

LARGE_VALUES: Final = 16_384
"""Bytes, characters or elements of the values of parameters: some milliseconds to decode."""

TURN_SECONDS: Final = 0.005
"""What a session may take of the loop before others have their turn."""

THREAD_STACK_BYTES: Final = 32 << 20
"""Of address space, for threads that begin when the server serves: deep statements are bound,
planned and run there (RECURSION_MAX of `sql/plan/depth.py`)."""

_THREADS: Final = 2
"""More: they take the GIL from each other, and hold more trees. Fewer: one waits for another."""

_threads: Final = Threads(_THREADS, "large-statements")


def is_large_text(text: str) -> bool:
    """Whether work on a text is done in a thread."""
    return len(text) > LARGE_TEXT


def is_large_statement(statement: Statement) -> bool:
    """Whether work on what a statement means is done in a thread."""
    size = len(statement.text) if statement.length is None else statement.length
    return size > LARGE_TEXT


def are_large_values(values: Iterable[Value]) -> bool:
    """Whether work on these values is done in a thread."""
    size = 0
    for value in values:
        size += len(value) if isinstance(value, str | bytes | tuple | list) else 8
        if size > LARGE_VALUES:
            return True
    return False


async def aside(work: Callable[[], R]) -> R:
    """The result of the work, done in a thread (W1). Cancelled, it goes on to its end, unheard."""
    loop = asyncio.get_running_loop()
    _collector.pause(loop.time())
    try:
        return await loop.run_in_executor(_threads, work)
    finally:
        loop.call_later(_RESUMED_AFTER_SECONDS, _collector.resume)


async def aside_if(large: bool, work: Callable[[], R]) -> R:
    """The same for large work; at once for all other."""
    return await aside(work) if large else work()


_PARTS_MIN: Final = 512
"""Parts that a large value is taken apart into. More: it takes longer; fewer: each is larger."""


def free_values(values: list[object]) -> None:
    """Free large values in a thread, part by part; the list must be all that refers to them. At
    once it would take a tenth of a microsecond for each of their parts, with the GIL.
    """
    with contextlib.suppress(RuntimeError):
        _threads.submit(_free, values)


def _free(values: list[object]) -> None:
    levels = [values]
    while levels[-1] and len(levels[-1]) < _PARTS_MIN:
        levels.append([part for value in levels[-1] for part in _parts(value)])
    for level in levels:
        # Those above go first: then each one that goes is the last reference to itself only.
        level.reverse()
        while level:
            level.pop()


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        yield from value
    elif not isinstance(value, type):
        for name in getattr(type(value), "__slots__", ()):
            part = getattr(value, name, None)
            if part is not None and not isinstance(part, str | int):
                yield part


class _Collector:
    """Python's collector of cycles, paused while there is work and shortly after (W2). Of the loop
    alone.
    """

    def __init__(self) -> None:
        self._paused = 0
        self._since = 0.0

    def pause(self, now: float) -> None:
        if self._paused == 0 and gc.isenabled():
            gc.disable()
            self._since = now
        elif now - self._since > _PAUSED_SECONDS_MAX:
            gc.enable()
        self._paused += 1

    def resume(self) -> None:
        self._paused -= 1
        if self._paused == 0:
            gc.enable()


_PAUSED_SECONDS_MAX: Final = 30
_RESUMED_AFTER_SECONDS: Final = 1
"""By then a tree has been freed, or is looked at once."""

_collector: Final = _Collector()


class Turns:
    """The turns of one session on the loop: it gives way when it has had its time."""

    def __init__(self) -> None:
        self._began = 0.0
        self._others_had_theirs = False

    def begin(self) -> None:
        """The session has waited, so others had their turn."""
        self._began = asyncio.get_running_loop().time()

    async def wait_for(self, work: Awaitable[None]) -> None:
        """Do what may have to be waited for: then others have their turn meanwhile."""
        self._others_had_theirs = False
        asyncio.get_running_loop().call_soon(self._others_have_theirs)
        await work
        if self._others_had_theirs:
            self.begin()

    def _others_have_theirs(self) -> None:
        self._others_had_theirs = True

    async def give_way(self) -> None:
        """Let others have theirs, if this one was long enough."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._began > TURN_SECONDS:
            await asyncio.sleep(0)
            self._began = loop.time()


def begun_turns() -> Turns:
    """Of work whose first turn begins now."""
    turns = Turns()
    turns.begin()
    return turns
