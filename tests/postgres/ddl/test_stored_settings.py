"""What sessions start with after ALTER ROLE and ALTER DATABASE .. SET, as recorded from PostgreSQL.

Run as a program, this module asks PostgreSQL and records its answers.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg

from coordinator.core.catalog import apply_changes, compact_history, decode_changes
from coordinator.variables.variables import Variables
from sql.catalog.catalog import Catalog
from sql.catalog.stored_settings import SettingScope, settings_by_source
from storage.memory import MemoryObjectStore, MemoryStash
from storage.stash import Put
from storage.types import Timestamp
from tests.support.servers import postgres
from tests.support.stack import serving

RECORDED = Path(__file__).parent / "testdata" / "sessions" / "stored_settings.txt"

_KEPT = (
    "create role alice login",
    "create role bob login",
    "create role carol login superuser",
    "alter role all set work_mem = '1MB'",
    "alter role all set lock_timeout = 1",
    "alter database postgres set work_mem = '2MB'",
    "alter database postgres set statement_timeout = '1h'",
    "alter database template1 set statement_timeout = '2h'",
    "alter role alice set work_mem = '3MB'",
    'alter role alice set search_path = x, "$user"',
    "alter role alice set my.own = 'mine'",
    "alter role alice set application_name = 'kept'",
    "alter role alice set datestyle = 'SQL, DMY'",
    "alter role alice set timezone = 'Europe/Berlin'",
    "alter role alice in database postgres set work_mem = '4MB'",
    "alter role all in database postgres set idle_session_timeout = '3h'",
    "grant bob to alice",
    "alter role alice set role = 'bob'",
)
_NAMES = (
    "work_mem", "lock_timeout", "statement_timeout", "idle_session_timeout", "search_path",
    "application_name", "DateStyle", "TimeZone",
)  # fmt: skip
_SHOWN = (
    "select name, setting, source, reset_val from pg_settings where name = any (array["
    + ", ".join(f"'{name}'" for name in _NAMES)
    + "]) order by name"
)
_SESSIONS = (
    ("alice", "postgres", ""),
    ("alice", "template1", ""),
    ("alice", "postgres", "-c work_mem=9MB -c search_path=y"),
    ("bob", "postgres", ""),
    ("carol", "template1", ""),
)
_LATER = (
    "set work_mem = '7MB'", "show work_mem", "reset work_mem", "show work_mem",
    "set search_path = z", "set timezone = 'UTC'", "reset all", "show search_path",
    "show timezone", "set work_mem to default", "show work_mem",
    "set my.own = 'other'", "reset my.own", "select current_setting('my.own', true)",
    "set application_name = 'q'", "discard all", "show application_name",
    "begin", "set local work_mem = '8MB'", "commit", "show work_mem",
    "select current_user, session_user", "reset role", "select current_user, session_user",
)  # fmt: skip


def _answers(dsn: str) -> Iterator[str]:
    place = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in _KEPT:
            connection.execute(statement.encode())
    for user, database, options in _SESSIONS:
        place = psycopg.conninfo.make_conninfo(dsn, user=user, dbname=database, options=options)
        yield f"# {user} {database} {options}".strip()
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in (_SHOWN, *_LATER, _SHOWN):
                yield f"> {statement}" if statement != _SHOWN else "> pg_settings"
                try:
                    found = connection.execute(statement.encode())
                    rows = found.fetchall() if found.description else []
                    yield from map(str, rows)
                except psycopg.Error as error:
                    yield f"{error.sqlstate} {error.diag.message_primary}"


def test_sessions_start_with_what_is_kept() -> None:
    with serving() as dsn:
        assert "\n".join(_answers(dsn)) + "\n" == RECORDED.read_text()


def test_what_is_kept_survives_also_in_a_compacted_history() -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    query = "select setdatabase, setrole <> 0, setconfig from pg_db_role_setting order by 1, 2, 3"
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for statement in _KEPT:
            one.execute(statement.encode())
        one.execute("create role dave")
        one.execute("alter role dave set work_mem = '1MB'")
        one.execute("drop role dave")
        before = one.execute(query).fetchall()
        assert len(before) == 5
    stash, store = stash.crash(), store.crash()
    short, _ = compact_history(asyncio.run(stash.scan("catalog")), Timestamp(1 << 62))
    kept = {write.key: write.value for write in short if isinstance(write, Put)}
    ((_, changes),) = decode_changes(kept)
    made = apply_changes(Catalog(), changes, version=1, replayed=True)
    assert len(made.settings) == 5
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn) as one:
        assert one.execute(query).fetchall() == before


def test_what_is_no_longer_right_is_left_out() -> None:
    kept = {
        SettingScope(0, 0): ("work_mem=1MB", "nope=1"),
        SettingScope(7, 0): ("work_mem=much", "lock_timeout=5"),
    }
    variables = Variables.started(
        user="u", parameters={}, defaults={}, stored=settings_by_source(kept, 7, 10)
    )
    assert [problem.sqlstate for problem in variables.problems] == ["42704", "22023"]
    assert variables.get("work_mem") == "1MB"
    assert variables.get("lock_timeout") == "5ms"


if __name__ == "__main__":
    with postgres() as dsn:
        said = "\n".join(_answers(dsn)) + "\n"
    # initdb has written a configuration of its own.
    said = said.replace("'configuration file'", "'default'").replace("Etc/UTC", "UTC")
    RECORDED.write_text(said)
