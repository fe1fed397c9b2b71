"""The page over HTTP: who comes in, what a role sees and ends, what other sites cannot do."""

import contextlib
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import trustme

from coordinator.monitoring import page_queries
from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.page import BODY_BYTES_MAX
from tests.security.doors.conftest import write_pair
from tests.session.monitoring.http_client import PATIENCE_S
from tests.session.monitoring.page_client import PageClient
from tests.support.servers import Meridian, free_port, meridian

PASSWORD = "opens sesame"
NO_JVM = ("--spark-master", "none")
RULES = """\
host all ada 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Meridian, int]]:
    place, port = tmp_path_factory.mktemp("page"), free_port()
    (place / "hba").write_text(RULES)
    settings = {
        "http_listen": f"127.0.0.1:{port}",
        "http_hosts": "page.example",
        "hba_file": str(place / "hba"),
        "audit": "login",
        "auth_delay_ms": "1",
    }
    options = [*NO_JVM, *(part for item in settings.items() for part in ("--set", "=".join(item)))]
    with meridian(place, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        with _connect(server) as connection:
            connection.execute("create extension pg_stat_statements")
            connection.execute("create role ada login")
            connection.execute("create table drawn (id int primary key)")
            connection.execute("insert into drawn values (1), (2)")
        yield server, port


def _connect(server: Meridian, **more: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(server.dsn, password=PASSWORD, autocommit=True, **more)


def _client(port: int) -> PageClient:
    client = PageClient(port)
    assert client.log_in("meridian", PASSWORD).status == 200
    return client


# --- who comes in ---------------------------------------------------------------------------------


def test_files_are_for_everybody_and_load_nothing_from_elsewhere(
    served: tuple[Meridian, int],
) -> None:
    client = PageClient(served[1])
    kinds = {"/": "text/html", "/page.css": "text/css", "/page.js": "text/javascript"}
    for path, kind in kinds.items():
        answer = client.get(path, **{"Sec-Fetch-Site": "cross-site"})
        assert answer.status == 200
        assert answer.headers["Content-Type"] == f"{kind}; charset=utf-8"
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers
        named = set(re.findall(r"https?://[^\s\"'`]+", answer.text))
        assert named <= {"http://www.w3.org/2000/svg"}  # a name, which nobody fetches
    page = client.get("/").text
    assert "style=" not in page
    assert "onclick=" not in page


def test_a_password_opens_and_nothing_else(served: tuple[Meridian, int]) -> None:
    server, port = served
    client = PageClient(port)
    assert client.get("/page/state").told == {"open": False, "user": None}
    for user, password in (("meridian", "wrong"), ("meridian", ""), ("nobody", PASSWORD)):
        answer = client.log_in(user, password)
        assert answer.status == 401
        assert answer.told["error"] == f'password authentication failed for user "{user}"'
        assert not client.cookies
    assert client.get("/page/data").status == 401
    answer = client.log_in("meridian", PASSWORD)
    assert (answer.status, answer.told["user"], answer.told["acts"]) == (200, "meridian", True)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"meridian-{port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert client.get("/page/state").told == answer.told
    assert client.get("/page/data").status == 200
    logins = [json.loads(line) for line in server.log.splitlines() if line.startswith('{"event"')]
    refused = [(one["user"], one["sqlstate"]) for one in logins if one["sqlstate"] != "00000"]
    assert refused == [("meridian", "28P01"), ("meridian", "28P01"), ("nobody", "28P01")]
    assert PASSWORD not in server.log


def test_cookies_that_are_wrong_open_nothing(served: tuple[Meridian, int]) -> None:
    client = _client(served[1])
    for cookie in ("", "x", f"meridian-{served[1]}=", f"meridian-{served[1]}=\u00e9" + "a" * 1000):
        answer = client.get("/page/data", Cookie=cookie)
        assert answer.status == 401


def test_who_logs_out_is_out(served: tuple[Meridian, int]) -> None:
    client = _client(served[1])
    (own,) = [row for row in client.section("sessions") if row["own"] == "t"]
    assert client.post("/page/logout", {}, {"X-Meridian-Token": "wrong"}).status == 403
    assert client.post("/page/logout", {}).status == 200
    assert client.get("/page/data", Cookie=None).status == 401
    with _connect(served[0]) as connection:
        give_up = time.monotonic() + PATIENCE_S
        while connection.execute(
            "select from pg_stat_activity where pid = %s", [own["pid"]]
        ).fetchall():
            assert time.monotonic() < give_up, "the session is still there"


def test_a_session_that_was_ended_is_a_cookie_less(served: tuple[Meridian, int]) -> None:
    client = _client(served[1])
    (own,) = [row for row in client.section("sessions") if row["own"] == "t"]
    assert own["application"] == "meridian page"
    with _connect(served[0]) as connection:
        ended = connection.execute("select pg_terminate_backend(%s, 60000)", [own["pid"]])
        assert ended.fetchall() == [(True,)]
    assert client.get("/page/data").status == 401
    assert client.get("/page/state").told["user"] is None


def test_limits_of_connections_hold(tmp_path: Path) -> None:
    port = free_port()
    options = [*NO_JVM, "--set", f"http_listen=127.0.0.1:{port}", "--set", "connections_max=2"]
    options += ["--set", "superuser_reserved_connections=0", "--set", "reserved_connections=0"]
    with meridian(tmp_path, options) as server:
        one, two, three = (PageClient(port) for _ in range(3))
        assert (one.log_in("meridian").status, two.log_in("meridian").status) == (200, 200)
        answer = three.log_in("meridian")
        assert (answer.status, answer.told["error"]) == (503, "sorry, too many clients already")
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            psycopg.connect(server.dsn)


# --- what a role sees -----------------------------------------------------------------------------


def test_all_sections_are_drawn(served: tuple[Meridian, int]) -> None:
    server, port = served
    client = _client(port)
    with _connect(server, application_name="holds") as holder:
        holder.execute("begin")
        holder.execute("update drawn set id = 3 where id = 1")
        told = client.get("/page/data").told
        assert list(told) == list(page_queries.PAGE_QUERIES)
        assert [one["error"] for one in told.values()] == [None] * len(told)
        sessions = {row["application"]: row for row in client.section("sessions")}
        assert sessions["holds"]["state"] == "idle in transaction"
        assert sessions["holds"]["query"] == "update drawn set id = 3 where id = 1"
        locks = client.section("locks")
        assert {row["pid"] for row in locks} == {sessions["holds"]["pid"]}
        assert {row["relation"] for row in locks} >= {"drawn"}
        (table,) = [row for row in client.section("tables") if row["name"] == "drawn"]
        assert (table["schema"], table["timeline"], table["inserted"]) == ("public", "system", "2")
        (timeline,) = client.section("timelines")
        assert timeline["name"] == "system"
        assert any("insert into drawn" in str(r["query"]) for r in client.section("statements"))
        assert not any("/* page */" in str(row["query"]) for row in client.section("statements"))
        assert {row["engine"] for row in client.section("engines")} >= {"in_process"}
        holder.execute("rollback")


def test_a_role_sees_what_it_may(served: tuple[Meridian, int]) -> None:
    """Nothing proves that it is ada, so it only looks; SQL says what at."""
    server, port = served
    client = PageClient(port)
    answer = client.log_in("ada", "whatever")
    assert (answer.status, answer.told["acts"]) == (200, False)
    with _connect(server, application_name="secretive") as other:
        other.execute("select 'a secret'")
        (seen,) = [row for row in client.section("sessions") if row["application"] == "secretive"]
        assert seen["query"] == "<insufficient privilege>"
        assert seen["state"] is None
        refused = client.post("/page/terminate", {"pid": other.info.backend_pid})
        assert refused.status == 403
        assert "only shows" in refused.told["error"]
        other.execute("select 1")


# --- actions --------------------------------------------------------------------------------------


class _Running:
    """A statement that runs in a thread until it is ended."""

    def __init__(self, server: Meridian, statement: str) -> None:
        self.connection = _connect(server)
        self.pid = self.connection.info.backend_pid
        self.failure: psycopg.Error | None = None
        self._statement = statement
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.connection.execute(self._statement.encode())
        except psycopg.Error as error:
            self.failure = error

    def ended_by(self) -> str | None:
        self._thread.join(PATIENCE_S)
        assert self.failure is not None
        return self.failure.sqlstate


def _wait_until_active(client: PageClient, pid: int) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while ("active", str(pid)) not in {
        (row["state"], row["pid"]) for row in client.section("sessions")
    }:
        assert time.monotonic() < give_up, "it does not run"


def test_cancel_and_terminate(served: tuple[Meridian, int]) -> None:
    server, port = served
    client = _client(port)
    for verb, sqlstate in (("cancel", "57014"), ("terminate", "57P01")):
        running = _Running(server, "select pg_sleep(1000)")
        _wait_until_active(client, running.pid)
        answer = client.post(f"/page/{verb}", {"pid": running.pid})
        assert (answer.status, answer.told) == (200, {"done": True})
        assert running.ended_by() == sqlstate
        assert running.connection.closed == (verb == "terminate")
        running.connection.close()


def test_idle_and_waiting_sessions_are_ended(served: tuple[Meridian, int]) -> None:
    server, port = served
    client = _client(port)
    with _connect(server) as holder:
        holder.execute("begin")
        holder.execute("update drawn set id = 9 where id = 2")
        waiting = _Running(server, "update drawn set id = 8 where id = 2")
        _wait_until_active(client, waiting.pid)
        assert client.post("/page/cancel", {"pid": waiting.pid}).told == {"done": True}
        assert waiting.ended_by() == "57014"
        waiting.connection.close()
        assert client.post("/page/terminate", {"pid": holder.info.backend_pid}).status == 200
        with pytest.raises(psycopg.errors.AdminShutdown):
            holder.execute("commit")
    with _connect(server) as connection:
        assert connection.execute("select from drawn where id = 2").rowcount == 1


def test_pids_are_numbers(served: tuple[Meridian, int]) -> None:
    client = _client(served[1])
    for pid in (None, "1", 1.5, True, 0, -1, 1 << 31, [1], "1); select pg_reload_conf(("):
        assert client.post("/page/cancel", {"pid": pid}).status == 400, pid
    assert client.post("/page/cancel", {"pid": (1 << 31) - 1}).told == {"done": False}


# --- other sites, and strangers -------------------------------------------------------------------


def test_another_site_reads_and_does_nothing(served: tuple[Meridian, int]) -> None:
    server, port = served
    client = _client(port)
    evil = "http://evil.example"
    with _connect(server) as victim:
        act = {"pid": victim.info.backend_pid}
        for headers, status in (
            ({"Host": "evil.example", "Origin": evil}, 421),
            ({"Host": f"evil.example:{port}", "Origin": f"{evil}:{port}"}, 421),
            ({"Origin": evil}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": None}, 403),
            ({"Origin": f"http://localhost:{port + 1}"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"X-Meridian-Token": None}, 403),
            ({"X-Meridian-Token": "\u00e9"}, 403),
            ({"Cookie": None}, 401),
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ):
            answer = client.post("/page/terminate", act, headers)
            assert answer.status == status, headers
            assert not [name for name in answer.headers if name.lower().startswith("access-")]
            if {"X-Meridian-Token", "Cookie"} & set(headers):
                continue  # a log-in has neither yet
            login = {"user": "meridian", "password": PASSWORD}
            tried = client.post("/page/login", login, headers)
            assert tried.status == status
            assert "Set-Cookie" not in tried.headers
        for name, value in (("Host", "evil.example"), ("Sec-Fetch-Site", "cross-site")):
            for path in ("/page/state", "/page/data"):
                assert client.get(path, **{name: value}).status in (403, 421)
        victim.execute("select 1")
        for path in ("/page/terminate", "/page/login", "/page/logout"):
            assert client.get(path).status == 405
            assert client.request("OPTIONS", path).status == 405
    for host in ("page.example", f"127.0.0.1:{port}", "localhost", "[::1]"):
        own = {"Host": host, "Origin": f"http://{host}"}
        told = client.post("/page/login", {"user": "meridian", "password": PASSWORD}, own)
        assert told.status == 200, host


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff\xfe", 400),
        (b"[" * BODY_BYTES_MAX, 400),
        (b'{"user": 7, "password": "x"}', 400),
        (b'{"user": "a\\u0000b", "password": "x"}', 400),
        (b'{"user": "", "password": "x"}', 400),
        (b'{"user": "\\ud800", "password": "x"}', 400),
        (b'{"user": "meridian", "password": "' + b"x" * BODY_BYTES_MAX + b'"}', 413),
        (b"x" * 1_000_000, 413),
    ],
)
def test_bodies_that_are_nonsense(served: tuple[Meridian, int], body: bytes, status: int) -> None:
    client = PageClient(served[1])
    assert client.request("POST", "/page/login", body).status == status
    assert "Traceback" not in served[0].log


def test_names_and_passwords_may_be_any_text(served: tuple[Meridian, int]) -> None:
    client = PageClient(served[1])
    for text in ("\u00e9\u4e2d", "'; drop table drawn --", "a" * 500):
        assert client.log_in(text, text).status == 401
    assert "Traceback" not in served[0].log


def test_the_built_in_trust_only_shows(tmp_path: Path) -> None:
    port = free_port()
    with meridian(tmp_path, [*NO_JVM, "--set", f"http_listen=127.0.0.1:{port}"]) as server:
        client = PageClient(port)
        assert client.get("/page/state").told == {"open": True, "user": None}
        answer = client.log_in("meridian")
        assert (answer.status, answer.told["acts"]) == (200, False)
        with psycopg.connect(server.dsn, autocommit=True) as victim:
            pids = [row["pid"] for row in client.section("sessions")]
            assert str(victim.info.backend_pid) in pids
            for verb in ("cancel", "terminate"):
                refused = client.post(f"/page/{verb}", {"pid": victim.info.backend_pid})
                assert (refused.status, "only shows" in refused.told["error"]) == (403, True)
            victim.execute("select 1")


def test_beyond_loopback_the_page_needs_tls() -> None:
    rules = HttpRules(("db.example",), None)

    def refused(address: str | None, *, is_encrypted: bool) -> int | None:
        told = rules.page_refusal(
            host="db.example", local_address=address, is_encrypted=is_encrypted,
            origin=None, site=None, acts=False,
        )  # fmt: skip
        assert told is None or "ssl_cert_file" in told[1]
        return None if told is None else told[0]

    for address in ("10.0.0.1", "::", "fe80::1%eth0", None):
        assert refused(address, is_encrypted=False) == 403
        assert refused(address, is_encrypted=True) is None
    for address in ("127.0.0.1", "127.9.9.9", "::1"):
        assert refused(address, is_encrypted=False) is None


def test_a_page_in_plaintext_does_not_act_over_tls() -> None:
    """Somebody between may have made it. A proxy that ends TLS speaks plaintext to us."""
    rules = HttpRules(("db.example",), None)

    def refused(scheme: str, *, is_encrypted: bool) -> bool:
        told = rules.page_refusal(
            host="db.example", local_address="127.0.0.1", is_encrypted=is_encrypted,
            origin=f"{scheme}://db.example", site=None, acts=True,
        )  # fmt: skip
        assert told is None or told[0] == 403
        return told is not None

    assert refused("http", is_encrypted=True)
    assert not refused("https", is_encrypted=True)
    assert not refused("http", is_encrypted=False)
    assert not refused("https", is_encrypted=False)


def test_tls_on_the_same_port(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = write_pair(authority.issue_cert("localhost"), tmp_path, "server")
    port = free_port()
    options = [*NO_JVM, "--set", f"http_listen=127.0.0.1:{port}"]
    options += ["--set", f"ssl_cert_file={certificate}", "--set", f"ssl_key_file={key}"]
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with meridian(tmp_path, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        client = PageClient(port, trusting)
        assert client.get("/healthz").text == "ready\n"
        answer = client.log_in("meridian", PASSWORD)
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith(f"__Host-meridian-{port}=")
        assert {"Secure", "HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        (own,) = [row for row in client.section("sessions") if row["own"] == "t"]
        with _connect(server) as connection:
            query = "select ssl, version from pg_stat_ssl where pid = %s"
            assert connection.execute(query, [own["pid"]]).fetchall() == [(True, "TLSv1.3")]
        plain = PageClient(port)
        assert plain.get("/healthz").text == "ready\n"
        plain.cookies = client.cookies
        assert plain.get("/page/data").status == 401
        for said in (b"\x16\x03\x01\x02\x00" + bytes(600), b"\x16", b"\x16" * 100_000):
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as broken:
                broken.sendall(said)
                broken.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    while received := broken.recv(4096):
                        assert b"HTTP" not in received
        untrusting = PageClient(port, ssl.create_default_context())
        with pytest.raises(ssl.SSLCertVerificationError):
            untrusting.get("/healthz")
        assert client.get("/page/data").status == 200
        assert "Traceback" not in server.log
