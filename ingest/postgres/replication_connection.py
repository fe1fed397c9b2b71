"""The stream of a slot: COPY BOTH with its keepalives, and a timer that tells upstream we live.

    upstream ─ 'w' data, 'k' keepalive ─▶ next_event        acknowledge ─ 'r' status ─▶ upstream

INVARIANTS
  K1  upstream hears of no position but those given to `acknowledge`; written, flushed and applied
      are told alike. Before the first one it hears none.
  K2  a status goes out by a timer of its own: also while nobody reads, which is how a reader that
      waits for room holds its upstream back.
"""

import asyncio
import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from ingest.postgres.libpq_link import LibpqLink, quote_name, quote_text
from ingest.postgres.pgoutput import format_lsn
from ingest.reader import ReaderFailure

_DATA: Final = struct.Struct("!cqqq")
_KEEPALIVE: Final = struct.Struct("!cqqB")
_STATUS: Final = struct.Struct("!cqqqqB")
_STATUS_SECONDS: Final = 5.0
"""Well below wal_sender_timeout, which is a minute; a status costs 34 bytes."""


@dataclass(frozen=True, slots=True)
class StreamData:
    """A message of the plugin."""

    body: bytes


@dataclass(frozen=True, slots=True)
class StreamKeepalive:
    """Everything that was committed up to `wal_end` has been sent."""

    wal_end: int


StreamEvent: TypeAlias = StreamData | StreamKeepalive


class ReplicationStream:
    """A started stream; made by `open`."""

    def __init__(self, link: LibpqLink, status_seconds: float) -> None:
        self._link = link
        self._acknowledged = 0
        self._status_seconds = status_seconds
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(status_seconds, self._tick)

    @staticmethod
    async def open(
        link: LibpqLink,
        slot: str,
        publication: str,
        after: int,
        *,
        status_seconds: float = _STATUS_SECONDS,
    ) -> "ReplicationStream":
        """START_REPLICATION directly behind a position."""
        names = quote_text(quote_name(publication))
        await link.start_streaming(
            f"START_REPLICATION SLOT {quote_name(slot)} LOGICAL {format_lsn(after)} "
            f"(proto_version '1', publication_names {names}, messages 'true')"
        )
        return ReplicationStream(link, status_seconds)

    def next_event(self) -> StreamEvent | None:
        """What has come; None if nothing has. Raises `ReaderFailure`."""
        body = self._link.next_message()
        if body is None:
            return None
        kind = body[:1]
        if kind == b"w":
            return StreamData(body[_DATA.size :])
        if kind == b"k":
            _, wal_end, _, reply = _KEEPALIVE.unpack(body)
            if reply:
                self._send_status()
            return StreamKeepalive(wal_end)
        raise ReaderFailure("08P01", f"upstream sent a message of kind {kind!r}")

    async def wait(self, seconds: float) -> None:
        """Until something comes, at most so long."""
        await self._link.wait_readable(seconds)

    def wake(self) -> None:
        """End `wait`."""
        self._link.wake()

    def acknowledge(self, upto: int) -> None:
        """K1. Upstream may forget what lies up to there."""
        self._acknowledged = max(self._acknowledged, upto)
        self._send_status()

    def _send_status(self) -> None:
        lsn = self._acknowledged
        self._link.send(_STATUS.pack(b"r", lsn, lsn, lsn, 0, 0))

    def _tick(self) -> None:
        """K2."""
        self._send_status()
        self._timer = self._loop.call_later(self._status_seconds, self._tick)

    def close(self) -> None:
        """End the stream; the slot stays."""
        self._timer.cancel()
        self._link.close()
