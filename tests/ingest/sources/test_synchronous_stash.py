"""Upstreams whose commits wait for the source: in the cluster of the stash (S2), and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ingest.postgres.publication import check_stash, names_standby
from ingest.reader import ReaderFailure
from tests.ingest.conftest import SETTINGS
from tests.ingest.sources.asking import notices, refused, rows
from tests.ingest.sources.conftest import options
from tests.ingest.upstream_database import UpstreamDatabase, run
from tests.session.change_streams.followers import until
from tests.support.servers import fresh_database, meridian, postgres_server
from tests.support.synchronous import commits_wait_for

DURABLE = [setting for setting in SETTINGS if setting != "fsync=off"]
SOURCE = "create source s from postgres connection c (publication 'p')"


@contextmanager
def synchronous(database: UpstreamDatabase, names: str) -> Iterator[None]:
    """Commits wait for these, but for those of the test itself."""
    database.execute("SET synchronous_commit = local")
    commits_wait_for(database.dsn, names)
    try:
        yield
    finally:
        commits_wait_for(database.dsn, "")


def test_a_source_in_the_cluster_of_the_stash_may_not_be_waited_for(tmp_path: Path) -> None:
    """Equal and synchronous is refused, and noticed later; equal alone is allowed (S2)."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    state = "select state, code, hint from meridian.sources"
    with postgres_server(DURABLE) as server:
        upstream = UpstreamDatabase(server)
        upstream.execute(
            "CREATE TABLE t (id int PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "CREATE PUBLICATION p FOR TABLE t",
        )
        places = ("--stash", fresh_database(server.dsn), "--warehouse", str(warehouse))
        with (
            meridian(tmp_path / "one", ("--spark-master", "none", *places)) as ours,
            psycopg.connect(ours.dsn, autocommit=True) as client,
        ):
            client.execute(f"create connection c to postgres ({options(upstream)})".encode())
            with synchronous(upstream, "s"):
                error = refused(client, SOURCE)
                assert error.sqlstate == "55000"
                assert "synchronous_standby_names" in str(error.diag.message_hint)
            assert rows(client, "select count(*) from meridian.sources") == [(0,)]
            with synchronous(upstream, "another"):
                # Nobody is called so, and we make no commit meanwhile.
                upstream.execute("INSERT INTO t VALUES (2)")
            assert notices(client, SOURCE) == []
            client.execute("create table t from source s (reference 'public.t')")
            assert rows(client, "select id from t order by id") == [(1,), (2,)]
            until(lambda: rows(client, state)[0][0] == "running")
            with synchronous(upstream, "s"):
                upstream.execute("INSERT INTO t VALUES (3)")
                until(lambda: rows(client, state)[0][0] == "broken")
                ((_, code, hint),) = rows(client, state)
                assert code == "55000"
                assert "synchronous_standby_names" in hint
                assert rows(client, "select count(*) from t") == [(2,)]
            client.execute("alter source s resume")
            client.execute("set real_time_recency = on")
            assert rows(client, "select id from t order by id") == [(1,), (2,), (3,)]
            client.execute("drop source s cascade")
        upstream.close()


def test_who_is_waited_for_before_he_is_loaded_is_told(
    connected: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """S1. The stash is in no PostgreSQL, so nothing is compared."""
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    try:
        with synchronous(database, 'FIRST 1 (x, "S")'):
            (told,) = notices(connected, SOURCE)
        assert "name it there only after that" in str(told)
    finally:
        connected.execute("drop source if exists s cascade")


@pytest.mark.parametrize("kept", [True, False])
def test_a_start_looks_at_the_cluster_of_the_stash(
    database: UpstreamDatabase, *, kept: bool
) -> None:
    """In both ways in which a source begins: with a position, and without."""
    database.execute("CREATE TABLE t (a int PRIMARY KEY)", "CREATE PUBLICATION p FOR TABLE t")
    ((system,),) = database.rows("SELECT system_identifier::text FROM pg_control_system()")

    async def scenario() -> None:
        first, watched = database.reader(), database.reader(stash=system)
        tables = list((await first.inspect()).tables)
        progress = await first.prepare(tables)
        await watched.start(progress, tables)
        await watched.close()
        with synchronous(database, "feed"):
            again = watched.start(progress, tables) if kept else watched.prepare(tables)
            with pytest.raises(ReaderFailure) as caught:
                await again
            assert (caught.value.code, caught.value.broken) == ("55000", True)
            # Of another cluster nothing is asked.
            await database.reader(stash=f"{system}1").inspect()
        await first.release()

    run(scenario())


@pytest.mark.parametrize(
    ("names", "waits"),
    [
        ("", False),
        ("s", True),
        ("*", True),
        ("ANY 2 (x, S)", True),
        ('FIRST 1 ("s", y)', True),
        ("s_joins, other", False),
    ],
)
def test_names_of_standbys(names: str, *, waits: bool) -> None:
    assert names_standby(names, "s") is waits
    check_stash("", "1", names, "s")
    check_stash("2", "1", names, "s")
