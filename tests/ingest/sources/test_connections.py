"""Connections: what they are, and CREATE SOURCE, which looks before it answers."""

from __future__ import annotations

import psycopg
import pytest

from tests.ingest.sources.asking import notices, refusal, refused, rows
from tests.ingest.sources.conftest import options
from tests.ingest.upstream_database import UpstreamDatabase
from tests.support.servers import Postgres, free_port

SECRET = "hunter2"
SOURCE = "create source s from postgres connection c (publication 'p')"


def test_a_connection_is_shown_without_its_password(client: psycopg.Connection) -> None:
    client.execute(
        "create connection c to postgres (host 'h', database 'd', user 'u',"
        " password from env 'MERIDIAN_SECRET_X', ssl mode 'require')"
    )
    client.execute("comment on connection c is 'the shop'")
    shown = "select * from meridian.connections"
    assert rows(client, shown) == [
        (
            *("here", "c", "postgres", "h", None, "d", "u", "env: MERIDIAN_SECRET_X"),
            *("require", None, "meridian", "the shop"),
        )
    ]
    client.execute("alter connection c set (password from file 'shop', port 5433)")
    assert rows(client, "select port, password_from, host from meridian.connections") == [
        (5433, "file: shop", "h")
    ]


def test_connections_are_part_of_their_transaction(client: psycopg.Connection) -> None:
    client.execute("begin")
    client.execute("create connection c to postgres (host 'h', database 'd', user 'u')")
    client.execute("alter connection c rename to c2")
    assert rows(client, "select connection_name from meridian.connections") == [("c2",)]
    client.execute("rollback")
    assert rows(client, "select count(*) from meridian.connections") == [(0,)]


def test_names_owners_and_places(client: psycopg.Connection) -> None:
    created = "create connection c to postgres (host 'h', database 'd', user 'u')"
    client.execute(created.encode())
    assert refusal(client, created) == ("42710", 'connection "c" already exists')
    again = created.replace("connection c", "connection if not exists c")
    assert notices(client, again) == ['connection "c" already exists, skipping']
    client.execute("create schema there")
    client.execute("alter connection c set schema there")
    assert refusal(client, "drop connection c")[0] == "42704"
    client.execute("create role bob")
    client.execute("alter connection there.c owner to bob")
    assert rows(client, "select connection_schema, owner from meridian.connections") == [
        ("there", "bob")
    ]
    assert refusal(client, "drop role bob")[0] == "2BP01"
    assert refusal(client, "drop schema there")[0] == "2BP01"
    client.execute("drop schema there cascade")
    client.execute("drop role bob")
    assert notices(client, "drop connection if exists c") == [
        'connection "c" does not exist, skipping'
    ]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("create source s from postgres connection c (publication 'p')", "42704"),
        ("create source s from postgres connection nothing (publication 'p')", "42704"),
        ("create source s from postgres connection c (publication '')", "22023"),
        (f"{SOURCE} with (schema_changes = 'add')", "0A000"),
        (f"{SOURCE} with (schema_changes = 'what')", "22023"),
        (f"{SOURCE} with (on_error = 'what')", "22023"),
        (f"{SOURCE} with (error_limit = '7')", "42601"),
        (f"{SOURCE} with (engine = 'local')", "0A000"),
        (f"{SOURCE} with (colour = 'red')", "22023"),
        ("create connection d to postgres (host 'h', database 'd')", "42601"),
        ("create connection d to postgres (host 'h', host 'd')", "42601"),
        ("create connection d to kafka (brokers 'h:9')", "0A000"),
        ("create connection d to schema registry (url 'h:9')", "0A000"),
        ("alter connection c set (ssl mode 'sometimes')", "22023"),
        ("alter connection c set (port 0)", "22023"),
        ("alter connection c set (password 'hunter2')", "0A000"),
        (
            "alter connection c set (password from env 'X', password from file 'y')",
            "42601",
        ),
    ],
)
def test_refusals(connected: psycopg.Connection, statement: str, sqlstate: str) -> None:
    error = refused(connected, statement)
    assert error.sqlstate == sqlstate
    # The client itself shows the statement; nothing of the server does.
    assert SECRET not in f"{error.diag.message_primary} {error.diag.message_hint}"


