"""The protocol as stories: each told whole, byte by byte, and with everything sent in advance.

client                  frontend messages, or raw("hex"), one a line
----
F .. B ..               what the session gets, and what the protocol answers by itself
state READY             where it stands then

server                  backend messages that the session sends, one a line
----
B ..
state READY
"""

import os
from pathlib import Path

import pytest

from coordinator.pgwire import messages
from coordinator.pgwire.client_codec import decode_backend, encode_frontend
from coordinator.pgwire.messages import BackendMessage, FrontendMessage
from coordinator.pgwire.protocol import Limits, Protocol
from coordinator.pgwire.trace import trace_backend, trace_frontend
from sql.errors import SqlError
from tests.support.transcript import Command, run_transcript

TESTDATA = Path(__file__).parent / "testdata"
SESSIONS = sorted(TESTDATA.glob("session_*.txt"))
STARTUPS = sorted(TESTDATA.glob("startup_*.txt"))
IN_PIECES = [path for path in (*STARTUPS, *SESSIONS) if "plaintext_behind" not in path.stem]
"""In the others, bytes come together with those before them: later they are another story."""
LIMITS = Limits(message_bytes_max=5000, startup_bytes_max=200, control_bytes_max=50)

_NAMES = {
    **{name: getattr(messages, name) for name in dir(messages) if not name.startswith("_")},
    "SqlError": SqlError,
    "raw": bytes.fromhex,
}


def _client_bytes(command: Command) -> bytes:
    return b"".join(_encoded(line) for line in command.body.splitlines())


def _encoded(line: str) -> bytes:
    value: bytes | FrontendMessage = eval(line, {}, _NAMES)
    return value if isinstance(value, bytes) else encode_frontend(value)


class Player:
    """Plays one story. `piece_bytes` 0: whole."""

    def __init__(self, *, piece_bytes: int = 0) -> None:
        self.wire = Protocol(LIMITS)
        self._piece_bytes = piece_bytes
        self.taken: list[int] = []

    def __call__(self, command: Command) -> str:
        lines = self._client(command) if command.name == "client" else self._server(command)
        return "\n".join([*lines, f"state {self.wire.state.name}"])

    def _client(self, command: Command) -> list[str]:
        data = _client_bytes(command)
        size = self._piece_bytes or len(data) or 1
        lines: list[str] = []
        taken = 0
        for start in range(0, len(data), size):
            self.wire.feed(data[start : start + size])
            while (message := self.wire.take()) is not None:
                taken += 1
                lines.append(trace_frontend(message))
        self.taken.append(taken)
        return [*lines, *self.answers()]

    def _server(self, command: Command) -> list[str]:
        for line in command.body.splitlines():
            message: BackendMessage = eval(line, {}, _NAMES)
            self.wire.send(message)
        return self.answers()

    def answers(self) -> list[str]:
        """What was sent meanwhile; the byte N stands alone."""
        data = b"".join(self.wire.data_to_send())
        lines: list[str] = []
        # Behind the type of a message comes its length, which begins with 0 here.
        while data[:1] == b"N" and data[1:2] != b"\0":
            lines.append("B EncryptionRefused")
            data = data[1:]
        return lines + [line for one in decode_backend(data) for line in trace_backend(one)]


class EagerPlayer(Player):
    """Everything that the client will ever say is there when the session begins."""

    def __init__(self, script: list[bytes], taken: list[int]) -> None:
        super().__init__()
        self._script = script
        self._expected = taken
        self._block = 0

    def _client(self, command: Command) -> list[str]:
        if self._block == 0:
            self.wire.feed(self._script[0])
        elif self._block == 1:
            self.wire.feed(b"".join(self._script[1:]))
        lines: list[str] = []
        for _ in range(self._expected[self._block]):
            message = self.wire.take()
            assert message is not None, "P1: the message is there already"
            lines.append(trace_frontend(message))
        self._block += 1
        if self._block == len(self._script):
            assert self.wire.take() is None, "nothing more was said"
        return [*lines, *self.answers()]


def _blocks(path: Path) -> tuple[list[bytes], list[int]]:
    script: list[bytes] = []
    player = Player()

    def collect(command: Command) -> str:
        if command.name == "client":
            script.append(_client_bytes(command))
        return player(command)

    run_transcript(path, collect)
    return script, player.taken


@pytest.mark.parametrize("path", [*STARTUPS, *SESSIONS], ids=lambda path: path.stem)
def test_stories(path: Path) -> None:
    run_transcript(path, Player())


@pytest.mark.skipif(os.environ.get("REWRITE") == "1", reason="the whole story is the truth")
@pytest.mark.parametrize("path", IN_PIECES, ids=lambda path: path.stem)
def test_stories_byte_by_byte(path: Path) -> None:
    run_transcript(path, Player(piece_bytes=1))


@pytest.mark.skipif(os.environ.get("REWRITE") == "1", reason="the whole story is the truth")
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_stories_with_everything_sent_in_advance(path: Path) -> None:
    script, taken = _blocks(path)
    run_transcript(path, EagerPlayer(script, taken))


def test_large_answers_are_not_copied() -> None:
    wire = Protocol()
    wire.feed(encode_frontend(messages.StartupMessage({"user": "a"})))
    wire.take()
    rows = memoryview(bytes(100_000))
    wire.send(messages.AuthenticationOk())
    wire.send(messages.DataRows(rows, 1))
    wire.send(messages.CommandComplete("SELECT 1"))
    assert wire.pending_bytes == 9 + 100_000 + 14
    pieces = wire.data_to_send()
    assert [len(piece) for piece in pieces] == [9, 100_000, 14]
    assert pieces[1] is rows
    assert wire.pending_bytes == 0
    assert wire.data_to_send() == []


def test_a_claim_of_a_gigabyte_is_refused_before_it_is_held() -> None:
    wire = Protocol(LIMITS)
    wire.feed(encode_frontend(messages.StartupMessage({"user": "a"})))
    wire.take()
    wire.send(messages.AuthenticationOk())
    wire.data_to_send()
    wire.feed(b"Q" + (1 << 30).to_bytes(4, "big"))
    assert wire.take() is None
    assert wire.is_closed
    assert b"54000" in b"".join(wire.data_to_send())
    wire.feed(bytes(1 << 20))
    assert "in=0" in repr(wire)


@pytest.mark.parametrize(("minor", "secret"), [(0, 3), (0, 5), (0, 32), (1, 32), (2, 3), (2, 257)])
def test_a_key_that_the_version_does_not_know_is_our_bug(minor: int, secret: int) -> None:
    wire = Protocol()
    wire.feed(encode_frontend(messages.StartupMessage({"user": "a"}, 3, minor)))
    wire.take()
    with pytest.raises(AssertionError):
        wire.send(messages.BackendKeyData(1, bytes(secret)))


def test_an_answer_out_of_order_is_our_bug() -> None:
    wire = Protocol()
    with pytest.raises(AssertionError):
        wire.send(messages.ReadyForQuery(messages.TransactionStatus.IDLE))


def test_a_peeked_message_is_judged_again_when_it_is_taken() -> None:
    wire = Protocol()
    wire.feed(encode_frontend(messages.StartupMessage({"user": "a"})))
    wire.take()
    wire.send(messages.AuthenticationOk())
    for message in (messages.Execute(""), messages.Execute(""), messages.Sync()):
        wire.feed(encode_frontend(message))
    assert wire.take() == messages.Execute("")
    assert wire.peek() == messages.Execute("")
    wire.send(messages.error_response(SqlError("22012", "division by zero")))
    assert wire.take() == messages.Sync()
