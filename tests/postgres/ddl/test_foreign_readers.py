"""After every change of a definition, foreign readers see what we do; a restart, too.

    change ─▶ commit ─▶ a cut behind it ─▶ every table: our answer, and theirs
    at the end ─▶ every version of every table that there was: our answer of its time, and theirs

A value that readers write in words of their own (an array, an interval) is asked for in parts.

INVARIANTS
  R1  a reader finds our columns, by our names, in our order, and none besides.
  R2  what we show differently has another version, and no version was shown differently before.
  R3  a change is compared after a cut behind it: a table that is written after it is cut, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.postgres.ddl.foreign_stories import STORIES
from tests.support.exported import export
from tests.support.foreign_readers import (
    DeltaRs,
    ForeignReader,
    Rows,
    delta_spark_reader,
    duckdb_reader,
)
from tests.support.stack import serving

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

TRIES = 5_000
BEHIND = "written_behind"
"""The table that is written after every change (R3)."""

PARTS = {
    "interval": (
        "(extract(year from {0}) * 12 + extract(month from {0}))::int",
        "extract(day from {0})::int",
        "(extract(hour from {0}) * 3600000000 + extract(minute from {0}) * 60000000"
        " + extract(microseconds from {0}))::bigint",
    ),
    "float8": ("round({0} * 1000)::bigint",),
    "timestamp": ("(extract(epoch from {0}) * 1000000)::bigint",),
    "timestamptz": ("(extract(epoch from {0}) * 1000000)::bigint",),
    "time": ("(extract(epoch from {0}) * 1000000)::bigint",),
    "bytea": ("encode({0}, 'hex')",),
    "array": ("{0} is null", "{0}[1]", "{0}[2]", "{0}[3]"),
}
"""How we are asked for a value of a type; for all others as text."""

_IN_WORDS_OF_ALL = {
    "interval": ("{0}['months']", "{0}['days']", "{0}['micros']"),
    "bytea": ("lower(hex({0}))",),
    "float8": ("cast(round({0} * 1000) as bigint)",),
}


def _times(micros: str) -> Mapping[str, Sequence[str]]:
    return {"timestamp": (micros,), "timestamptz": (micros,)}


THEIR_PARTS = {
    "delta-rs": {
        **_IN_WORDS_OF_ALL,
        **_times("cast({0} as bigint)"),
        "bytea": ("encode({0}, 'hex')",),
        "array": PARTS["array"],
    },
    "DuckDB": {**_IN_WORDS_OF_ALL, **_times("epoch_us({0})"), "array": PARTS["array"]},
    "delta-spark": {
        **_IN_WORDS_OF_ALL,
        **_times("unix_micros(cast({0} as timestamp))"),
        "array": ("{0} is null", *(f"try_element_at({{0}}, {at})" for at in (1, 2, 3))),
    },
}
THEIR_TEXT = {"delta-rs": "varchar", "DuckDB": "varchar", "delta-spark": "string"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A foreign reader, and how it is asked."""

    name: str
    reader: ForeignReader

    @property
    def quote(self) -> str:
        """What stands around a name."""
        return "`" if self.name == "delta-spark" else '"'


@pytest.fixture(
    scope="module",
    params=("quick", pytest.param("delta-spark", marks=(pytest.mark.slow, pytest.mark.spark))),
)
def readings(request: pytest.FixtureRequest) -> Iterator[Sequence[Reading]]:
    """Those that are asked of one run of a story."""
    if request.param == "quick":
        with duckdb_reader() as duckdb:
            yield (Reading("delta-rs", DeltaRs()), Reading("DuckDB", duckdb))
    else:
        with delta_spark_reader() as spark:
            yield (Reading("delta-spark", spark),)


@dataclass(frozen=True, slots=True)
class Shown:
    """A table that we show: its newest version, and our answer at `ts`."""

    schema: str
    name: str
    ts: int
    shard: str
    version: int
    columns: Sequence[tuple[str, str]]
    rows: Rows

    @property
    def is_temporary(self) -> bool:
        """Only its session finds it."""
        return self.schema.startswith("pg_temp")

    @property
    def asked(self) -> str:
        """Our query, without a time."""
        return f'select {_asked(self.columns, PARTS, "text")} from "{self.schema}"."{self.name}"'


