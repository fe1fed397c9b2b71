"""A large message without room goes by, and what comes behind it is read as usual (R1)."""

import pytest

from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.large_messages import LARGE_BYTES
from coordinator.pgwire.messages import (
    AuthenticationOk,
    FrontendMessage,
    Malformed,
    Parse,
    Query,
    ReadyForQuery,
    StartupMessage,
    Sync,
    TransactionStatus,
)
from coordinator.pgwire.protocol import Protocol

LARGE = "x" * (LARGE_BYTES + 1)


class Rooms:
    """Says whether there is room, and notes who asked."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []

    def __call__(self, nbytes: int) -> bool:
        self.asked.append(nbytes)
        return self.answers.pop(0)


def ready(rooms: Rooms) -> Protocol:
    """A protocol behind its start-up."""
    wire = Protocol(has_room=rooms)
    wire.feed(encode_frontend(StartupMessage({"user": "ann"})))
    assert isinstance(wire.take(), StartupMessage)
    wire.send(AuthenticationOk())
    wire.send(ReadyForQuery(TransactionStatus.IDLE))
    return wire


def fed(wire: Protocol, data: bytes, step: int) -> list[FrontendMessage]:
    """All messages that come out of bytes that come piece by piece."""
    found: list[FrontendMessage] = []
    for start in range(0, len(data), step):
        wire.feed(data[start : start + step])
        while (message := wire.take()) is not None:
            found.append(message)
            if isinstance(message, Query) or (isinstance(message, Malformed) and message.is_simple):
                wire.send(ReadyForQuery(TransactionStatus.IDLE))
    return found


@pytest.mark.parametrize("step", [7_919, 1 << 16, 1 << 19])
def test_a_query_without_room_goes_by(step: int) -> None:
    rooms = Rooms(False, True)
    wire = ready(rooms)
    data = b"".join(map(encode_frontend, (Query(LARGE), Query("a"), Query(LARGE), Query("b"))))
    refused, *rest = fed(wire, data, step)
    assert isinstance(refused, Malformed)
    assert (refused.error.sqlstate, refused.is_simple) == ("53200", True)
    assert rest == [Query("a"), Query(LARGE), Query("b")]
    assert wire.is_drained
    assert rooms.asked[0] == len(LARGE) + 5
    assert len(rooms.asked) <= 2


def test_it_is_not_drained_while_a_message_goes_by() -> None:
    wire = ready(Rooms(False))
    data = encode_frontend(Query(LARGE))
    wire.feed(data[:1000])
    assert wire.take() is None
    assert not wire.is_drained
    wire.feed(data[1000:])
    assert isinstance(wire.take(), Malformed)
    assert wire.is_drained


def test_a_parse_without_room_fails_up_to_sync() -> None:
    wire = ready(Rooms(False))
    messages = (Parse("", LARGE, ()), Sync(), Query("a"))
    found = fed(wire, b"".join(map(encode_frontend, messages)), 1 << 16)
    assert isinstance(found[0], Malformed)
    assert not found[0].is_simple
    assert found[1:] == [Sync(), Query("a")]
