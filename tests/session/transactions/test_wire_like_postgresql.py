"""Flights of messages as PostgreSQL answers them: whole, split at every byte, and coalesced.

A script is a line a message, as in `wire.py`. They are sent together, up to

    hear N     send what is pending, and read so many messages

At its end the client shuts its side and reads until the server closes: every answer counts, and
what was sent before is answered. Coalesced, nothing is heard before the end. Then the rows of `t`
are read by another session.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import (
    BackendMessage,
    CopyOutResponse,
    DataRows,
    ErrorResponse,
    Flush,
    ParameterStatus,
    Query,
)
from sql.types.encodings import ENCODINGS
from tests.support.wire import WireClient, parse_line, show

PATHS = sorted((Path(__file__).parent / "testdata" / "wire").glob("*.txt"))
POSTGRES = {"user": "postgres", "database": "postgres"}
SCRIPTS_MIN = 40


def scripts() -> dict[str, list[str]]:
    """All scripts by name: `== name` begins one, `#` a comment."""
    found: dict[str, list[str]] = {}
    for path in PATHS:
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


def whole(data: bytes) -> Iterator[bytes]:
    yield data


def split(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def shown(answers: list[BackendMessage]) -> Iterator[str]:
    """Without details and hints, which may say more than PostgreSQL's."""
    for answer in answers:
        if not isinstance(answer, ParameterStatus):
            yield show(answer).split(" D=")[0].split(" H=")[0]


def played(
    dsn: str, lines: list[str], cut: Callable[[bytes], Iterator[bytes]] = whole, *, hears: bool
) -> list[str]:
    """What a server answers, a line a message, and what there is then."""
    with WireClient(dsn, TimeZone="UTC", **POSTGRES) as other:
        other.send(Query("DELETE FROM t"))
        other.answers(1)
        with WireClient(dsn, TimeZone="UTC", **POSTGRES) as client:
            heard: list[str] = []
            pending = b""
            for line in lines:
                word, _, rest = line.partition(" ")
                if word == "hear" and hears:
                    send(client, cut, pending)
                    pending = b""
                    heard += [f"> {line}", *shown(client.answers(0, count=int(rest)))]
                elif word != "hear":
                    pending += encode_frontend(parse_line(line))
            send(client, cut, pending)
            client.shut()
            heard += ["> shut", *shown(client.answers(1 << 30))]
        other.send(Query("SELECT * FROM t ORDER BY 1, 2"))
        return [*heard, "> rows", *shown(other.answers(1))]


def send(client: WireClient, cut: Callable[[bytes], Iterator[bytes]], data: bytes) -> None:
    for piece in cut(data):
        client.send_bytes(piece)


@pytest.fixture(scope="module")
def servers(real: str, ours: str) -> tuple[str, str]:
    """Both, with the table that the scripts use."""
    for dsn in (real, ours):
        with WireClient(dsn, **POSTGRES) as client:
            client.send(
                Query("DROP TABLE IF EXISTS t; CREATE TABLE t (a int NOT NULL, b text DEFAULT 'd')")
            )
            client.answers(1)
    return real, ours


@pytest.mark.parametrize("name", SCRIPTS)
def test_like_postgresql(name: str, servers: tuple[str, str]) -> None:
    real, ours = servers
    lines = SCRIPTS[name]
    expected = played(real, lines, hears=True)
    assert played(ours, lines, hears=True) == expected
    assert played(ours, lines, split, hears=True) == expected
    assert played(ours, lines, hears=False) == played(real, lines, hears=False)


def test_explain_execute_runs_under_analyze_alone(servers: tuple[str, str]) -> None:
    """The plan is not PostgreSQL's; what it does to the rows is."""
    lines = [
        "query prepare i(int) as insert into t values ($1)",
        "query explain execute i(6)",
        "query explain analyze execute i(7)",
    ]
    expected, found = (played(dsn, lines, hears=True) for dsn in servers)
    assert found[found.index("> rows") :] == expected[expected.index("> rows") :]
    assert sum(line == "RowDescription QUERY PLAN:text" for line in found) == 2


def test_encodings_are_those_of_postgresql(real: str) -> None:
    with psycopg.connect(real, autocommit=True) as connection:
        single = {name: one for name, one in ENCODINGS.items() if not one.is_servers}
        for name, encoding in single.items():
            known, unknown = b"", list[bytes]()
            for byte in (bytes([number]) for number in range(128, 256)):
                try:
                    byte.decode(encoding.codec)
                    known += byte
                except UnicodeDecodeError:
                    unknown.append(byte)
            text = known.decode(encoding.codec)
            query = "select convert_from(%s, %s), convert_to(%s, %s)"
            found = connection.execute(query, (known, name, text, encoding.name)).fetchone()
            assert found == (text, known), name
            for byte in unknown:
                with pytest.raises(psycopg.errors.UntranslatableCharacter):
                    connection.execute("select convert_from(%s, %s)", (byte, name))


def wait_until(dsn: str, query: str) -> None:
    """Ask until the query has a row."""
    with WireClient(dsn, **POSTGRES) as client:
        while True:
            client.send(Query(query))
            answers = client.answers(1)
            assert not any(isinstance(answer, ErrorResponse) for answer in answers)
            if any(isinstance(answer, DataRows) for answer in answers):
                return


def test_answers_of_a_pipeline_wait_for_flush(real: str, ours: str) -> None:
    for dsn in (real, ours):
        with WireClient(dsn, **POSTGRES) as client:
            lines = (
                "parse - SELECT pg_advisory_lock(29)", "bind - -", "execute -", "parse - SELECT 1"
            )  # fmt: skip
            client.send(*map(parse_line, lines))
            wait_until(dsn, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 29")
            assert not client.has_heard()
            client.send(Flush())
            assert len(client.answers(0, count=5)) == 5


def test_rows_out_begin_at_once(ours: str) -> None:
    """PostgreSQL waits until its buffer is full; clients that do not are served too."""
    with WireClient(ours, **POSTGRES) as client:
        lines = ("parse - COPY (SELECT 1) TO STDOUT", "bind - -", "execute -")
        client.send(*map(parse_line, lines))
        assert isinstance(client.answers(0, count=3)[-1], CopyOutResponse)


def test_a_long_statement_of_half_a_connection_is_answered(ours: str) -> None:
    with WireClient(ours, **POSTGRES) as client:
        # Longer than it takes to find out who has left.
        client.send(Query("SELECT pg_sleep(2.5)"))
        client.shut()
        answers = [*shown(client.answers(1 << 30))]
        assert answers[1:] == ["DataRow ", "CommandComplete SELECT 1", "ReadyForQuery I"]


def test_a_statement_ends_with_its_client(ours: str) -> None:
    with WireClient(ours, **POSTGRES) as client:
        client.send(Query("SELECT pg_advisory_lock(30)"))
        client.answers(1)
        client.send(Query("SELECT pg_sleep(600)"))
    held = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 30"
    wait_until(ours, f"SELECT 1 WHERE NOT EXISTS ({held})")


def test_there_are_many_scripts() -> None:
    assert len(SCRIPTS) >= SCRIPTS_MIN