@pytest.mark.parametrize("story", STORIES)
def test_they_read_what_we_do_after_every_change(
    readings: Sequence[Reading], story: str, tmp_path: Path
) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(cut_age_us=0)
    seen: dict[tuple[str, int], Shown] = {}
    with serving(stash=stash, store=store, core=core) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"create table {BEHIND} (n int)".encode())
            for change in STORIES[story]:
                connection.execute(change.encode())
                tables = _cut(connection)
                export(store, tmp_path)
                for table in tables:
                    known = seen.setdefault((table.shard, table.version), table)
                    if known is table:
                        for reading in readings:
                            _compare(reading, table, tmp_path, change)
                    assert (known.columns, known.rows) == (table.columns, table.rows), change
        _check_pasts(dsn, seen.values())
    newest = {table.shard: table.version for table in seen.values()}
    for table in seen.values():
        for reading in readings if table.version < newest[table.shard] else ():
            _compare(reading, table, tmp_path, f"version {table.version}", table.version)
    with serving(stash=stash, store=store, core=core) as dsn:
        _check_pasts(dsn, seen.values())


def _compare(
    reading: Reading, table: Shown, directory: Path, change: str, version: int | None = None
) -> None:
    """Whether they read what we have shown; of a version, or the newest one."""
    reader, places = reading.reader, {"t": directory / table.shard}
    versions = None if version is None else {"t": version}
    columns = [str(row[0]) for row in reader.query("describe t", places, versions)]
    assert columns == [name for name, _ in table.columns], (change, table.name)
    if not columns:
        return
    asked = _asked(
        table.columns, THEIR_PARTS[reading.name], THEIR_TEXT[reading.name], reading.quote
    )
    theirs = reader.query(f"select {asked} from t", places, versions)
    assert sorted((tuple(row) for row in theirs), key=repr) == table.rows, (change, table.name)


def _cut(connection: Connection) -> Sequence[Shown]:
    """All tables, when everything until now is in their files (R3)."""
    connection.execute(f"insert into {BEHIND} values (1)".encode())
    behind = f"select cut >= {_present(connection)} from meridian.frontiers"
    behind += f" where table_name = '{BEHIND}'"
    asked = (connection.execute(behind.encode()).fetchone() for _ in range(TRIES))
    assert any(row == (True,) for row in asked), "no cut came"
    newest = connection.execute(
        "select table_schema, table_name, shard, max(version) from meridian.cuts"
        " join (pg_class join pg_namespace n on n.oid = relnamespace)"
        " on nspname = table_schema and relname = table_name"
        f" where table_name <> '{BEHIND}' group by 1, 2, 3".encode()
    ).fetchall()
    present = _present(connection)
    return [
        _shown(connection, present, str(schema), str(name), str(shard), int(str(version)))
        for schema, name, shard, version in newest
    ]


def _shown(
    connection: Connection, present: int, schema: str, name: str, shard: str, version: int
) -> Shown:
    found = connection.execute(
        "select column_name, case data_type when 'ARRAY' then 'array' else udt_name end"
        " from information_schema.columns where table_schema = %s and table_name = %s"
        " order by ordinal_position",
        (schema, name),
    )
    columns = [(str(column), str(type_)) for column, type_ in found.fetchall()]
    shown = Shown(schema, name, present, shard, version, columns, [])
    return replace(shown, rows=_rows(connection, shown.asked) if columns else [])


def _asked(
    columns: Sequence[tuple[str, str]],
    parts: Mapping[str, Sequence[str]],
    text: str,
    quote: str = '"',
) -> str:
    return ", ".join(
        f"cast({part.format(f'{quote}{name}{quote}')} as {text})"
        for name, type_ in columns
        for part in parts.get(type_, ("{0}",))
    )


def _present(connection: Connection) -> int:
    row = connection.execute("select read_ts from meridian.timelines").fetchone()
    assert row is not None
    return int(str(row[0]))


def _check_pasts(dsn: str, seen: Iterable[Shown]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table in seen:
            if table.columns and not table.is_temporary:
                past = f"{table.asked} as of {table.ts}"
                assert _rows(connection, past) == table.rows, past


def _rows(connection: Connection, query: str) -> Rows:
    found = connection.execute(query.encode()).fetchall()
    return sorted((tuple(row) for row in found), key=repr)
