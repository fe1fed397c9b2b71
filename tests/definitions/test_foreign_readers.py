"""After every change of a definition, foreign readers see what we do; a restart, too.

A value that readers write in words of their own (an array, an interval) is asked for in parts.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.foreign_readers import (
    DeltaRs,
    ForeignReader,
    Rows,
    delta_spark_reader,
    duckdb_reader,
)
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

TYPES = (
    "create type mood as enum ('sad', 'ok')",
    "create domain size as int check (value > 0)",
    "create table t (id int, m mood, d size, i interval, h time, u uuid, j json, b jsonb, a int[],"
    " n numeric(8,2)[], y bytea, ms mood[], w date, c char(4))",
    "insert into t values (1, 'sad', 5, '1 year 2 mons -3 days 04:05:06.000007', '23:59:59.5',"
    " 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{\"b\":  1}', '{\"b\":  1, \"a\": null}',"
    " '{1,null,3}', '{1.5}', '\\x00ff', '{ok,sad}', '2024-02-29', 'ab')",
    "insert into t (id, m, d) values (2, null, null), (3, 'ok', 7)",
    "alter type mood add value 'happy' before 'ok'",
    "insert into t (id, m, ms, i) values (4, 'happy', '{happy,null}', '-1 day')",
    "alter type mood rename value 'sad' to 'blue'",
    "insert into t (id, m, h, a) values (5, 'blue', '00:00', '{}')",
    "alter table t drop column i, drop column a",
    "alter table t add column i text default 'was an interval'",
    "alter table t add column a text[] default '{x,null}'",
    "insert into t (id, a, i) values (6, '{y,z}', null)",
    "alter table t alter column h type text, alter column u type text",
    "alter table t alter column m type text, alter column n type int[] using n::int[]",
    "alter table t alter column m type mood using m::mood, alter column d type bigint",
    "alter domain size add constraint small check (value < 1000)",
    "alter table t add column d2 size default 9, drop column d",
    "update t set d2 = id * 100, m = 'happy', y = '\\x' where id < 3",
    "alter table t rename column d2 to d",
    "delete from t where id = 4",
    "drop type mood cascade",
    "insert into t (id, w) values (7, '1999-12-31')",
)

PARTS = {
    "interval": (
        "(extract(year from {0}) * 12 + extract(month from {0}))::int",
        "extract(day from {0})::int",
        "(extract(hour from {0}) * 3600000000 + extract(minute from {0}) * 60000000"
        " + extract(microseconds from {0}))::bigint",
    ),
    "time": ("(extract(epoch from {0}) * 1000000)::bigint",),
    "bytea": ("encode({0}, 'hex')",),
    "array": ("{0} is null", "{0}[1]", "{0}[2]", "{0}[3]"),
}
"""How we are asked for a value of a type; for all others as text."""

_IN_WORDS_OF_ALL = {
    "interval": ("{0}['months']", "{0}['days']", "{0}['micros']"),
    "bytea": ("lower(hex({0}))",),
}
THEIR_PARTS = {
    "delta-rs": {**_IN_WORDS_OF_ALL, "bytea": ("encode({0}, 'hex')",), "array": PARTS["array"]},
    "DuckDB": {**_IN_WORDS_OF_ALL, "array": PARTS["array"]},
    "delta-spark": {
        **_IN_WORDS_OF_ALL,
        "array": ("{0} is null", *(f"try_element_at({{0}}, {at})" for at in (1, 2, 3))),
    },
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A foreign reader, and how it is asked."""

    name: str
    reader: ForeignReader


@pytest.fixture(
    scope="module",
    params=(
        "delta-rs",
        "DuckDB",
        pytest.param("delta-spark", marks=(pytest.mark.slow, pytest.mark.spark)),
    ),
)
def reading(request: pytest.FixtureRequest) -> Iterator[Reading]:
    match request.param:
        case "delta-rs":
            yield Reading(request.param, DeltaRs())
        case "DuckDB":
            with duckdb_reader() as duckdb:
                yield Reading(request.param, duckdb)
        case _:
            with delta_spark_reader() as spark:
                yield Reading(request.param, spark)


@pytest.mark.parametrize("changes", [CHANGES, TYPES], ids=["columns", "types"])
def test_they_read_what_we_do_after_every_change(
    reading: Reading, changes: Sequence[str], tmp_path: Path
) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(cut_age_us=0)
    pasts: list[tuple[int, Rows]] = []
    with serving(stash=stash, store=store, core=core) as dsn:
        for change in changes:
            with psycopg.connect(dsn, autocommit=True) as connection:
                before = _cut(connection)
                connection.execute(change.encode())
                columns = _columns(connection)
                if not columns:
                    continue
                ours, _ = _rows(connection, f"select {_asked(columns, PARTS, 'text')} from t")
                pasts.append((_present(connection), _rows(connection, "select * from t")[0]))
                _wait_for_cut(connection, before)
            place = exported(store, tmp_path)
            asked = _asked(columns, THEIR_PARTS[reading.name], "varchar")
            theirs = reading.reader.query(f"select {asked} from t", {"t": place})
            assert sorted((tuple(row) for row in theirs), key=repr) == ours, change
        _check_pasts(dsn, pasts)
    with serving(stash=stash, store=store, core=core) as dsn:
        _check_pasts(dsn, pasts)


def _columns(
    connection: "psycopg.Connection[tuple[object, ...]]",
) -> list[tuple[str, str]]:
    """Names and types, of arrays that they are some; none without a table."""
    found = connection.execute(
        "select column_name, case data_type when 'ARRAY' then 'array' else udt_name end"
        " from information_schema.columns where table_name = 't' order by ordinal_position"
    )
    return [(str(name), str(type_)) for name, type_ in found.fetchall()]


def _asked(
    columns: Sequence[tuple[str, str]], parts: Mapping[str, Sequence[str]], text: str
) -> str:
    return ", ".join(
        f"cast({part.format(name)} as {text})"
        for name, type_ in columns
        for part in parts.get(type_, ("{0}",))
    )


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
