"""EXPLAIN: what it tells, in text and JSON; that ANALYZE runs what it explains, and only that."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

from tests.support.stack import serving

Connection = psycopg.Connection[tuple[Any, ...]]

FEW = "Engine: reference (auto: a few rows in memory)"


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table t (id int primary key, b text)")
            connection.execute("insert into t values (1, 'x'), (2, 'y'), (3, 'y')")
            connection.execute("create sequence s")
        yield dsn


@pytest.fixture
def connection(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def told(connection: Connection, text: str) -> list[str]:
    """The lines, without times."""
    rows = connection.execute(cast("Any", text)).fetchall()
    return [re.sub(r"\d+\.\d{3}", "T", line) for (line,) in rows]


def test_a_plan(connection: Connection) -> None:
    text = "select b, count(*) from t where id > 1 group by b order by b desc"
    assert told(connection, f"explain {text}") == [
        "Sort",
        "  Sort Key: b DESC",
        "  ->  Project",
        "        ->  GroupAggregate",
        "              Group Key: t.b",
        "              Aggregates: count(*)",
        "              ->  Filter",
        "                    Filter: (t.id > 1)",
        "                    ->  Scan on t  (files: 0 files, 0 rows; in memory: 3 rows)",
        FEW,
    ]


def test_operands_that_are_constants_are_computed(connection: Connection) -> None:
    text = "select b || (1 + 1) from t where id > 1 + 1 and id < length('ab' || b)"
    lines = told(connection, f"explain (verbose) {text}")
    assert lines[1] == "  Output: (t.b || 2) AS ?column?"
    assert lines[3] == "        Filter: ((t.id > 2) AND (t.id < length(('ab' || t.b))))"


def test_verbose_and_settings_and_summary(connection: Connection) -> None:
    lines = told(connection, "explain (verbose, settings, summary) select b from t where id = 1")
    assert lines[0:2] == ["Project", "  Output: t.b AS b"]
    assert lines[-3:] == ["Reads t: (id = 1)", FEW, "Planning Time: T ms"]
    assert told(connection, "explain (settings) select b from t")[-1] == FEW
    connection.execute("set engine = spark")
    lines = told(connection, "explain (settings) select b from t")
    assert lines[-2:] == ["Engine: reference", "Settings: engine = 'spark'"]
    connection.execute("reset engine")


def test_analyze_counts_and_times(connection: Connection) -> None:
    lines = told(connection, "explain analyze select * from t where b = 'y'")
    assert lines[0] == "Project (actual time=T..T rows=2.00 loops=1)"
    assert lines[-2:] == ["Planning Time: T ms", "Execution Time: T ms"]
    text = "explain (analyze, timing off, summary off, costs off, buffers, wal) select * from t"
    assert told(connection, text)[0] == "Project (actual rows=3.00 loops=1)"
    assert told(connection, text)[-1] == FEW


def test_json(connection: Connection) -> None:
    cursor = connection.execute("explain (format json, analyze) select id from t order by id")
    assert cursor.description is not None
    assert cursor.description[0].type_code == 114
    [(found,)] = cursor.fetchall()
    [whole] = found
    plan = whole["Plan"]
    assert (plan["Node Type"], plan["Actual Rows"], plan["Sort Key"]) == ("Sort", 3, "id")
    scan = plan["Plans"][0]["Plans"][0]
    assert scan == {
        "Node Type": "Scan",
        "Parent Relationship": "Outer",
        "Relation Name": "t",
        "Files": 0,
        "Rows in Files": 0,
        "Rows in Memory": 3,
    }
    assert whole["Engine"] == "reference"
    assert whole["Planning Time"] > 0
    assert whole["Execution Time"] >= plan["Actual Total Time"] >= plan["Actual Startup Time"]
    assert json.dumps(whole["Triggers"]) == "[]"


def rows(connection: Connection, text: str = "select id from t order by id") -> list[Any]:
    return [value for (value,) in connection.execute(cast("Any", text)).fetchall()]


def test_analyze_runs_what_writes(dsn: str, connection: Connection) -> None:
    options = "(analyze, timing off, summary off)"
    with psycopg.connect(dsn, autocommit=True) as other:
        text = f"explain {options} insert into t values (10, 'z'), (11, 'z') returning id"
        assert told(connection, text) == [
            "Insert on t (actual rows=2.00 loops=1)",
            "  ->  Values Scan",
            "        Rows: 2",
            "Engine: reference",
        ]
        # Whoever looks after the answer finds the rows: it was committed before it was told.
        assert rows(other) == [1, 2, 3, 10, 11]
        lines = told(connection, f"explain {options} update t set id = id + 10 where b = 'z'")
        assert lines[0] == "Update on t (actual rows=0.00 loops=1)"
        assert rows(other) == [1, 2, 3, 20, 21]
        text = f"""explain {options} with gone as (delete from t where id = 21 returning id)
            select * from gone"""
        lines = told(connection, text)
        assert lines[0] == "Project (actual rows=1.00 loops=1)"
        assert "    ->  Delete on t" in lines
        assert rows(other) == [1, 2, 3, 20]
        connection.execute("begin")
        told(connection, f"explain {options} delete from t where id = 20")
        assert rows(connection) == [1, 2, 3]
        connection.execute("rollback")
        told(connection, "explain delete from t where id = 20")
        assert rows(other) == [1, 2, 3, 20]
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("explain analyze insert into t values (30, 'z'), (1, 'z')")
        told(connection, "explain analyze delete from t where id = 20")
        assert rows(other) == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "select b from t where {}",
        "update t set b = b where {}",
        "delete from t where {}",
        "create table made as select b from t where {}",
        "with gone as (delete from t where {} returning id) select id from gone",
        "with made as (insert into t values (9) returning id) select b from t where {}",
    ],
)
def test_conditions_are_shown_in_the_order_that_they_are_asked_in(
    connection: Connection, text: str
) -> None:
    lines = told(connection, f"explain {text.format('1 / (id - 2) = 1 and id <> 2 and true')}")
    (shown,) = [line.strip() for line in lines if "Filter: " in line]
    assert shown == "Filter: ((t.id <> 2) AND ((1 / (t.id - 2)) = 1))"


def test_a_read_only_transaction_explains_and_does_not_run(connection: Connection) -> None:
    connection.execute("begin read only")
    assert told(connection, "explain delete from t")[0] == "Delete on t"
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("explain analyze delete from t")
    connection.execute("rollback")


def test_create_table_as(connection: Connection) -> None:
    text = "create table made as select id from t where id < 3"
    assert told(connection, f"explain {text}")[-1] == FEW
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select * from made")
    lines = told(connection, f"explain (analyze, timing off) {text}")
    assert lines[0] == "Project (actual rows=2.00 loops=1)"
    assert rows(connection, "select id from made order by id") == [1, 2]
    connection.execute("drop table made")


def test_no_sequence_moves_before_analyze(connection: Connection) -> None:
    told(connection, "explain select nextval('s')")
    told(connection, "explain analyze select nextval('s')")
    assert rows(connection, "select nextval('s')") == [2]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("explain (format xml) select 1", "0A000"),
        ("explain (format yaml) select 1", "0A000"),
        ("explain (generic_plan) select 1", "0A000"),
        ("explain analyze select 1 / (id - 1) from t", "22012"),
    ],
)
def test_refused(connection: Connection, text: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(cast("Any", text))
    assert caught.value.sqlstate == sqlstate
