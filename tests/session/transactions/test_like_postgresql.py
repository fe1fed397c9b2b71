"""Transactions as PostgreSQL has them: one script, two servers, the same answers.

A script is a line a message. Lines in upper case are simple queries, each answered before the next;
`parse`, `bind`, .. (see `wire.py`) are sent together up to `sync`. Compared are rows, tags, errors
and notices with SQLSTATE and text, parameters, and the transaction's status, in their order.
"""

from pathlib import Path

import pytest

from coordinator.pgwire.messages import (
    BackendMessage,
    FrontendMessage,
    ParameterStatus,
    Query,
    RowDescription,
    Sync,
)
from tests.support.wire import WireClient, parse_line, show

DIRECTORY = Path(__file__).parent / "testdata"
EXTENDED = frozenset(
    {"parse", "bind", "describe", "execute", "close", "sync", "copydata", "copydone"}
)
SETUP = (
    "DROP TABLE IF EXISTS t, u, v",
    "CREATE TABLE t (a int)",
    "INSERT INTO t VALUES (1), (2)",
)
SCRIPTS_MIN = 60


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


def played(dsn: str, lines: list[str], **parameters: str) -> list[str]:
    """What a server answers, a line a message."""
    with WireClient(dsn, TimeZone="UTC", **parameters) as client:
        for line in SETUP:
            client.send(Query(line))
            client.answers(1)
        heard: list[str] = []
        pending: list[FrontendMessage] = []
        for line in lines:
            heard.append(f"> {line}")
            pending.append(parse_line(line) if line.split()[0] in EXTENDED else Query(line))
            if isinstance(pending[-1], Query | Sync):
                client.send(*pending)
                pending.clear()
                heard += [shown(answer) for answer in client.answers(1) if is_compared(answer)]
        return heard


def is_compared(answer: BackendMessage) -> bool:
    if isinstance(answer, ParameterStatus):
        return answer.name in ("application_name", "TimeZone", "search_path")
    # The types of columns are compared elsewhere.
    return not isinstance(answer, RowDescription)


def shown(answer: BackendMessage) -> str:
    """Without details and hints, which may say more than PostgreSQL's; positions count."""
    line = show(answer)
    if line.startswith(("ERROR", "WARNING", "NOTICE", "FATAL")):
        for key in (" D=", " H=", " W="):
            line = line.split(key)[0]
    return line


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str, real: str, ours: str) -> None:
    expected = played(real, SCRIPTS[name], user="postgres", database="postgres")
    assert played(ours, SCRIPTS[name]) == expected
    # PostgreSQL's own default level, where every statement has a snapshot of its own.
    level = "read committed"
    assert played(ours, SCRIPTS[name], default_transaction_isolation=level) == expected


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) >= SCRIPTS_MIN
