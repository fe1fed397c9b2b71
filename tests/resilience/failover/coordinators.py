"""Coordinators that share a PostgreSQL stash and a warehouse, each behind a proxy of its own.

    Meridian 0 ── proxy 0 ──┐
    Meridian 1 ── proxy 1 ──┼──▶ PostgreSQL        all ──▶ one warehouse
    Meridian 2 ── proxy 2 ──┘

INVARIANTS
  S2  what was started is gone at the end, also what is stopped (SIGSTOP) or cut off.
"""

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from tests.support.proxy import Proxy, proxy
from tests.support.servers import Meridian, Postgres, check, postgres_server


@dataclass(frozen=True, slots=True)
class Coordinator:
    """A server and its way to the stash."""

    server: Meridian
    link: Proxy

    def pause(self) -> None:
        """SIGSTOP: it does nothing, and all its connections stay."""
        self.server.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.server.signal(signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class Shared:
    """What they share."""

    postgres: Postgres
    warehouse: Path
    coordinators: tuple[Coordinator, ...]

    def check(self) -> subprocess.CompletedProcess[str]:
        """`meridian check` of stash and warehouse; nobody must lead."""
        return check("--stash", self.postgres.dsn, "--warehouse", str(self.warehouse))


@contextlib.contextmanager
def sharing(directory: Path, count: int, *settings: str) -> Iterator[Shared]:
    """So many coordinators, none started yet."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        warehouse = directory / "warehouse"
        options = ["--spark-master", "reference", "--warehouse", str(warehouse)]
        options += [part for setting in settings for part in ("--set", setting)]
        coordinators: list[Coordinator] = []
        for number in range(count):
            link = stack.enter_context(proxy("127.0.0.1", server.port))
            dsn = server.dsn.replace(f":{server.port}/", f":{link.port}/")
            one = Meridian(directory / f"c{number}", [*options, "--stash", dsn])
            stack.callback(one.kill)
            coordinators.append(Coordinator(one, link))
        yield Shared(server, warehouse, tuple(coordinators))


class TakeOvers:
    """Two coordinators that take over from each other, in turn because the leader is killed and
    because it stands still; then it ends by itself.
    """

    def __init__(self, shared: Shared) -> None:
        self.leader, self._other = shared.coordinators
        self._ways = cycle(("killed", "paused"))
        self.leader.server.start()

    def strike(self) -> None:
        """The next one leads."""
        old, new = self.leader, self._other
        way = next(self._ways)
        if way == "killed":
            old.server.kill()
        else:
            old.pause()
        new.server.start()
        self.leader, self._other = new, old
        if way == "paused":
            old.resume()
            assert old.server.wait() == 1, old.server.log
