"""LISTEN and NOTIFY as PostgreSQL has them: several sessions, two servers, the same messages.

A script is a line a message, as in `test_like_postgresql.py`. `@b` in front: it is of the session
`b`; without, of `a`. Beside the messages there are

    hear N     send what is pending, and read so many messages: who is idle hears by itself
    ask TEXT   a simple query that is not answered at once
    drain      everything that the session hears, wherever it came: nothing is still on its way
    leave      hang up

Compared is every message that a session gets, in its order, but for parameters that are reported.
The sender is named by its session.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coordinator.pgwire.messages import (
    BackendMessage,
    FrontendMessage,
    NotificationResponse,
    ParameterStatus,
    Query,
    Sync,
)
from tests.support.wire import WireClient, parse_line, show

DIRECTORY = Path(__file__).parent / "testdata" / "notifications"
MESSAGES = frozenset(
    {"parse", "bind", "describe", "execute", "close", "sync", "flush"}
    | {"copydata", "copydone", "copyfail"}
)
SETUP = ("DROP TABLE IF EXISTS t, u", "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)")
POSTGRES = {"user": "postgres", "database": "postgres"}
SCRIPTS_MIN = 40
RANDOM_SCRIPTS = 15
RANDOM_STEPS = 30


def scripts() -> dict[str, list[str]]:
    """All scripts by name: `== name` begins one, `#` a comment."""
    found: dict[str, list[str]] = {}
    for path in sorted(DIRECTORY.glob("*.txt")):
        name = ""
        for line in path.read_text().splitlines():
            if line.startswith("== "):
                name = f"{path.stem}: {line.removeprefix('== ')}"
                assert name not in found, f"two scripts are called {name}"
                found[name] = []
            elif line and not line.startswith("#"):
                found[name].append(line)
    return found


SCRIPTS = scripts()


@dataclass
class Cast:
    """The sessions of one script, by name."""

    dsn: str
    parameters: dict[str, str]
    clients: dict[str, WireClient] = field(default_factory=dict)
    pending: dict[str, list[FrontendMessage]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def do(self, who: str, line: str) -> Iterator[str]:
        """One line of a session; what is heard."""
        word, _, rest = line.partition(" ")
        if word == "leave":
            self.clients.pop(who).close()
            return
        client, pending = self._client(who), self.pending.setdefault(who, [])
        if word == "drain":
            client.send(Query(";"))
            told = client.answers(1)
            yield from self._told([m for m in told if isinstance(m, NotificationResponse)])
        elif word == "hear":
            self._send(client, pending)
            yield from self._told(client.answers(0, count=int(rest)))
        elif word == "ask":
            pending.append(Query(rest))
        else:
            pending.append(parse_line(line) if word in MESSAGES else Query(line))
            if isinstance(pending[-1], Query | Sync):
                self._send(client, pending)
                yield from self._told(client.answers(1))
            elif word == "flush":
                self._send(client, pending)

    def _send(self, client: WireClient, pending: list[FrontendMessage]) -> None:
        client.send(*pending)
        pending.clear()

    def _client(self, who: str) -> WireClient:
        client = self.clients.get(who)
        if client is None:
            client = self.clients[who] = WireClient(self.dsn, TimeZone="UTC", **self.parameters)
            assert client.key is not None
            self.names[client.key.pid] = who
        return client

    def _told(self, answers: list[BackendMessage]) -> Iterator[str]:
        for answer in answers:
            match answer:
                case NotificationResponse(pid=pid, channel=channel, payload=payload):
                    yield f"NotificationResponse of {self.names[pid]}: {channel} {payload!r}"
                case ParameterStatus(name=name) if name != "application_name":
                    pass
                case _:
                    # Details and hints may say more than PostgreSQL's.
                    yield show(answer).split(" D=")[0].split(" H=")[0].split(" W=")[0]

    def end(self) -> None:
        """All hang up."""
        for client in self.clients.values():
            client.close()


def played(dsn: str, lines: list[str], **parameters: str) -> list[str]:
    """What a server answers, a line a message."""
    cast, heard = Cast(dsn, parameters), list[str]()
    try:
        for line in SETUP:
            list(cast.do("a", line))
        for line in lines:
            who, line_of = "a", line
            if line.startswith("@"):
                who, _, line_of = line.removeprefix("@").partition(" ")
            heard.append(f"> {line}")
            heard += cast.do(who, line_of)
        return heard
    finally:
        cast.end()


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str, real: str, ours: str) -> None:
    expected = played(real, SCRIPTS[name], **POSTGRES)
    assert played(ours, SCRIPTS[name]) == expected


def random_lines(chooses: random.Random) -> Iterator[str]:
    """Three sessions that listen and notify, in blocks and out of them.

    A session comes to listen only outside of blocks, or in one during which nobody else commits:
    see B2 of `core/notifications/queue.py`. After each line all who can hear are asked.
    """
    depth = dict.fromkeys("abd", -1)  # -1: not in a block; then the number of savepoints
    for _ in range(RANDOM_STEPS):
        who = chooses.choice("abd")
        channel, payload = chooses.choice("xyz"), chooses.choice("123")
        listens = chooses.choice((f"LISTEN {channel}", f"UNLISTEN {channel}", "UNLISTEN *"))
        says = chooses.choice(
            (f"NOTIFY {channel}, '{payload}'", f"SELECT pg_notify('{channel}', '{payload}')")
        )
        if depth[who] < 0:
            lines = chooses.choice(
                (
                    [listens],
                    [listens],
                    [says],
                    [says],
                    ["BEGIN"],
                    ["BEGIN"],
                    [f"{says}; SELECT 1; {says}"],
                    [f"{listens}; {says}; SELECT 1/0"],
                    ["BEGIN", says, listens, "SAVEPOINT s", listens, "ROLLBACK TO s", "COMMIT"],
                    ["BEGIN", listens, says, "ROLLBACK"],
                    [f"parse - {says}", "bind - -", "execute -", f"parse - {listens}", "sync"],
                    [f"parse - {says}", "bind - -", "execute -", "parse - SELECT 1/", "sync"],
                )
            )
        else:
            lines = [
                chooses.choice(
                    (says, says, says, "SAVEPOINT s", "SELECT 1/0", "COMMIT", "ROLLBACK")
                    + (("ROLLBACK TO s", "RELEASE s") if depth[who] else ())
                )
            ]
        for line in lines:
            yield f"@{who} {line}"
        depth[who] = _depth(depth[who], lines[-1])
        for other in "abd":
            if depth[other] < 0:
                yield f"@{other} drain"


def _depth(depth: int, line: str) -> int:
    match line:
        case "BEGIN":
            return 0
        case "SAVEPOINT s":
            return depth + 1
        case "RELEASE s":
            return depth - 1
        case "COMMIT" | "ROLLBACK":
            return -1
        case _:
            return depth


@pytest.mark.parametrize("seed", range(RANDOM_SCRIPTS))
def test_random_scripts_like_postgresql(seed: int, real: str, ours: str) -> None:
    lines = [*random_lines(random.Random(seed))]
    assert played(ours, lines) == played(real, lines, **POSTGRES)


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) >= SCRIPTS_MIN
