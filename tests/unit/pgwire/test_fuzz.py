"""Mutated sessions: whatever the bytes, the protocol hands out messages, reports, or closes.

INVARIANT: `feed` and `take` never raise; every ending has a SQLSTATE unless nobody was greeted yet;
what was sent is a sequence of whole messages; the same bytes in other pieces are the same story.
"""

import random

import pytest

from coordinator.pgwire.client_codec import decode_backend, encode_frontend
from coordinator.pgwire.message_order import State
from coordinator.pgwire.messages import (
    AuthenticationOk,
    BackendKeyData,
    Bind,
    BindComplete,
    CancelRequest,
    Close,
    CloseComplete,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyFail,
    CopyInResponse,
    Describe,
    ErrorResponse,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    GssEncRequest,
    Malformed,
    NoData,
    Parse,
    ParseComplete,
    Query,
    ReadyForQuery,
    SslRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    TransactionStatus,
    error_response,
)
from coordinator.pgwire.protocol import Limits, Protocol
from coordinator.pgwire.trace import trace_frontend
from sql.errors import SqlError

LIMITS = Limits(message_bytes_max=2000, startup_bytes_max=500, control_bytes_max=100)
MUTATIONS = 40
SEEDS = 60


def _session(rng: random.Random) -> list[bytes]:
    """The frames of a client that knows the protocol."""
    messages: list[FrontendMessage] = []
    if rng.random() < 0.3:
        messages.append(rng.choice([SslRequest(), GssEncRequest(), CancelRequest(1, b"keys")]))
    options = ("_pq_.x",) if rng.random() < 0.2 else ()
    parameters = {"user": "ann", "options": "-c jit=off"}
    messages.append(StartupMessage(parameters, 3, rng.choice([0, 2, 9]), options))
    for _ in range(rng.randrange(1, 12)):
        messages += rng.choice(
            [
                [Query("SELECT 'ä'")],
                [Query("COPY t FROM STDIN"), CopyData(b"1\ta\n"), CopyDone()],
                [Query("COPY t FROM STDIN"), CopyData(b"1"), Flush(), CopyFail("no")],
                [Parse("", "SELECT $1", (23, 0)), Describe(Target.STATEMENT, ""), Sync()],
                [Bind("", "", (1,), (b"\0\0\0\1", None), (0, 1)), Execute("", 5), Sync()],
                [Execute("fail"), Execute(""), Close(Target.PORTAL, ""), Sync()],
                [FunctionCall(1)],
                [Flush()],
            ]
        )
    return [encode_frontend(message) for message in [*messages, Terminate()]]


def _mutated(frames: list[bytes], rng: random.Random) -> bytes:
    frames = list(frames)
    for _ in range(rng.randrange(4)):
        match rng.randrange(6):
            case 0:
                rng.shuffle(frames)
            case 1:
                frames.insert(rng.randrange(len(frames) + 1), rng.choice(frames))
            case 2:
                frames.pop(rng.randrange(len(frames)))
                frames = frames or [b""]
            case _:
                place = rng.randrange(len(frames))
                frames[place] = _damaged(frames[place], rng)
    return b"".join(frames)


def _damaged(frame: bytes, rng: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                data[place:place] = rng.randbytes(rng.randrange(6))
            case 2:
                del data[place : place + rng.randrange(1, 5)]
            case _:
                data[place : place + 4] = rng.choice(
                    [b"\0\0\0\0", b"\xff" * 4, b"\x7f\xff\xff\xff"]
                )
    return bytes(data)


def _answer(wire: Protocol, message: FrontendMessage, rng: random.Random) -> None:
    """A session that answers as ours would."""
    ready = ReadyForQuery(TransactionStatus.IDLE)
    wrong = error_response(SqlError("XX001", "wrong"))
    match message:
        case StartupMessage(minor=minor):
            wire.send(AuthenticationOk())
            wire.send(BackendKeyData(1, bytes(32 if minor >= 2 else 4)))
            wire.send(ready)
        case Query(text=text) if text.startswith("COPY"):
            wire.send(CopyInResponse((0, 0)))
        case CopyData() if rng.random() < 0.2:
            wire.send(wrong)
            if wire.state is State.READY:
                wire.send(ready)
        case Query() | CopyDone() | CopyFail():
            wire.send(CommandComplete("SELECT 0") if rng.random() < 0.7 else wrong)
            if wire.state is State.READY:
                wire.send(ready)
        case Sync() if wire.state is State.COPY_IN:
            pass
        case Sync() | Malformed(is_simple=True):
            wire.send(ready)
        case Malformed() | Execute(portal="fail"):
            wire.send(wrong)
        case Parse():
            wire.send(ParseComplete())
        case Bind():
            wire.send(BindComplete())
        case Describe():
            wire.send(NoData())
        case Close():
            wire.send(CloseComplete())
        case _:
            pass


def _play(data: bytes, pieces: list[int], seed: int) -> tuple[list[str], bytes]:
    """What the session got, and all that was sent."""
    wire = Protocol(LIMITS)
    rng = random.Random(seed)
    story: list[str] = []
    sent = bytearray()
    start = 0
    for size in pieces:
        wire.feed(data[start : start + size])
        start += size
        while (message := wire.take()) is not None:
            story.append(trace_frontend(message))
            _answer(wire, message, rng)
        sent += b"".join(wire.data_to_send())
    _check_end(wire, bytes(sent), story)
    return [*story, wire.state.name], bytes(sent)


def _check_end(wire: Protocol, sent: bytes, story: list[str]) -> None:
    greeted = sent.lstrip(b"N")
    answers = decode_backend(greeted)
    fatal = [one for one in answers if isinstance(one, ErrorResponse) and one.is_fatal]
    assert len(fatal) <= 1
    if fatal:
        assert answers[-1] is fatal[0]
        assert len(fatal[0].sqlstate) == 5
        assert wire.is_closed
    elif wire.is_closed and story:
        assert story[-1].startswith(("F Terminate", "F CancelRequest"))


def _pieces(length: int, rng: random.Random) -> list[int]:
    sizes: list[int] = []
    while sum(sizes) < length:
        sizes.append(rng.choice([1, 2, 3, 7, 50]))
    return sizes


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_bytes_break_the_protocol(seed: int) -> None:
    rng = random.Random(seed)
    frames = _session(rng)
    for _ in range(MUTATIONS):
        data = _mutated(frames, rng)
        whole = _play(data, [len(data)], seed)
        if not data.startswith((b"\0\0\0\x08", b"\0\0\0\x08")):
            # Only behind an encryption request does it matter what comes in the same piece.
            assert _play(data, _pieces(len(data), rng), seed) == whole


def test_undamaged_sessions_run_to_their_end() -> None:
    for seed in range(SEEDS):
        rng = random.Random(seed)
        frames = [f for f in _session(rng) if f[:8] != b"\0\0\0\x08" + f[4:8]]
        if frames[0][4:8] == b"\x04\xd2\x16\x2e":
            continue
        story, _ = _play(b"".join(frames), [1] * sum(map(len, frames)), seed)
        assert story[-2:] == ["F Terminate", "CLOSED"]
