"""What clients do beside the history: time travel, stale reads, maintenance.

INVARIANTS
  K1  a stale read answers at once, within its bound by the server's clock, or with 40001.
"""

import asyncio

from sql.errors import SqlError
from storage.types import Timestamp
from tests.resilience.history.events import Key
from tests.resilience.sim.rows import table_of, timeline_of
from tests.resilience.sim.session import Session

REFUSALS = ("72000", "22023", "42704")
"""Too old, too far in the future, or of a timeline that is gone."""

STALENESS_US_MAX = 80_000


class Aside(Session):
    """See the module. One object for each."""

    async def ask_again(self) -> None:
        """An old answer, AS OF its timestamp, or a new one AS OF the clock or as it comes (H1).

        What comes at a weak isolation level may be old, but it is true at its timestamp.
        """
        chosen = self._memory.choose()
        if chosen is None:
            return
        ts, key = chosen
        try:
            match self.random.randrange(5):
                case 0:
                    await self._ask(self._now(), key)
                case 1:
                    await self._ask(None, key)
                case _:
                    await self._ask(ts, key)
        except SqlError as error:
            if error.sqlstate not in REFUSALS:
                raise
        finally:
            self._driver.disconnected(self._owner)

    def _now(self) -> Timestamp:
        """About the time; a commit may just be happening there."""
        return Timestamp(self._clock.now() - self.random.randrange(20_000))

    async def _ask(self, asked: Timestamp | None, key: Key) -> None:
        timeline = timeline_of(key).name
        snapshot = await self._driver.snapshot(self._txn, as_of=asked, timeline=timeline)
        ts = snapshot.ts
        if asked not in (None, ts):
            self.world.found("as-of", f"asked AS OF {asked}, answered at {ts}")
        if ("public", table_of(key)) not in snapshot.catalog.tables:
            self._memory.keep(ts, key, None)
            return
        await self._rows_at(snapshot, [key])
        self._memory.travelled(ts, key)
        self.world.tally.asked_again += 1

    async def ask_stale(self, staleness_us: int) -> None:
        """Several keys at one timestamp that is not older than the bound (K1)."""
        chosen = self._memory.choose()
        if chosen is None:
            return
        timeline = timeline_of(chosen[1])
        known = self._memory.neighbours(chosen[1])
        keys = self.random.sample(known, min(len(known), 3))
        try:
            now, began = self._clock.now(), asyncio.get_running_loop().time()
            pauses = self.world.tally.pauses
            snapshot = await self._driver.snapshot(self._txn, timeline=timeline.name)
            if asyncio.get_running_loop().time() > began and pauses == self.world.tally.pauses:
                self.world.found("waited", f"for a read of {keys} that may be stale")
            if not timeline.manual and snapshot.ts < now - staleness_us:
                why = f"{snapshot.ts} is more than {staleness_us} us before {now}"
                self.world.found("too-stale", why)
            names = {name for _, name in snapshot.catalog.tables}
            await self._rows_at(snapshot, [key for key in keys if table_of(key) in names])
            self.world.tally.stale += 1
        except SqlError as error:
            if error.sqlstate not in REFUSALS:
                raise
        finally:
            self._driver.disconnected(self._owner)

    async def maintain(self) -> None:
        """OPTIMIZE or VACUUM, while others work."""
        try:
            await self.look()
            tables = list(self.snapshot.catalog.tables.values())
            if self.random.random() < 0.6:
                await self._driver.optimize(self.random.sample(tables, 1))
            else:
                await self._driver.vacuum(None)
            self.world.tally.maintained += 1
        finally:
            self._driver.disconnected(self._owner)
