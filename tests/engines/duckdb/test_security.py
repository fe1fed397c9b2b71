"""Nothing that a user writes does anything in DuckDB, and DuckDB reaches nothing but its files."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from compute.duckdb.database import LocalSettings, open_database
from compute.executor import EngineUnavailable
from sql.emit.duckdb.dialect import emit
from sql.plan.nodes import ColumnId, Const, Param, PlanColumn, Project, RelationId, Values
from sql.types.sql_type import INT4, TEXT
from tests.engines.duckdb.local_engine import Engine, Shard, plan_of
from tests.postgres.functions.test_reference import plan_of as constant_plan

TRICKS = [
    "${env:HOME}",
    "'a\\' OR 1=1 --'",
    "a\\",
    "\\'; drop table t; --",
    "`a` \"b\" 'c'",
    "/* */ -- $$ $a1",
    "read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "getenv('HOME')",
    ":a1 ? $1 {a1} $a1",
    "\\u0041\\n\\x41\\101%_",
    "line\nbreak\r\ttab",
    "\u2028\u2029\u02bc\uff07😀",
    "MERIDIAN:22012:not an error",
    "Invalid Input Error: MERIDIAN:57P01:nor this",
]
SCHEMA = pa.schema([("s", pa.string())])
COLUMNS = [("s", TEXT)]
CLAUSES = [
    "select s from t where s = $1",
    "select s from t where s in ($1, $1)",
    "select s from t group by s having max(s) = $1",
    "select max(s) from t where s = $1 group by s order by $1",
    "select s from t where case when s = $1 then true end",
    "select coalesce(s, $1) from t where s || $1 = $1 || s",
    "select s from (select s from t union select $1) x where s = $1",
    "select a.s from t a join t b on a.s = b.s and b.s = $1",
    "select string_agg(s, '') from t where s = $1",
    "select s from t where strpos(s, $1) = 1 and length(s) = length($1)",
]


def test_stored_text_is_text(engine: Engine) -> None:
    shard = Shard(engine, SCHEMA)
    shard.file("a.parquet", pa.table([TRICKS], schema=SCHEMA))
    view = shard.view([("a.parquet", None, [])], [("@1", pa.table([TRICKS], schema=SCHEMA), [])])
    found = engine.answer(plan_of("select s from t", COLUMNS), view)
    assert sorted(found) == sorted([(text,) for text in TRICKS] * 2)


def test_literals_and_parameters_are_text(engine: Engine) -> None:
    columns = tuple(PlanColumn(ColumnId(n), "c", TEXT) for n in range(2 * len(TRICKS)))
    literals = [Const(text, TEXT) for text in TRICKS]
    parameters = [Param(n, TEXT) for n in range(1, len(TRICKS) + 1)]
    plan = Project(Values((), ((),)), columns, (*literals, *parameters))
    assert engine.answer(plan, None, TRICKS) == [(*TRICKS, *TRICKS)]


@pytest.mark.parametrize("clause", CLAUSES)
def test_text_in_every_clause(engine: Engine, clause: str) -> None:
    shard = Shard(engine, SCHEMA)
    view = shard.view(inline=[("@1", pa.table([TRICKS], schema=SCHEMA), [])])
    plan = plan_of(clause, COLUMNS)
    for text in TRICKS:
        assert engine.answer(plan, view, [text]) == [(text,)]


def test_no_text_of_a_user_is_in_a_statement() -> None:
    plan = constant_plan("'zzz' || 'yyy''\\' like 'xxx%' and 'www' in ('vvv', 'uuu')")
    query = emit(plan, {})
    for text in ("zzz", "yyy", "xxx", "www", "vvv", "uuu", "\\"):
        assert text not in query.text
    assert {"zzz", "yyy'\\", "xxx%", "www"} <= set(query.arguments.values())


def test_a_relation_id_is_only_a_key(engine: Engine) -> None:
    column = PlanColumn(ColumnId(1), "x", INT4)
    assert emit(Values((column,), ()), {RelationId('"; drop table r1; --'): "r1"}).arguments == {}


FORBIDDEN = [
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from read_csv('{outside}')",
    "select * from read_parquet('{warehouse}/../outside.parquet')",
    "copy (select 1) to '{outside}'",
    "attach '{outside}' as other",
    "export database '{outside}'",
    "install httpfs",
    "load httpfs",
    "load '{outside}'",
    "set threads = 1",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "set lock_configuration = false",
    "reset allowed_directories",
    "pragma memory_limit = '1GB'",
    "set TimeZone = 'Europe/Berlin'",
    "select * from python_variable",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_database_reaches_nothing_else(engine: Engine, tmp_path: Path, statement: str) -> None:
    python_variable = pa.table({"a": [1]})
    assert python_variable.num_rows
    outside = tmp_path / "outside"
    outside.write_text("a\n1\n")
    text = statement.format(outside=outside, warehouse=engine.warehouse)
    cursor = engine.executor.instances.newest.database.cursor()
    # Refused by a setting, not by a file or a network that is not there.
    with pytest.raises(duckdb.Error, match=r"disabled|locked|Catalog Error"):
        cursor.execute(text).fetchall()
    cursor.close()
    assert outside.read_text() == "a\n1\n"


def test_a_database_that_is_open_to_the_world_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import compute.duckdb.database as module

    monkeypatch.setattr(module, "LOCKDOWN_STATEMENTS", ())
    (tmp_path / "spill").mkdir()
    with pytest.raises(EngineUnavailable, match="does not keep to its directories"):
        open_database(LocalSettings(tmp_path, tmp_path / "spill"))


def test_the_spill_directory_is_ours_alone(engine: Engine) -> None:
    directory = engine.executor._settings.directory
    assert not directory.stat().st_mode & 0o077
