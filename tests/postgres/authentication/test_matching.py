"""Who is let in: many files of rules, many clients, PostgreSQL's decision and words each time."""

import os
import pwd
import random
import socket
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

import psycopg
import pytest

from coordinator.authentication.hba import read_hba_file
from coordinator.authentication.hba_addresses import ClientAddress
from coordinator.authentication.hba_rules import (
    ConnectionFacts,
    HbaMethod,
    HbaRules,
    rule_refusal,
)
from coordinator.authentication.ident_map import parse_mappings
from tests.support.servers import Postgres, postgres_server

_FILES = 120
_CLIENTS_A_FILE = 12
_SYSTEM_USER = pwd.getpwuid(os.geteuid()).pw_name
_NAMES = ("a", "b", "g", "nobody", "a b")
_GROUPS = {"a": {"a", "g", "h"}, "b": {"b"}, "g": {"g", "h"}, "a b": {"a b", "b"}}
"""What each role is a member of, itself among them."""
_ROLES = (
    "create role a login", "create role b superuser login", "create role g login",
    "create role h", 'create role "a b" login', "grant h to g", "grant g to a",
    'grant b to "a b"', "create database a", "create database b", "create database h",
)  # fmt: skip
_FIRST = "local postgres postgres trust\n"
_DATABASES = ("all", "a", "b", "h", "sameuser", "samerole", "replication", '"all"', "/^[ab]$",
              "/h", "a,b", '"sameuser"', "samegroup")  # fmt: skip
_USERS = ("all", "a", "b", '"a b"', "+g", "+h", "+b", '"+g"', "/^a", "/ ", "a,b", "+nothing",
          '"all"', "+a,b")  # fmt: skip
_ADDRESSES = ("all", "127.0.0.1/32", "127.0.0.2/32", "127.0.0.0/30", "127.0.0.0/8", "0.0.0.0/0",
              "10.0.0.0/8", "::/0", "127.0.0.2 0.0.0.3", "127.9.9.1 255.0.0.255", "samehost",
              "samenet", "nowhere.invalid")  # fmt: skip
_HOSTS = (None, "127.0.0.1", "127.0.0.2", "127.0.0.3")


class _Server:
    """PostgreSQL with a Unix socket, whose rules can be replaced."""

    def __init__(self, server: Postgres, socket: str) -> None:
        self.hba = server.directory / "pg_hba.conf"
        self.ident = server.directory / "pg_ident.conf"
        self._where: dict[str, Any] = {"port": server.port, "connect_timeout": 20}
        self._socket = socket
        self.hba.write_text("local all all trust\n")
        self._loaded = ""

    def attempt(self, user: str, database: str, source: str | None) -> str:
        """The words of a refusal to a client from an address, None by the Unix socket; nothing if
        it is let in.
        """
        with self._dial(source) as connection:
            connection.settimeout(20)
            body = b"user\0" + user.encode() + b"\0database\0" + database.encode() + b"\0\0"
            connection.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
            with connection.makefile("rb") as answers:
                while True:
                    kind, length = struct.unpack("!cI", answers.read(5))
                    payload = answers.read(length - 4)
                    if kind == b"E":
                        (message,) = (part for part in payload.split(b"\0") if part[:1] == b"M")
                        return message[1:].decode()
                    if kind == b"Z":
                        return ""

    def _dial(self, source: str | None) -> socket.socket:
        if source is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{self._socket}/.s.PGSQL.{self._where['port']}")
            return connection
        address = "127.0.0.1", int(self._where["port"])
        return socket.create_connection(address, source_address=(source, 0))

    def load(self) -> None:
        """Make the files count."""
        with self._connect() as one:
            (before,) = one.execute("select pg_conf_load_time(), pg_reload_conf()").fetchall()
        while True:
            with self._connect() as one:
                (after,) = one.execute("select pg_conf_load_time()").fetchall()
            if after[0] > before[0]:
                return

    def _connect(self) -> "psycopg.Connection[Any]":
        where = {**self._where, "user": "postgres", "dbname": "postgres"}
        return psycopg.connect(**where, host=self._socket, autocommit=True)


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    with tempfile.TemporaryDirectory(prefix="socket-") as folder:
        Path(folder).chmod(0o777)
        settings = (f"unix_socket_directories={folder}", "listen_addresses=0.0.0.0")
        with postgres_server(settings) as started:
            with psycopg.connect(started.dsn, autocommit=True) as one:
                for statement in _ROLES:
                    one.execute(statement.encode())
            yield _Server(started, folder)


