"""`make demo-streams`: who has committed in PostgreSQL reads it in Meridian, always.

client ── COMMIT ─▶ PostgreSQL ─▶ (waits for its synchronous standby: the source) ─▶ returns
       ── SELECT ─▶ Meridian: the row is there                          kill -9 ─▶ Meridian
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.resilience.upstream.feed import fed, finish, kill
from tests.resilience.upstream.writers import Writer

_READ = "SELECT n FROM shop.counts WHERE writer = %s"
_TICK = "SELECT count(*) FROM shop.ticks WHERE writer = %s AND n = %s"


class Reader(Writer):
    """Writes there, and looks here at once."""

    reads = 0
    misses = 0
    _here: psycopg.Connection | None = None

    def run(self) -> None:
        try:
            super().run()
        finally:
            if self._here is not None:
                self._here.close()

    def _committed(self, n: int) -> None:
        while not self._look(n):
            # The server was killed: it is started again.
            self._ended.wait(0.05)

    def _look(self, n: int) -> bool:
        try:
            if self._here is None:
                self._here = psycopg.connect(self._server.dsn, autocommit=True)
            count = self._here.execute(_READ, [self._number]).fetchone()
            tick = self._here.execute(_TICK, [self._number, n]).fetchone()
        except psycopg.OperationalError:
            if self._here is not None:
                self._here.close()
            self._here = None
            return False
        self.reads += 1
        self.misses += count != (n,) or tick != (1,)
        return True


def show(
    directory: Path, tell: Callable[[str], object], *, clients: int, kills: int, commits: int
) -> int:
    """The demo; how often a read missed what had been committed before it began."""
    with fed(directory, synchronous=True, writers=clients, kind=Reader) as feed:
        tell(f"{clients} clients commit in PostgreSQL, which waits for the source, and read here")
        feed.progress(commits)
        for number in range(kills):
            began = time.monotonic()
            kill(feed)
            feed.progress(1)
            tell(
                f"kill -9 number {number + 1}: commits go on {time.monotonic() - began:.1f} s later"
            )
            feed.progress(commits)
        finish(feed)
        readers = [writer for writer in feed.writers if isinstance(writer, Reader)]
        reads, misses = sum(one.reads for one in readers), sum(one.misses for one in readers)
        tell("afterwards both sides are equal, row by row")
        tell(f"{reads} reads right behind a COMMIT: {misses or 'never a'} miss")
    return misses


def main() -> None:
    """With 16 clients and three kills."""
    parser = argparse.ArgumentParser(prog="make demo-streams", description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--commits", type=int, default=500, help="before and after each kill")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="meridian-demo-") as place:
        numbers = {"clients": given.clients, "kills": given.kills, "commits": given.commits}
        sys.exit(show(Path(place), lambda text: print(text, flush=True), **numbers))


if __name__ == "__main__":
    main()
