"""`make security`: what is wrong with a log-in cannot be told by bytes or by time.

The one place where a test looks at time: medians of many log-ins in turns, on a quiet machine.
"""

import base64
import re
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from scramp import ScramClient

from tests.security.doors.conftest import LOCAL, PASSWORD, dsn_of
from tests.support.servers import Meridian, meridian

pytestmark = pytest.mark.slow

ATTEMPTS = 200
APART_MAX = 0.2
_VARYING = re.compile(rb"(?<=r=)[^,]+|(?<=s=)[^,]+")
KINDS = {"wrong": "meridian", "unknown": "nobody", "no password": "nopass", "expired": "late"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Meridian]:
    place = tmp_path_factory.mktemp("alike")
    with meridian(place, LOCAL, {"MERIDIAN_PASSWORD": PASSWORD}) as started:
        with psycopg.connect(dsn_of(started, password=PASSWORD), autocommit=True) as connection:
            connection.execute(
                "create role nopass superuser login; create role late superuser login"
                " password 'wrong' valid until '2020-01-01'"
            )
        yield started


def _attempt(server: Meridian, user: str) -> tuple[bytes, float]:
    """What the server answers to a wrong password, and the seconds that it takes."""
    words = f"user\0{user}\0database\0meridian\0\0".encode()
    begun = time.perf_counter()
    port = urlsplit(server.dsn).port or 0
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        wire.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
        answers = [wire.recv(4096)]
        client = ScramClient(["SCRAM-SHA-256"], "ignored", "wrong")
        first = client.get_client_first().encode()
        wire.sendall(_message(b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
        answers.append(wire.recv(4096))
        client.set_server_first(answers[-1][9:].decode())
        wire.sendall(_message(client.get_client_final().encode()))
        answers.append(wire.recv(4096))
    seconds = time.perf_counter() - begun
    said = _VARYING.sub(b"", b"".join(answers)).replace(user.encode(), b"USER")
    return re.sub(rb"E.{4}", b"E", said, flags=re.S), seconds


def _message(payload: bytes) -> bytes:
    return b"p" + struct.pack("!i", 4 + len(payload)) + payload


def test_what_is_wrong_cannot_be_told(server: Meridian) -> None:
    answers: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(ATTEMPTS):
        for kind, user in KINDS.items():
            answer, taken = _attempt(server, user)
            answers[kind].add(answer)
            seconds[kind].append(taken)
    assert len(set.union(*answers.values())) == 1, answers
    medians = {kind: statistics.median(taken) for kind, taken in seconds.items()}
    assert max(medians.values()) <= (1 + APART_MAX) * min(medians.values()), medians


def test_the_salt_of_a_name_is_always_the_same(server: Meridian, tmp_path: Path) -> None:
    def salt(user: str) -> bytes:
        words = f"user\0{user}\0database\0meridian\0\0".encode()
        with socket.create_connection(("127.0.0.1", urlsplit(server.dsn).port or 0), 20) as wire:
            wire.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
            wire.recv(4096)
            first = b"n,,n=,r=abcdefgh"
            wire.sendall(_message(b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
            found = re.search(rb"s=([^,]+)", wire.recv(4096))
            assert found is not None
            return base64.b64decode(found[1])

    before = [salt(user) for user in KINDS.values()]
    assert len(set(before)) == len(KINDS)
    assert before == [salt(user) for user in KINDS.values()]
    server.stop()
    server.start()
    assert before == [salt(user) for user in KINDS.values()]
