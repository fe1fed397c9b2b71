"""Leadership of a stash in PostgreSQL: the leader's lock and heartbeat, as a stand-by sees them.

    leader   ── advisory lock, for as long as its connection lives ──┐
             ── beat + 1, every BEAT_S ──────────────────────────────┤
    stand-by ── looks at both, every POLL_S ─────────────────────────┘─▶ vacant? ─▶ next epoch

    lock free, no beat for FREE_S     the leader's process is gone (kill -9, a machine that says so)
    no beat yet, none for CONNECTS_S  it has taken over, and could not connect for its lease
    lock held, no beat for HELD_S     it is paused, or cut off: its connection only seems to live

INVARIANTS
  Z1  safety rests on the epoch alone. A lease that is wrong makes a leader end early or a stand-by
      wait; it never lets two write, or one answer a strict read in another's time.
  Z2  a leader that beats is not taken from, whatever happened to its lock: a lost connection is no
      lost leader.
  Z3  time is measured by the watcher's own clock, from before it asks: clocks of two machines are
      never compared, and a watcher that was paused itself does not take its pause for the leader's.
  Z4  of several who wait, one takes over: the epoch is incremented only if it is the one they saw.
  Z5  a leader that has not beaten yet has its time to connect, whoever watches since when: its
      silence says nothing yet.

Why both: the lock alone is held for hours by a paused process or behind a cut network; the beat
alone cannot tell a dead leader from a slow one in less time than slow ones need.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, cast

from storage.errors import StorageError
from storage.postgres_link import Link, UnfitServer
from storage.types import Epoch

log = logging.getLogger("meridian.lease")

BEAT_S: Final = 0.25
POLL_S: Final = 0.1

FREE_S: Final = 1.0
"""Larger: a later take-over from a dead leader. Smaller: less time for a leader to connect again
after the server has restarted."""

HELD_S: Final = 5.0
"""Larger: a later take-over from a paused leader. Smaller: one that stalls is deposed."""

CONNECTS_S: Final = 5.0
"""Larger: a later take-over from a leader that is gone before its first beat. Smaller: on a busy
machine a new leader is deposed before it has connected, and the next one likewise."""

_LEASE_S: Final = 2.0
"""For one statement about the lease."""

_LOCK: Final = (0x4D455249, 0x4449414E)
_HELD: Final = f"""
    FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND classid = {_LOCK[0]} AND objid = {_LOCK[1]}
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Nobody needs to find the beat after a power failure: it waits for no sync.
_BEAT: Final = """
UPDATE meridian.lease SET epoch = $1, beat = beat + 1
WHERE EXISTS (SELECT FROM meridian.stash WHERE epoch = $1)
RETURNING set_config('synchronous_commit', 'off', true)
"""
_TRY_LOCK: Final = f"SELECT pg_try_advisory_lock({_LOCK[0]}, {_LOCK[1]})"
# Those who led before us, and still look alive to the server.
_EVICT: Final = f"""
SELECT pg_terminate_backend(pid) {_HELD} AND pid <> pg_backend_pid()
AND EXISTS (SELECT FROM meridian.stash WHERE epoch = $1)
"""
_OBSERVE: Final = f"""
SELECT s.epoch, l.beat, EXISTS (SELECT {_HELD}), l.epoch FROM meridian.stash s, meridian.lease l
"""


@dataclass(frozen=True, slots=True)
class Sign:
    """What a watcher sees of the leader."""

    epoch: Epoch
    beat: int
    held: bool
    beaten: Epoch
    """Who has beaten last."""

    @property
    def connects(self) -> bool:
        """The leader has not beaten yet."""
        return self.beaten != self.epoch


class LeaderWatch:
    """Pure: from signs of life to a verdict (Z2, Z3, Z5)."""

    def __init__(self) -> None:
        self._last: tuple[Epoch, int] | None = None
        self._since = 0.0

    def is_vacant(self, sign: Sign, asked_at: float) -> bool:
        """Whether nobody leads, by a sign that was asked for at `asked_at`."""
        if (sign.epoch, sign.beat) != self._last:
            self._last = sign.epoch, sign.beat
            self._since = asked_at
        return asked_at - self._since >= _patience_s(sign)

    def blinded(self) -> None:
        """The server did not answer: the leader may have met the same, and gets its time again."""
        self._last = None


def _patience_s(sign: Sign) -> float:
    if sign.held:
        return HELD_S
    return CONNECTS_S if sign.connects else FREE_S


async def wait_for_vacancy(link: Link) -> Epoch:
    """Wait until nobody leads; the epoch to follow. Raises UnfitServer."""
    loop = asyncio.get_running_loop()
    watch = LeaderWatch()
    while True:
        try:
            await link.open(loop.time() + _LEASE_S)
            asked_at = loop.time()
            sign = await observe_leader(link)
        except UnfitServer:
            raise
        except StorageError as error:
            log.warning("standing by, and the stash does not answer: %s", error)
            watch.blinded()
        else:
            if watch.is_vacant(sign, asked_at):
                return sign.epoch
        await asyncio.sleep(POLL_S)


async def has_leader(link: Link) -> bool:
    """Whether somebody holds the lock."""
    return (await observe_leader(link)).held


async def observe_leader(link: Link) -> Sign:
    """What is to be seen now."""
    ((epoch, beat, held, beaten),) = await link.rows(_OBSERVE, seconds=_LEASE_S)
    return Sign(
        Epoch(cast(int, epoch)), cast(int, beat), cast(bool, held), Epoch(cast(int, beaten))
    )


class Lease:
    """The leader's side: lock and beat, until `close` or another epoch."""

    def __init__(self, dsn: str) -> None:
        self._link = Link(dsn, name="meridian lease")
        self._epoch: Epoch | None = None
        self._locked: int | None = None
        self._beating: asyncio.Task[None] | None = None

    def lead(self, epoch: Epoch) -> None:
        """Beat for this epoch from now on."""
        self._epoch = epoch
        if self._beating is None or self._beating.done():
            # Not in a TaskGroup: it lives until `close`, which waits for it.
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def close(self) -> None:
        """Beat no more, and let go of the lock."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            await asyncio.wait([beating])
        await self._link.close()

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self._link.open(loop.time() + _LEASE_S)
                if not await self._beat_once():
                    return
            except StorageError as error:
                # Whoever reads or writes finds out for himself; here there is nobody to tell.
                log.info("the lease is not renewed: %s", error)
            await asyncio.sleep(BEAT_S)

    async def _beat_once(self) -> bool:
        """False: another one leads."""
        epoch = self._epoch
        if not await self._link.rows(_BEAT, epoch, seconds=_LEASE_S):
            return epoch != self._epoch
        if self._locked != self._link.number:
            ((locked,),) = await self._link.rows(_TRY_LOCK, seconds=_LEASE_S)
            if locked:
                self._locked = self._link.number
            else:
                await self._link.rows(_EVICT, epoch, seconds=_LEASE_S)
        return True
