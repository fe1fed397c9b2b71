"""Recognise the flights that clients send most: a simple query, or Bind .. Sync of one statement.

    Q text
    B unnamed portal ─▶ [D unnamed portal] ─▶ E all of its rows ─▶ S

Drivers send the second one for each run of a prepared statement, and batches of runs as one flight:
`next_run` recognises one that goes on after another. Who answers a flight answers all
of it; whoever will not leaves it where it is, and gets it message by message.

INVARIANTS
  F1  a flight is recognised when all of its bytes have come, and takes nothing by itself.
  F2  it is what its messages say one by one: anything unusual in one of them is no flight.
"""

import struct
from typing import Final, TypeAlias

from coordinator.pgwire.codec import decode_frontend
from coordinator.pgwire.messages import Bind, Query
from ingest.copy_text.encoding import decode_text
from sql.errors import SqlError
from storage.fast_dataclass import fast_dataclass

FLIGHT_BYTES_MAX: Final = 1 << 20
"""Of a flight. Larger: long values are decoded beside everybody else's statements."""

_LENGTH: Final = struct.Struct("!i")
_QUERY: Final = ord("Q")
_BIND: Final = ord("B")
_DESCRIBE: Final = b"D\0\0\0\6P\0"
_EXECUTE: Final = b"E\0\0\0\x09\0\0\0\0\0"
_EXECUTE_UNNAMED: Final = _EXECUTE[:-4]
_SYNC: Final = b"S\0\0\0\4"
_RUN: Final = _EXECUTE + _SYNC
_DESCRIBED_RUN: Final = _DESCRIBE + _RUN


@fast_dataclass(frozen=True, slots=True)
class QueryFlight:
    """A simple query. `size`: its bytes."""

    text: str
    size: int


@fast_dataclass(frozen=True, slots=True)
class BindFlight:
    """One run of a prepared statement, `payload` being that of its Bind. `described`: the portal is
    described before it runs.
    """

    statement: str
    payload: bytes
    described: bool
    size: int

    def bind(self) -> Bind:
        """The values. Raises SqlError for a message that is none (F2)."""
        message = decode_frontend(_BIND, self.payload)
        assert isinstance(message, Bind), "the type byte said so"
        return message


Flight: TypeAlias = QueryFlight | BindFlight


def next_flight(data: bytearray, start: int) -> Flight | None:
    """The flight that begins at `start` of what a client has sent; None if there is none (F1)."""
    if len(data) < start + 6:
        return None
    kind = data[start]
    if kind not in (_QUERY, _BIND):
        return None
    length: int = _LENGTH.unpack_from(data, start + 1)[0]
    end = start + 1 + length
    if not 4 < length <= FLIGHT_BYTES_MAX or len(data) < end:
        return None
    payload = bytes(data[start + 5 : end])
    if kind == _QUERY:
        return _query(payload, 1 + length)
    described = data.startswith(_DESCRIBED_RUN, end)
    behind = _DESCRIBED_RUN if described else _RUN
    name_end = payload.find(0, 1)
    if payload[0] or name_end < 0 or not data.startswith(behind, end):
        return None
    try:
        statement = decode_text(payload[1:name_end])
    except SqlError:
        return None
    return BindFlight(statement, payload, described, 1 + length + len(behind))


def next_run(data: bytearray, start: int) -> BindFlight | None:
    """The run of a prepared statement that begins at `start`; None if there is none (F1)."""
    if len(data) < start + 6 or data[start] != _BIND:
        return None
    length: int = _LENGTH.unpack_from(data, start + 1)[0]
    end = start + 1 + length
    if not 4 < length <= FLIGHT_BYTES_MAX or len(data) < end:
        return None
    payload = bytes(data[start + 5 : end])
    name_end = payload.find(0, 1)
    described = data.startswith(_DESCRIBE, end)
    behind = end + len(_DESCRIBE) if described else end
    is_run = data.startswith(_EXECUTE_UNNAMED, behind) and len(data) >= behind + len(_EXECUTE)
    if payload[0] or name_end < 0 or not is_run:
        return None
    try:
        statement = decode_text(payload[1:name_end])
    except SqlError:
        return None
    return BindFlight(statement, payload, described, behind + len(_EXECUTE) - start)


def _query(payload: bytes, size: int) -> QueryFlight | None:
    try:
        message = decode_frontend(_QUERY, payload)
    except SqlError:
        return None  # F2: who takes the message says what is wrong
    assert isinstance(message, Query), "the type byte said so"
    return QueryFlight(message.text, size)
