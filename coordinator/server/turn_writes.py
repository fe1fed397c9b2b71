"""Write the answers of many connections together, at the end of the loop's turn.

A write to a client that waits wakes it, which costs about as much as the answer. Clients that share
a thread then find one answer each time they wake. Written together, the first wakes them, and they
find the others.

    answered ─┬─ of late several were, in a turn ─▶ waits for the turn's end ─▶ all are written
              └─ it was alone ─────────────────────▶ is written at once

INVARIANTS
  W1  what waits is written before anything else that is said to its client, and before the
      connection is closed. A probe (`half_closed.py`) may pass it: a status may come at any time.
  W2  who is alone pays nothing: after some turns with one answer the next ones do not wait. Now and
      then one does, to see whether others have come.
  W3  a failure is that of its connection: the others are written, and nobody who calls us hears of
      it, least of all the driver, which tells of commits.
  W4  much is written at once: its client is told to wait before it has said more (N1 of
      `connection.py`), and the write costs more than what waking costs.
"""

import asyncio
import logging
from typing import Final, Protocol

log = logging.getLogger("meridian.connection")

ALONE_MAX: Final = 4
"""After so many turns with one answer, answers are written at once."""

AT_ONCE: Final = 64
"""So many of them. A turn of the loop costs a tenth of a short read."""

FLUSH_THRESHOLD_BYTES: Final = 64 << 10
"""So much of one connection waits (W4). Larger: fewer system calls, more memory."""


class Writer(Protocol):
    """A connection."""

    def write(self) -> None:
        """Give the transport all that was said."""
        ...

    def give_up(self) -> None:
        """Close it; its client learns it from the end of the stream."""
        ...


class TurnWrites:
    """See the module."""

    def __init__(self) -> None:
        self._waiting: dict[Writer, None] = {}
        self._alone = 0
        self._at_once = 0

    def answered(self, writer: Writer, nbytes: int) -> None:
        """Write what this connection has said, now or at the turn's end; `nbytes`: how much."""
        if nbytes > FLUSH_THRESHOLD_BYTES:
            _write(writer)
            return
        if self._at_once:
            self._at_once -= 1
            _write(writer)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._waiting[writer] = None

    def write_before_close(self, writer: Writer) -> None:
        """Write what waits of it: it is about to be closed (W1)."""
        if self._waiting and writer in self._waiting:
            del self._waiting[writer]
            _write(writer)

    def _end_turn(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._alone = self._alone + 1 if len(waiting) < 2 else 0
        if self._alone >= ALONE_MAX:
            self._at_once = AT_ONCE
        for writer in waiting:
            _write(writer)


def _write(writer: Writer) -> None:
    try:
        writer.write()
    except Exception:
        log.exception("cannot write")
        writer.give_up()
