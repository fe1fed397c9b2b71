"""After every change of a definition, foreign readers see what we do; a restart, too."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.foreign_readers import DeltaRs, ForeignReader, Rows, duckdb_reader
from tests.session.stack import serving

TRIES = 500

CHANGES = (
    "create table t (a int, b text)",
    "insert into t values (1, 'x'), (2, 'y'), (3, null)",
    "alter table t add column c bigint",
    "insert into t values (4, 'z', 40)",
    "alter table t rename column b to name",
    "insert into t values (5, 'v', 50)",
    "alter table t drop column c",
    "alter table t add column c text default 'new'",
    "insert into t (a) values (6)",
    "alter table t alter column a type numeric(12,2)",
    "delete from t where a = 2",
    "alter table t alter column a set not null, alter column c drop default",
    "insert into t (a) values (7)",
    "alter table t add column d int, drop column name, alter column c type varchar(40)",
    "update t set d = 1 where a > 3",
    "alter table t rename column d to name",
    "alter table t add constraint positive check (a > 0), add primary key (a)",
    "insert into t values (8, 'q', 9)",
)


@pytest.fixture(scope="module", params=("delta-rs", "DuckDB"))
def reader(request: pytest.FixtureRequest) -> Iterator[ForeignReader]:
    if request.param == "delta-rs":
        yield DeltaRs()
        return
    with duckdb_reader() as duckdb:
        yield duckdb


def test_they_read_what_we_do_after_every_change(reader: ForeignReader, tmp_path: Path) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(cut_age_us=0)
    pasts: list[tuple[int, Rows]] = []
    with serving(stash=stash, store=store, core=core) as dsn:
        for change in CHANGES:
            with psycopg.connect(dsn, autocommit=True) as connection:
                before = _cut(connection)
                connection.execute(change.encode())
                ours, names = _rows(connection, "select * from t")
                pasts.append((_present(connection), ours))
                _wait_for_cut(connection, before)
            place = exported(store, tmp_path)
            columns = ", ".join(f'cast("{name}" as varchar)' for name in names)
            theirs = reader.query(f"select {columns} from t", {"t": place})
            assert sorted((tuple(row) for row in theirs), key=repr) == ours, change
        _check_pasts(dsn, pasts)
    with serving(stash=stash, store=store, core=core) as dsn:
        _check_pasts(dsn, pasts)


def _present(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    row = connection.execute("select read_ts from meridian.timelines").fetchone()
    assert row is not None
    return int(str(row[0]))


def _cut(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    row = connection.execute("select coalesce(min(cut), 0) from meridian.frontiers").fetchone()
    assert row is not None
    return int(str(row[0]))


def _wait_for_cut(connection: "psycopg.Connection[tuple[object, ...]]", before: int) -> None:
    """The next one: nothing was left to flush before the change. Perhaps the change needs none."""
    for _ in range(TRIES):
        if _cut(connection) > before:
            return


def exported(store: MemoryObjectStore, directory: Path) -> Path:
    """The only table of the store, as files."""
    names = asyncio.run(store.list(""))
    for name in names:
        path = directory / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(store.peek(name))
    return directory / names[0].split("/")[0]


def _check_pasts(dsn: str, pasts: list[tuple[int, Rows]]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for ts, rows in pasts:
            assert _rows(connection, f"select * from t as of {ts}")[0] == rows


def _rows(
    connection: "psycopg.Connection[tuple[object, ...]]", query: str
) -> tuple[Rows, list[str]]:
    cursor = connection.execute(query.encode())
    assert cursor.description is not None
    rows = [tuple(None if v is None else str(v) for v in row) for row in cursor.fetchall()]
    return sorted(rows, key=repr), [column.name for column in cursor.description]
