"""A data directory written by an earlier version opens, answers as before, checks and goes on."""

from pathlib import Path

import psycopg
import pytest

from tests.resilience.versions.archives import OPTIONS, answers, archives, recorded, run, unpacked
from tests.resilience.versions.contents import GOES_ON, REFUSED
from tests.support.servers import Meridian


def test_there_are_versions() -> None:
    assert archives()


def row_versions(dsn: str) -> dict[str, list[tuple[str, str]]]:
    """ctid and xmin of all rows, by table."""
    found: dict[str, list[tuple[str, str]]] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = connection.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema', 'meridian')"
        ).fetchall()
        for (table,) in tables:
            rows = connection.execute(f"select ctid, xmin from {table}".encode()).fetchall()
            assert len({ctid for ctid, _ in rows}) == len(rows), table
            found[table] = sorted(rows)
    return found


@pytest.mark.parametrize("name", archives())
def test_a_version_opens_serves_and_checks(name: str, tmp_path: Path) -> None:
    unpacked(name, tmp_path)
    server = Meridian(tmp_path, OPTIONS)
    assert server.check().returncode == 0, "clean as it was left"
    try:
        dsn = server.start()
        assert answers(dsn) == recorded(name), "the tail is still in the txns shard"
        versions = row_versions(dsn)
        assert any(versions.values())
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement, sqlstate in REFUSED:
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute(statement.encode())
                assert refused.value.sqlstate == sqlstate, statement
        assert server.stop() == 0
        assert server.check().returncode == 0, "after the flush of the tail"
        dsn = server.start()
        assert answers(dsn) == recorded(name), "from files alone"
        assert row_versions(dsn) == versions
        run(dsn, GOES_ON)
        assert server.stop() == 0
    finally:
        server.kill()
    assert server.check().returncode == 0, "after writes by this version"
