"""Transactions as PostgreSQL has them: one script, two servers, the same answers.

A script is a line a message. Lines in upper case are simple queries, each answered before the next;
`parse`, `bind`, .. (see `wire.py`) are sent together up to `sync`. Compared are rows, tags, errors
and notices with SQLSTATE and text, parameters, and the transaction's status, in their order.
"""

import random
from collections.abc import Iterator
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
from tests.support.servers import meridian, postgres
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
RANDOM_SCRIPTS = 30
RANDOM_LINES = 40


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


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    with postgres() as dsn:
        yield dsn


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with meridian(tmp_path_factory.mktemp("ours"), ["--spark-master", "reference"]) as server:
        yield server.dsn


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str, real: str, ours: str) -> None:
    expected = played(real, SCRIPTS[name], user="postgres", database="postgres")
    assert played(ours, SCRIPTS[name]) == expected
    # PostgreSQL's own default level, where every statement has a snapshot of its own.
    level = "read committed"
    assert played(ours, SCRIPTS[name], default_transaction_isolation=level) == expected


LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")


def random_lines(chooses: random.Random) -> list[str]:
    """Statements that set and show levels, in blocks and out of them."""

    def line() -> str:
        level, scope = chooses.choice(LEVELS), chooses.choice(("", "LOCAL ", "SESSION "))
        local, default = chooses.choice(("true", "false")), chooses.choice(("", "default_"))
        return chooses.choice(
            (
                "BEGIN",
                f"BEGIN ISOLATION LEVEL {level}",
                "START TRANSACTION READ ONLY",
                "COMMIT",
                "ROLLBACK",
                "COMMIT AND CHAIN",
                "ROLLBACK AND CHAIN",
                "SAVEPOINT s",
                "ROLLBACK TO s",
                "RELEASE s",
                "SELECT 1",
                "SELECT 1/0",
                "RESET ALL",
                "DISCARD ALL",
                f"RESET {default}transaction_isolation",
                f"SET {scope}{default}transaction_isolation TO DEFAULT",
                f"SET TRANSACTION ISOLATION LEVEL {level}",
                f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}",
                f"SET {scope}{default}transaction_isolation = '{level}'",
                f"SELECT set_config('{default}transaction_isolation', '{level}', {local})",
                f"SELECT 1; SET {scope}{default}transaction_isolation = '{level}'; SHOW ALL_OF_IT",
                "SELECT setting FROM pg_settings"
                " WHERE name LIKE '%transaction_isolation' ORDER BY name",
            )
        ).replace("SHOW ALL_OF_IT", "SHOW transaction_isolation")

    shows = ("SHOW transaction_isolation", "SHOW default_transaction_isolation")
    return [text for _ in range(RANDOM_LINES) for text in (line(), *shows)]


@pytest.mark.parametrize("seed", range(RANDOM_SCRIPTS))
def test_levels_are_set_and_shown_as_in_postgresql(seed: int, real: str, ours: str) -> None:
    lines = random_lines(random.Random(seed))
    begun = {"default_transaction_isolation": LEVELS[seed % len(LEVELS)]}
    expected = played(real, lines, user="postgres", database="postgres", **begun)
    ending = ["ROLLBACK", "SHOW transaction_isolation", "EXPLAIN TIMESTAMP FOR SELECT 1"]
    found = played(ours, [*lines, *ending], **begun)
    assert found[: len(expected)] == expected
    # Whoever uses PostgreSQL's names alone is strict wherever the name says so.
    shown, named = (
        next(line for line in found[len(expected) :] if line.startswith(start))
        for start in ("DataRow ", "DataRow Isolation: ")
    )
    is_strict = named == "DataRow Isolation: strict serializable"
    assert is_strict == (shown == "DataRow serializable")


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) >= SCRIPTS_MIN
