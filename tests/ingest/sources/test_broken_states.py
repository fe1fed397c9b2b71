"""Each way to heal a source that is `broken` (the table of `docs/streams.md`), from break to end.

Others are healed where they are made: SKIP RECORD, settings and DROP COLUMN in `test_healing`, a
table that left the publication in `test_streaming`, the cluster of the stash in
`test_synchronous_stash`, upstreams that were promoted in `tests/resilience/upstream/test_promoted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import pytest

from tests.ingest.sources.asking import rows
from tests.ingest.upstream_database import UpstreamDatabase
from tests.session.change_streams.followers import until

STATE = "select state from meridian.sources"


@dataclass(frozen=True, slots=True)
class Broken:
    """`there` breaks the source, for a reason with these words. Then upstream is mended, and the
    source is told here; at the end its rows are upstream's again, or what DETACH has left.
    """

    name: str
    there: Sequence[str]
    reason: str
    mended: Sequence[str] = ()
    here: Sequence[str] = ()
    columns: str = "id, a, b"
    follows: bool = True


DROPPED = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
ENDED = "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots"
WIDER = ("ALTER TABLE t ALTER COLUMN a TYPE bigint", "INSERT INTO t VALUES (3, 3, 'c')")
ANEW = (
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t ADD COLUMN b text DEFAULT 'new'",
    "INSERT INTO t VALUES (3, 3, 'c')",
)
KEYLESS = (
    "ALTER TABLE t REPLICA IDENTITY FULL",
    "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "INSERT INTO t VALUES (2, 5, 'again')",
)
MADE_ANEW = ("drop table t", "create table t from source s (reference 'public.t')")

STATES = [
    Broken(
        "the publication was dropped",
        ("DROP PUBLICATION p", "INSERT INTO t VALUES (3, 3, 'c')"),
        "was dropped upstream",
        ("CREATE PUBLICATION p FOR TABLE t, other",),
        ("alter source s resnapshot",),
    ),
    Broken(
        "the slot is gone",
        (ENDED, DROPPED, "INSERT INTO t VALUES (3, 3, 'c')"),
        "is gone upstream",
        here=("alter source s resnapshot",),
    ),
    Broken(
        "a type does not fit, and is mended upstream",
        (*WIDER, "ALTER TABLE t ALTER COLUMN a TYPE int"),
        "bigint",
        here=("alter source s resnapshot",),
    ),
    Broken(
        "a type does not fit: the column is dropped",
        WIDER,
        "bigint",
        here=("alter table t drop column a",),
        columns="id, b",
    ),
    Broken(
        "a type does not fit: the table is detached",
        WIDER,
        "bigint",
        here=("alter table t detach source",),
        follows=False,
    ),
    Broken("a column was made anew", ANEW, "made anew", here=("alter source s resnapshot",)),
    Broken(
        "a column was made anew: it is dropped",
        ANEW,
        "made anew",
        here=("alter table t drop column b",),
        columns="id, a",
    ),
    Broken("a key was dropped: the table is made anew", KEYLESS, "the key of", here=MADE_ANEW),
    Broken(
        "a key was dropped: the table is detached",
        KEYLESS,
        "the key of",
        here=("alter table t detach source",),
        follows=False,
    ),
]


@pytest.fixture
def fed(connected: psycopg.Connection, database: UpstreamDatabase) -> psycopg.Connection:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text)",
        "CREATE TABLE other (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')",
        "CREATE PUBLICATION p FOR TABLE t, other",
    )
    connected.execute("create source s from postgres connection c (publication 'p')")
    for name in ("t", "other"):
        made = f"create table {name} from source s (reference 'public.{name}')"
        connected.execute(made.encode())
    assert rows(connected, "select * from t order by id") == [(1, 1, "x"), (2, 2, "y")]
    return connected


@pytest.mark.parametrize("state", STATES, ids=[state.name for state in STATES])
def test_it_stands_until_a_person_has_healed_it(
    fed: psycopg.Connection, database: UpstreamDatabase, state: Broken
) -> None:
    before = rows(fed, "select * from t order by id")
    database.execute(*state.there)
    until(lambda: rows(fed, STATE) == [("broken",)])
    ((reason, hint),) = rows(fed, "select reason, hint from meridian.sources")
    assert state.reason in reason
    assert hint
    # What is here stays readable, and RESUME alone decides nothing.
    assert rows(fed, "select * from t order by id") == before
    fed.execute("alter source s resume")
    until(lambda: rows(fed, STATE) == [("broken",)])
    assert rows(fed, "select * from t order by id") == before
    database.execute(*state.mended)
    for statement in state.here:
        fed.execute(statement.encode())
    until(lambda: rows(fed, STATE) == [("running",)])
    database.execute("UPDATE t SET a = a + 10 WHERE id = 1", "INSERT INTO other VALUES (7)")
    until(lambda: rows(fed, "select id from other") == [(7,)])
    query = f"SELECT {state.columns} FROM t ORDER BY 1, 2"
    assert rows(fed, query) == (database.rows(query) if state.follows else before)


def test_too_many_records_that_do_not_fit_go_on_with_resume(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """It begins another hour; without it more of them stay out."""
    database.execute("ALTER TABLE other ADD COLUMN at date")
    fed.execute("drop table other")
    fed.execute("create table other from source s (reference 'public.other')")
    fed.execute("alter source s set (error_limit = 1)")
    # It is loaded before the first comes: errors of a copy are not those of an hour.
    assert rows(fed, "table other") == []
    database.execute("INSERT INTO other VALUES (1, 'infinity')")
    until(lambda: rows(fed, "select errors from meridian.sources") == [(1,)])
    database.execute("INSERT INTO other VALUES (2, 'infinity'), (3, '2020-01-01')")
    until(lambda: rows(fed, STATE) == [("broken",)])
    fed.execute("alter source s resume")
    until(lambda: rows(fed, "select id from other") == [(3,)])
    assert rows(fed, "select count(*) from s_errors") == [(2,)]


def test_a_connection_that_is_mended_goes_on(
    fed: psycopg.Connection, database: UpstreamDatabase
) -> None:
    """Its host is not allowed, then its database is another one; nothing is taken from there."""
    before = rows(fed, "select * from t order by id")
    for wrong, code in (("host '192.0.2.1'", "42501"), ("database 'postgres'", "55000")):
        fed.execute(f"alter connection c set ({wrong})".encode())
        until(lambda: rows(fed, STATE) == [("broken",)])
        assert rows(fed, "select code from meridian.sources") == [(code,)]
        assert rows(fed, "select * from t order by id") == before
        database.execute("UPDATE t SET a = a + 1 WHERE id = 1")
        right = f"alter connection c set (host '127.0.0.1', database '{database.name}')"
        fed.execute(right.encode())
        fed.execute("alter source s resume")
        before = database.rows("SELECT * FROM t ORDER BY id")
        until(lambda: rows(fed, "select * from t order by id") == before)  # noqa: B023