def _rules(rng: random.Random) -> str:
    lines = []
    for _ in range(rng.randint(1, 8)):
        # Half of the fields are `all`, or hardly a rule would match.
        database, user = rng.choice(("all", rng.choice(_DATABASES))), rng.choice(_USERS)
        method = rng.choice(("trust", "reject"))
        if rng.random() < 0.25:
            lines.append(f"local {database} {user} {method}")
        else:
            kind = rng.choice(("host", "hostnossl", "hostnogssenc", "hostgssenc", "hostssl"))
            address = rng.choice(("all", rng.choice(_ADDRESSES)))
            lines.append(f"{kind} {database} {user} {address} {method}")
    return _FIRST + "\n".join(lines) + "\n"


class _NoNames:
    def name_of(self, address: object) -> str | None:
        return "localhost"

    def addresses_of(self, name: str) -> Sequence[IPv4Address]:
        return [IPv4Address("127.0.0.1")]


def _decision(rules: HbaRules, user: str, database: str, source: str | None) -> str:
    own = [IPv4Interface("127.0.0.1/8")]
    client = source and ClientAddress(IPv4Address(source), _NoNames(), own)
    groups = _GROUPS.get(user, set())
    facts = ConnectionFacts(user, database, client or None, is_member=lambda role: role in groups)
    rule = rules.match(facts)
    if rule is not None and rule.method is HbaMethod.TRUST:
        return "" if user in _GROUPS else f'role "{user}" does not exist'
    return rule_refusal(rule, facts).message


def test_the_first_rule_that_matches_decides(server: _Server) -> None:
    rng = random.Random(1)
    outcomes: list[str] = []
    for _ in range(_FILES):
        server.hba.write_text(_rules(rng))
        server.load()
        rules = read_hba_file(server.hba, has_tls=False).rules()
        for _ in range(_CLIENTS_A_FILE):
            user, database = rng.choice(_NAMES), rng.choice(("a", "b", "h"))
            host = rng.choice(_HOSTS)
            expected = server.attempt(user, database, host)
            found = _decision(rules, user, database, host)
            assert found == expected, (server.hba.read_text(), user, database, host)
            outcomes.append(expected.partition(" for ")[0])
    kinds = {"", "pg_hba.conf rejects connection", "no pg_hba.conf entry"}
    assert all(outcomes.count(kind) > 150 for kind in kinds), Counter(outcomes)


_MAPS = [
    f"m {_SYSTEM_USER} a",
    f"other {_SYSTEM_USER} a",
    f"m {_SYSTEM_USER} all",
    f'm {_SYSTEM_USER} "all"',
    f"m {_SYSTEM_USER} +g",
    f'm {_SYSTEM_USER} "+g"',
    f"m {_SYSTEM_USER} /^a",
    f"m {_SYSTEM_USER}x all",
    "m /^(.).*$ \\1",
    "m /^(.).*$ \\1x",
    "m /nobody all",
    'm /^(.*)$ "\\1"',
    "m /^.*$ \\1",
    f"m /^.*$ \\1\nm {_SYSTEM_USER} all",
    "m /x*()y* a\\1",
    "m /x*(q)?.* a\\1",
    "m /x*(q)? +\\1",
    "m /. /^(a|\\\\1)",
    f'm "{_SYSTEM_USER}" a\nm {_SYSTEM_USER} b',
    "m /^ all",
    "",
]


@pytest.mark.parametrize("text", _MAPS)
def test_maps_let_in_whom_postgresql_lets_in(server: _Server, text: str) -> None:
    server.hba.write_text(_FIRST + "local all all peer map=m\n")
    server.ident.write_text(text + "\n")
    server.load()
    mappings = parse_mappings(text, "ident").mappings()
    for user in ("a", "b", "g", "a b"):
        is_member = _GROUPS[user].__contains__
        expected = server.attempt(user, "a", None)
        assert expected in ("", f'Peer authentication failed for user "{user}"')
        allowed = mappings.allows("m", system_user=_SYSTEM_USER, role=user, is_member=is_member)
        assert allowed == (expected == ""), (text, user)
