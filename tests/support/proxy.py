"""A TCP proxy on loopback that delays, freezes and cuts what passes through.

    client ──▶ proxy ──▶ target      frozen: bytes wait, both ends believe that they are connected
                                     (all of them, or only those that are connected already)
                                     cut: all connections are reset, new ones too, until `mend`

INVARIANTS
  X1  no byte is reordered or lost but by `cut`; what was frozen goes on when it is thawed.
  X2  it runs on a thread of its own, so that tests without a loop can use it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future


class Proxy:
    """See the module; made by `proxy`. Its methods may be called from any thread."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._loop: asyncio.AbstractEventLoop
        self._ended = asyncio.Event()
        self._flowing = _open()
        self._frozen: list[asyncio.Event] = []
        """Of connections that came before the others."""
        self._refusing = False
        self._delay_s = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving = 0
        self._started: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="proxy", daemon=True
        )
        self._thread.start()
        self.port = self._started.result(10)

    def freeze(self) -> None:
        """Let nothing pass; nobody is told."""
        self._call(self._flowing.clear)

    def freeze_present(self) -> None:
        """The same of the connections that there are; new ones flow."""

        def frozen() -> None:
            self._flowing.clear()
            self._frozen.append(self._flowing)
            self._flowing = _open()

        self._call(frozen)

    def thaw(self) -> None:
        """Let it pass again, what has waited first."""
        self._call(self._thawed)

    def delay(self, seconds: float) -> None:
        """Hold every chunk up for so long."""
        self._call(lambda: setattr(self, "_delay_s", seconds))

    def cut(self) -> None:
        """Reset all connections and refuse new ones."""
        self._call(self._cut)

    def mend(self) -> None:
        """Accept connections again, and let everything pass."""

        def mended() -> None:
            self._refusing = False
            self._delay_s = 0.0
            self._thawed()

        self._call(mended)

    def close(self) -> None:
        """End it, with all connections."""
        self._call(self._thawed)
        self._call(self._cut)
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    def _call(self, work: Callable[[], object]) -> None:
        async def done() -> None:
            work()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result(10)

    def _thawed(self) -> None:
        for flowing in (*self._frozen, self._flowing):
            flowing.set()
        self._frozen.clear()

    def _cut(self) -> None:
        self._refusing = True
        for writer in list(self._writers):
            writer.transport.abort()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._started.set_result(server.sockets[0].getsockname()[1])
        await self._ended.wait()
        server.close()
        while self._serving:  # noqa: ASYNC110 - they have been cut, and end by themselves
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving += 1
        try:
            await self._pass(reader, writer)
        finally:
            self._serving -= 1

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        flowing = self._flowing
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(reader, far_writer, flowing))
                tasks.create_task(self._pump(far_reader, writer, flowing))
        except* OSError:
            pass
        finally:
            self._writers -= {writer, far_writer}
            writer.transport.abort()
            far_writer.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event
    ) -> None:
        while chunk := await reader.read(65_536):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            await flowing.wait()
            writer.write(chunk)
            await writer.drain()
        # One side is done: the other hears it, once nothing is frozen.
        await flowing.wait()
        raise ConnectionResetError


def _open() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@contextlib.contextmanager
def proxy(host: str, port: int) -> Iterator[Proxy]:
    """A proxy in front of a server, gone at the end."""
    one = Proxy((host, port))
    try:
        yield one
    finally:
        one.close()
