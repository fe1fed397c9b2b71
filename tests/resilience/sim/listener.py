"""A session that listens, of a server of the simulation, and what it has heard.

    LISTEN ─▶ woken, or some time has passed ─▶ [sits in a transaction] ─▶ take ─▶ heard
                 ▲                                                           │
                 └─────────────────── UNLISTEN, now and then ◀───────────────┘

What it has heard outlives the server, as it would at a client.

INVARIANTS
  E1  whoever is not woken has nothing to take (B3 of `core/notifications/queue.py`).
  E2  what a notification tells of can be read once it is heard.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.notifications.changes import ListenAction, NotificationChanges
from sql.errors import SqlError
from tests.resilience.sim.memory import Memory
from tests.resilience.sim.server import Server
from tests.resilience.sim.session import Session
from tests.resilience.sim.world import World

ROUNDS_MAX = 150
"""A run is over before; what does not end would hide that a run is stuck."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification, and who was told to have sent it."""

    channel: str
    value: int
    sender: int


class Listener:
    """See the module. Times are microseconds of the loop; None: it has not happened."""

    def __init__(
        self, world: World, server: Server, memory: Memory, owner: int, channels: Sequence[str]
    ) -> None:
        self.epoch = epoch_of(server)
        self.channels = tuple(channels)
        self.heard: list[Heard] = []
        self.asked_at = now_us()
        self.listens_at: int | None = None
        self.drained_at = 0
        """When everything was taken, the last time."""
        self.dropping: dict[str, int] = {}
        """When UNLISTEN of a channel was begun .."""
        self.dropped: dict[str, int] = {}
        """.. and when it was acknowledged."""
        self._world = world
        self._server = server
        self._driver = server.driver
        self._memory = memory
        self._owner = ConnectionId(owner)
        self._is_woken = False
        self._waiter: asyncio.Future[None] | None = None

    async def run(self, key_of: dict[int, str]) -> None:
        """Listen until the server ends, or the run. `key_of`: where a value can be read."""
        self._driver.notifications.attach(self._owner, self._wake)
        try:
            await self._commit([ListenAction(channel, listens=True) for channel in self.channels])
            self.listens_at = now_us()
            for _ in range(ROUNDS_MAX):
                await self._round(key_of)
        except SqlError:
            pass  # the server ends, or its stash is away: the session is over
        except Exception as error:
            self._world.failed(error)
        finally:
            self._driver.disconnected(self._owner)

    def _wake(self) -> None:
        self._is_woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _commit(self, actions: Sequence[ListenAction]) -> None:
        txn = self._driver.begin(self._owner)
        await self._driver.commit(txn, NotificationChanges(tuple(actions)))

    async def _round(self, key_of: dict[int, str]) -> None:
        rng = self._world.random
        await self._until_woken(rng.random() * 0.05)
        if rng.random() < 0.25:
            await asyncio.sleep(rng.random() * 0.04)  # in a transaction
        heard = await self._take()
        if heard and rng.random() < 0.3:
            await self._look_at(rng.choice(heard).value, key_of)
        left = [channel for channel in self.channels if channel not in self.dropping]
        if len(left) > 1 and rng.random() < 0.05:
            channel = rng.choice(left)
            self.dropping[channel] = now_us()
            await self._commit([ListenAction(channel, listens=False)])
            self.dropped[channel] = now_us()

    async def _until_woken(self, seconds: float) -> None:
        if not self._is_woken:
            self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._waiter}, timeout=seconds)

    async def _take(self) -> list[Heard]:
        found: list[Heard] = []
        more = True
        while more:
            was_woken, self._is_woken = self._is_woken, False
            taken = await self._driver.take_notifications(self._owner)
            if taken.sent and not was_woken and not found:
                self._world.found("not-woken", f"{taken.sent} for {self._owner}")  # E1
            for sent in taken.sent:
                said = sent.notification
                found.append(Heard(said.channel, int(said.payload), sent.sender))
            more = taken.more
        self.heard += found
        self.drained_at = now_us()
        self._world.tally.heard += len(found)
        return found

    async def _look_at(self, value: int, key_of: dict[int, str]) -> None:
        """What was told is there (E2)."""
        key = key_of.get(value)
        if key is None:
            return

        async def body(session: Session) -> tuple[()]:
            (rows,) = await session.rows(key)
            there = value in [row.value for row in rows]
            session.expect(there, "unseen", f"{value} was heard, and is not in {key}")
            return ()

        owner = self._owner + (1 << 20)
        await Session(self._world, self._server, self._memory, owner).run(body)


def now_us() -> int:
    """The loop's time, as histories have it."""
    return int(asyncio.get_running_loop().time() * 1_000_000)


def epoch_of(server: Server) -> int:
    """That of a server which sessions talk to; no two share one."""
    assert server.epoch is not None, "who serves has taken over"
    return server.epoch
