"""Stored values of every kind as foreign readers see them."""

from pathlib import Path

import psycopg

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.exported import exported
from tests.support.foreign_readers import DeltaRs, ForeignReader, Rows, duckdb_reader
from tests.support.stack import serving

TABLE = (
    "create table t (a int[], b text[], n numeric(10,2)[], j jsonb, k json, t time, i interval,"
    " d date[])"
)
ROW = (
    "insert into t values ('{1,NULL}', '{x,\"\"}', '{1.5}', '{\"b\":1, \"a\":2}', '{\"b\" : 1}',"
    " '10:00:00.5', '1 mon 2 days 00:00:03', '{2024-02-29}'), (null, '{}', null, null, null, null,"
    " null, null)"
)


def written(directory: Path) -> Path:
    """The table as files, once a cut has come."""
    store = MemoryObjectStore()
    with (
        serving(stash=MemoryStash(), store=store, core=CoreSettings(cut_age_us=0)) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        connection.execute(TABLE)
        connection.execute(ROW)
        # It waits until everything is in files.
        connection.execute("optimize t")
        return exported(store, directory)


def read(reader: ForeignReader, place: Path, items: str) -> Rows:
    return reader.query(f"select {items} from t order by j nulls last", {"t": place})


def test_delta_rs_reads_them(tmp_path: Path) -> None:
    items = "array_length(a), b[1], n[1], j, k, t, i['months'], i['days'], i['micros'], d[1]"
    first, second = read(DeltaRs(), written(tmp_path), items)
    assert [str(value) for value in first] == [
        "2", "x", "1.50", '{"a": 2, "b": 1}', '{"b" : 1}', "36000500000", "1", "2", "3000000",
        "2024-02-29",
    ]  # fmt: skip
    assert second[3:6] == (None, None, None)


def test_duckdb_reads_them(tmp_path: Path) -> None:
    items = (
        "cast(a as varchar), cast(b as varchar), cast(n as varchar), j, k, t, cast(i as varchar)"
    )
    with duckdb_reader() as reader:
        first, second = read(reader, written(tmp_path), items)
    assert list(first) == [
        "[1, NULL]", "[x, '']", "[1.50]", '{"a": 2, "b": 1}', '{"b" : 1}', 36000500000,
        "{'months': 1, 'days': 2, 'micros': 3000000}",
    ]  # fmt: skip
    assert second[0] is None
