"""CHECK as the invariants of a Delta table: what they say, and when they say it anew."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from coordinator.core.settings import CoreSettings
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.parser.parse import parse
from sql.statements.bound import CreateTable
from storage.memory import MemoryObjectStore, MemoryStash
from tests.support.exported import exported
from tests.support.foreign_readers import DeltaRs, ForeignReader, delta_spark_reader
from tests.support.stack import serving

COLUMNS = (
    "id int, n int, m smallint, l bigint, p numeric(10,2), u numeric, s text, v varchar(5), d date,"
    ' b boolean, "Odd `one" int, f double precision, c char(3), t timestamp, x text[]'
)

TOLD = {
    "n > 0": "coalesce(`n` > 0, true)",
    "n > m and m <= l": "coalesce((`n` > `m`) AND (`m` <= `l`), true)",
    "n between -1 and 5 or n is null": None,
    "not n in (1, 2)": "coalesce(NOT (`n` IN (1, 2)), true)",
    "n not in (1, 2)": "coalesce(`n` NOT IN (1, 2), true)",
    "p > 0": "coalesce(`p` > CAST('0' AS DECIMAL(1,0)), true)",
    "p <> 1.5 and u < 10.25": None,
    "p > n": "coalesce(`p` > `n`, true)",
    "u between -0.000001 and 99999999999999999999": None,
    "s in ('a', 'é€', '')": "coalesce(`s` IN ('a', 'é€', ''), true)",
    "v = 'a' or s < 'b'": None,
    "s = any ('{a,b}') and v <> s": None,
    "length(s) = 2 or char_length(v) > 3": None,
    "d >= '2024-02-29'": "coalesce(`d` >= DATE '2024-02-29', true)",
    "d > date '0001-01-01' and d <> '9999-12-31'": None,
    "b": "coalesce(`b`, true)",
    "not b and n = 1": None,
    "b is not true": "coalesce((`b`) IS NOT TRUE, true)",
    "b is false or n is not null": None,
    "b = (n > 1)": "coalesce(`b` = (`n` > 1), true)",
    "(n > 1) in (b, false)": None,
    '"Odd `one" = 1': "coalesce(`Odd ``one` = 1, true)",
}
"""Conditions, and how some of them are told; all mean the same to others."""

UNTOLD = (
    "n = null::int",
    "f > 0",
    "c = 'abc'",
    "t > '2024-01-01'",
    "n % 2 = 0",
    "n > 0 or f > 0",
    "s = 'it''s'",
    "s = E'a\\\\b'",
    "s like 'a%'",
    "lower(s) = s",
    "x is null",
    "x = '{a}'",
    "v::varchar(2) = 'ab'",
    "octet_length(s) > 1",
    "s::int > 1",
    "true",
)


def invariants(checks: str) -> dict[str, str]:
    """By column, those of a table with these columns and checks."""
    (statement,) = parse(f"create table t ({COLUMNS}, {checks})")
    made = bind(statement, BindContext(Catalog(), ["public"], 0), ()).bound
    assert isinstance(made, CreateTable)
    return {column.name: column.invariant for column in made.columns if column.invariant}


def test_words() -> None:
    for condition, told in TOLD.items():
        if told is not None:
            assert [*invariants(f"check ({condition})").values()] == [told]


@pytest.mark.parametrize("condition", UNTOLD)
def test_what_others_would_take_otherwise_is_not_told(condition: str) -> None:
    assert invariants(f"check ({condition}), check (n > 1)") == {"n": "coalesce(`n` > 1, true)"}


def test_a_check_stands_at_its_first_column() -> None:
    assert invariants("check (s = 'a' or m > n), check (n < 5)") == {
        "n": "coalesce((`s` = 'a') OR (`m` > `n`), true) AND coalesce(`n` < 5, true)"
    }


ROWS = (
    "(1, 1, 1, 1, 1.5, 1.5, 'a', 'a', '2024-02-29', true, 1)",
    "(2, 0, -1, 5000000000, -0.01, 10.25, 'b', 'bcd', '2024-02-28', false, 2)",
    "(3, 2, 3, 3, 99999999.99, -0.000001, 'é€', 'abcde', '0001-01-01', true, null)",
    "(4, -1, null, 0, 0, 99999999999999999999, '', '', '9999-12-31', false, 1)",
    "(5, null, 1, null, null, 0, null, null, null, null, 3)",
    "(6, 5, 5, 5, 5, null, 'a', 'b', '1969-12-31', null, 1)",
)


@pytest.fixture(
    scope="module",
    params=("delta-rs", pytest.param("delta-spark", marks=(pytest.mark.slow, pytest.mark.spark))),
)
def reader(request: pytest.FixtureRequest) -> Iterator[ForeignReader]:
    if request.param == "delta-rs":
        yield DeltaRs()
        return
    with delta_spark_reader() as spark:
        yield spark


def test_others_find_the_same_rows_wrong(reader: ForeignReader, tmp_path: Path) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(cut_age_us=0)
    conditions = [*TOLD]
    with (
        serving(stash=stash, store=store, core=core) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        connection.execute(f"create table t ({COLUMNS})".encode())
        connection.execute(f"insert into t values {', '.join(ROWS)}".encode())
        asked = ", ".join(f"coalesce({condition}, true)" for condition in conditions)
        ours = connection.execute(f"select {asked} from t order by id".encode()).fetchall()
        told = [" AND ".join(invariants(f"check ({one})").values()) for one in conditions]
        assert all(told)
        query = f"select {', '.join(told)} from t order by id"

        # It waits until everything is in files.
        connection.execute("optimize t")
        assert reader.query(query, {"t": exported(store, tmp_path)}) == ours
    # Most conditions are wrong of rows of their own, so that others would be noticed.
    assert len(set(zip(*ours, strict=True))) > len(conditions) // 2


def test_they_follow_the_definition(tmp_path: Path) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    core = CoreSettings(cut_age_us=0)
    steps = (
        ("create table t (a int check (a > 0), b int)", {"a": "coalesce(`a` > 0, true)"}),
        ("alter table t rename column a to c", {"c": "coalesce(`c` > 0, true)"}),
        (
            "alter table t add constraint two check (b < 3)",
            {"c": "coalesce(`c` > 0, true)", "b": "coalesce(`b` < 3, true)"},
        ),
        ("alter table t drop constraint t_a_check", {"b": "coalesce(`b` < 3, true)"}),
        ("alter table t alter column b type bigint", {"b": "coalesce(`b` < 3, true)"}),
        ("alter table t alter column b type text using b::text, drop constraint two", {}),
        (
            "alter table t add column d date check (d > '2020-01-01')",
            {"d": "coalesce(`d` > DATE '2020-01-01', true)"},
        ),
        ("alter table t drop column d", {}),
        ("create domain size as int; create type mood as enum ('a')", {}),
        ("alter table t add column e size check (e > 0), add f mood check (f = 'a')", {}),
    )
    with serving(stash=stash, store=store, core=core) as dsn:
        for step, expected in steps:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(step.encode())
                connection.execute("optimize t")
            assert _told(exported(store, tmp_path)) == expected, step
    with serving(stash=stash, store=store, core=core) as dsn:
        assert _told(exported(store, tmp_path)) == {}


def _told(table: Path) -> dict[str, str]:
    """The invariants of the newest schema in a table's log, by the column's name."""
    found: dict[str, str] = {}
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "metaData" in action:
                fields = json.loads(action["metaData"]["schemaString"])["fields"]
                found = {
                    field["name"]: json.loads(noted)["expression"]["expression"]
                    for field in fields
                    if (noted := field["metadata"].get("delta.invariants"))
                }
    return found