def test_create_source_says_what_is_missing_upstream(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    error = refused(connected, SOURCE)
    assert (error.sqlstate, error.diag.message_hint) == (
        "42704",
        "Upstream: CREATE PUBLICATION .. FOR TABLE ..",
    )
    database.execute("CREATE TABLE t (a int)", "CREATE PUBLICATION p FOR TABLE t")
    told = notices(connected, SOURCE)
    assert told == ["upstream table public.t has no replica identity"]
    # Nothing is done upstream before somebody wants a table.
    assert database.slots() == []
    assert rows(connected, "select kind, state from meridian.sources") == [("postgres", "idle")]
    assert refusal(connected, "create table t from source s (reference 'public.t')") == (
        "0A000",
        "upstream table public.t has no replica identity",
    )
    assert refusal(connected, "drop connection c")[0] == "2BP01"
    connected.execute("drop connection c cascade")
    assert rows(connected, "select count(*) from meridian.sources") == [(0,)]


def test_nothing_listens_there(client: psycopg.Connection) -> None:
    client.execute(
        f"create connection c to postgres (host '127.0.0.1', port {free_port()},"
        " database 'd', user 'u')".encode()
    )
    assert refusal(client, SOURCE)[0] == "08001"


def test_hosts_and_secrets_are_on_lists(client: psycopg.Connection) -> None:
    made = "create connection c to postgres (host '%s', database 'd', user 'u'%s)"
    for host, more, setting in (
        ("192.0.2.1", "", "source_hosts"),
        ("127.0.0.1", ", password from env 'HOME'", "secret_names"),
        ("127.0.0.1", ", password from file 'x'", "secret_files_dir"),
        ("127.0.0.1", ", ca from file 'x'", "secret_files_dir"),
    ):
        client.execute((made % (host, more)).encode())
        error = refused(client, SOURCE)
        assert error.sqlstate == "42501"
        assert setting in str(error.diag.message_hint)
        client.execute("drop connection c")


def test_passwords(
    client: psycopg.Connection,
    database: UpstreamDatabase,
    upstream_server: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are read when connecting; a wrong one is told, and never shown."""
    rules = upstream_server.directory / "pg_hba.conf"
    before = rules.read_text()
    database.execute(
        f"CREATE ROLE feeder LOGIN REPLICATION PASSWORD '{SECRET}'",
        "CREATE TABLE t (a int PRIMARY KEY)",
        "CREATE PUBLICATION p FOR TABLE t",
    )
    rules.write_text(f"host all feeder 127.0.0.1/32 scram-sha-256\n{before}")
    database.execute("SELECT pg_reload_conf()")
    try:
        secured = options(database).replace("'postgres'", "'feeder'")
        client.execute(
            f"create connection c to postgres ({secured},"
            " password from env 'MERIDIAN_SECRET_FEEDER')".encode()
        )
        assert refusal(client, SOURCE)[0] == "58P01"
        monkeypatch.setenv("MERIDIAN_SECRET_FEEDER", f"wrong-{SECRET}")
        error = refused(client, SOURCE)
        assert error.sqlstate == "28P01"
        monkeypatch.setenv("MERIDIAN_SECRET_FEEDER", SECRET)
        client.execute(SOURCE.encode())
        shown = [str(error.diag.message_primary)]
        relations = ("connections", "sources")
        shown += [str(rows(client, f"select * from meridian.{name}")) for name in relations]
        shown += [record.getMessage() for record in caplog.records]
        assert [text for text in shown if SECRET in text] == []
    finally:
        rules.write_text(before)
        database.execute("SELECT pg_reload_conf()")
        client.execute("drop source if exists s cascade")
        database.execute("DROP ROLE feeder")
