"""Transactions as PostgreSQL has them: one script, two servers, the same answers.

A script is a line a message. Lines in upper case are simple queries, each answered before the next;
`parse`, `bind`, .. (see `wire.py`) are sent together up to `sync`. Compared are rows, tags, errors
and notices with SQLSTATE and text, parameters, and the transaction's status, in their order.
"""

import random
from itertools import groupby
from pathlib import Path

import pytest

from coordinator.pgwire.messages import (
    BackendMessage,
    ErrorResponse,
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
REPORTED = ("application_name", "TimeZone", "search_path", "session_authorization", "is_superuser")
POSTGRES = {"user": "postgres", "database": "postgres"}
"""Who both servers are asked as: their first superuser."""
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


def played(
    dsn: str, lines: list[str], setup: tuple[str, ...] = SETUP, **parameters: str
) -> list[str]:
    """What a server answers, a line a message; only an error if it lets nobody in."""
    with WireClient(dsn, TimeZone="UTC", **parameters) as client:
        refused = [shown(hi) for hi in client.greeting if isinstance(hi, ErrorResponse)]
        if refused:
            return refused
        for line in setup:
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
                heard += in_order(client.answers(1))
        return heard


def in_order(answers: list[BackendMessage]) -> list[str]:
    """The answers; of parameters that are reported together the order means nothing."""
    told: list[str] = []
    for together, group in groupby(
        filter(is_compared, answers), lambda answer: isinstance(answer, ParameterStatus)
    ):
        lines = map(shown, group)
        told += sorted(lines) if together else lines
    return told


def is_compared(answer: BackendMessage) -> bool:
    if isinstance(answer, ParameterStatus):
        return answer.name in REPORTED
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
    expected = played(real, SCRIPTS[name], **POSTGRES)
    assert played(ours, SCRIPTS[name], **POSTGRES) == expected
    # PostgreSQL's own default level, where every statement has a snapshot of its own.
    level = "read committed"
    assert played(ours, SCRIPTS[name], default_transaction_isolation=level, **POSTGRES) == expected


LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")


def random_levels(chooses: random.Random) -> list[str]:
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
    lines = random_levels(random.Random(seed))
    begun = POSTGRES | {"default_transaction_isolation": LEVELS[seed % len(LEVELS)]}
    expected = played(real, lines, **begun)
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


ROLES = (
    "CREATE ROLE plain",
    "CREATE ROLE above SUPERUSER",
    "CREATE ROLE member LOGIN IN ROLE plain",
)
NO_ROLES = ("RESET SESSION AUTHORIZATION", "RESET ROLE", "DROP ROLE plain, above, member")


def random_roles(chooses: random.Random) -> list[str]:
    """Statements that become one and another, in blocks and out of them."""

    def line() -> str:
        name = chooses.choice(("plain", "above", "member", "postgres", "nobody"))
        scope, local = chooses.choice(("", "LOCAL ", "SESSION ")), chooses.choice(("true", "false"))
        setting = chooses.choice(("role", "session_authorization"))
        return chooses.choice(
            (
                "BEGIN",
                "BEGIN",
                "COMMIT",
                "ROLLBACK",
                "COMMIT AND CHAIN",
                "SAVEPOINT s",
                "SAVEPOINT s",
                "ROLLBACK TO s",
                "RELEASE s",
                "SELECT 1/0",
                "RESET ALL",
                "DISCARD ALL",
                "RESET ROLE",
                "RESET SESSION AUTHORIZATION",
                f"SET {scope}ROLE NONE",
                f"SET {scope}SESSION AUTHORIZATION DEFAULT",
                f"SET {scope}ROLE {name}",
                f"SET {scope}ROLE {name}",
                f"SET {scope}SESSION AUTHORIZATION {name}",
                f"SET {scope}SESSION AUTHORIZATION {name}",
                f"SELECT set_config('{setting}', '{name}', {local})",
                f"SET {scope}ROLE {name}; SELECT current_user; SET ROLE NONE",
            )
        )

    settings = "current_setting('role'), current_setting('is_superuser')"
    who = f"SELECT current_user, session_user, {settings}"
    return [text for _ in range(RANDOM_LINES) for text in (line(), who)]


@pytest.mark.parametrize("seed", range(RANDOM_SCRIPTS))
def test_roles_are_set_and_shown_as_in_postgresql(seed: int, real: str, ours: str) -> None:
    lines = [*ROLES, *random_roles(random.Random(seed)), "ROLLBACK", *NO_ROLES]
    assert played(ours, lines, **POSTGRES) == played(real, lines, **POSTGRES)


WHO = (
    "SHOW role",
    "SHOW is_superuser",
    "SELECT current_user, session_user",
    "RESET ROLE",
    "SHOW role",
    "SET SESSION AUTHORIZATION plain",
    "SHOW role",
    "DISCARD ALL",
    "SHOW role",
    "SELECT current_user, session_user",
    "SET ROLE none",
    "RESET ALL",
    "SELECT current_user, session_user",
)


def test_roles_are_chosen_at_start_up_as_in_postgresql(real: str, ours: str) -> None:
    for dsn in (real, ours):
        played(dsn, list(ROLES), (), **POSTGRES)
    for user, options in (
        ("postgres", "-c role=plain"),
        ("postgres", "-c ROLE=none"),
        ("postgres", "-c role=nobody"),
        ("postgres", "-c session_authorization=member"),
        ("postgres", "-c session_authorization=nobody"),
        ("postgres", "-c is_superuser=off"),
        ("member", ""),
        ("member", "-c role=plain"),
        ("member", "-c role=above"),
        ("member", "-c session_authorization=above"),
    ):
        begun = POSTGRES | {"user": user, "options": options}
        assert played(ours, [*WHO], (), **begun) == played(real, [*WHO], (), **begun), begun
    for dsn in (real, ours):
        played(dsn, list(NO_ROLES), (), **POSTGRES)


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) >= SCRIPTS_MIN
