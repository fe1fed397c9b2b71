"""pg_dump, pg_dumpall and pg_restore: out of Meridian, into it, and from one into the other."""

from pathlib import Path
from typing import Any

import psycopg

from tests.clients.drivers.moved import Peers, emptied, facts, restore, run, statements
from tests.support.servers import fresh_database


def test_both_servers_hold_the_same(peers: Peers) -> None:
    assert facts(peers.meridian) == peers.known


def test_a_custom_archive_moves_to_postgresql(peers: Peers, tmp_path: Path) -> None:
    archive = str(tmp_path / "archive")
    run("pg_dump", peers.meridian, "-Fc", "-f", archive)
    target = fresh_database(peers.postgresql)
    run("pg_restore", "-e", "-1", "-d", target, archive)
    assert facts(target) == peers.known


def test_a_plain_dump_moves_to_another_meridian_and_is_dumped_alike(
    peers: Peers, tmp_path: Path
) -> None:
    file = tmp_path / "plain"
    run("pg_dump", peers.meridian, "-f", str(file))
    with emptied(peers.empty) as target:
        restore(target, file)
        assert facts(target) == peers.known
        assert statements(run("pg_dump", target)) == statements(file.read_text())


def test_a_directory_is_written_and_read_by_two_connections(peers: Peers, tmp_path: Path) -> None:
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    run("pg_dump", peers.postgresql, "-Fd", "-j", "2", "-f", there)
    with emptied(peers.empty) as target:
        run("pg_restore", "-j", "2", "-d", target, there)
        assert facts(target) == peers.known
        run("pg_dump", target, "-Fd", "-j", "2", "-f", back)
    database = fresh_database(peers.postgresql)
    run("pg_restore", "-j", "2", "-d", database, back)
    assert facts(database) == peers.known


def test_schema_and_data_move_apart(peers: Peers, tmp_path: Path) -> None:
    schema, data = tmp_path / "schema", tmp_path / "data"
    run("pg_dump", peers.meridian, "--schema-only", "-f", str(schema))
    run("pg_dump", peers.meridian, "--data-only", "--inserts", "-f", str(data))
    target = fresh_database(peers.postgresql)
    restore(target, schema, data)
    # pg_dump refreshes materialized views in whole dumps only.
    with psycopg.connect(target) as connection:
        connection.execute("refresh materialized view shop.totals")
        connection.execute("refresh materialized view shop.many_orders")
    assert facts(target) == peers.known


def test_tables_and_schemas_are_chosen_by_pattern(peers: Peers) -> None:
    chosen = [["-t", "shop.s*"], ["-t", "logless", "-T", "shop.*"], ["-n", "public"]]
    for options in chosen:
        ours = statements(run("pg_dump", peers.meridian, *options))
        assert ours == statements(run("pg_dump", peers.postgresql, *options)), options


def test_roles_move_with_their_verifiers(peers: Peers, tmp_path: Path) -> None:
    dumped = run("pg_dumpall", "-d", peers.meridian, "--globals-only")
    file = tmp_path / "globals"
    kept = [line for line in dumped.splitlines() if "CREATE ROLE" not in line]
    # Only the first superuser of a cluster grants without the ADMIN option, whatever its name.
    file.write_text("\n".join(kept).replace(" GRANTED BY meridian", ""))
    verifier = _verifier(peers.meridian)
    assert verifier.startswith("SCRAM-SHA-256$4096:")
    assert f"PASSWORD '{verifier}'" in dumped
    for target in (peers.postgresql, peers.empty):
        restore(target, file)
        assert _verifier(target) == verifier
        assert _members(target) == _members(peers.meridian)


def _verifier(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        query = "select rolpassword from pg_authid where rolname = 'alice'"
        ((found,),) = connection.execute(query).fetchall()
    return str(found)


def _members(dsn: str) -> list[tuple[Any, ...]]:
    query = """
        select roleid::regrole::text, member::regrole::text, admin_option, rolconnlimit,
          rolvaliduntil, shobj_description(r.oid, 'pg_authid')
        from pg_auth_members m join pg_roles r on r.oid = m.member where roleid >= 16384"""
    with psycopg.connect(dsn) as connection:
        return connection.execute(query.encode()).fetchall()
