"""Nothing in a statement reaches a file, the environment, a class or a setting of an engine.

A statement of this kind fails before any engine sees it, so the whole
lists run on the local engine, and on Spark what stands for each of them.
"""

import pytest

from tests.postgres.queries.answers import Failed
from tests.security.conftest import Target

FUNCTIONS = [
    "reflect('java.lang.System', 'getenv', 'HOME')",
    "java_method('java.lang.System', 'getenv', 'HOME')",
    "try_reflect('java.lang.System', 'getenv', 'HOME')",
    "\"reflect\"('java.lang.System', 'getenv', 'HOME')",
    "REFLECT /* x */ ('java.lang.System', 'getenv', 'HOME')",
    "pg_catalog.reflect('java.lang.System', 'getenv', 'HOME')",
    "identifier('reflect')",
    "input_file_name()",
    "raise_error('x')",
    "error('MERIDIAN:57P01:x')",
    "getenv('HOME')",
    "read_text('/etc/passwd')",
    "read_blob('/etc/passwd')",
    "read_csv('/etc/passwd')",
    "read_csv_auto('/etc/passwd')",
    "read_parquet('/etc/passwd')",
    "read_json('/etc/passwd')",
    "glob('/etc/*')",
    "http_get('http://127.0.0.1/')",
    "getvariable('x')",
    "current_setting('spark.master')",
    "current_setting('memory_limit')",
    "duckdb_settings()",
    "pragma_database_list()",
    "pg_read_file('/etc/passwd')",
    "pg_ls_dir('/etc')",
    "lo_import('/etc/passwd')",
    "dblink('host=127.0.0.1', 'select 1')",
    "query('select 1')",
]
CLAUSES = [
    "select {f}",
    "select {f} from safe",
    "select a from safe where {f} is null",
    "select a from safe order by {f}",
    "select count(*) from safe group by {f}",
    "select count(*) from safe having {f} is null",
    "select a from safe limit {f}",
    "select * from {f}",
    "select * from {f} as x",
    "select * from safe, lateral {f} x",
    "select * from safe s join safe t on {f} is null",
    "select (select {f} from safe)",
    "select a from safe where exists (select {f})",
    "select a from safe where a in (select {f})",
    "with x as (select {f}) select * from x",
    "select case when a = 1 then {f} end from safe",
    "select coalesce({f}, 'x') from safe",
    "select upper({f}::text) from safe",
    "select max({f}) from safe",
    "select count(*) filter (where {f} is null) from safe",
    "select count(*) over (partition by {f}) from safe",
    "select string_agg(t, {f}) from safe",
    "values ({f})",
    "select a from safe union select {f}",
    "select distinct on ({f}) a from safe",
    "insert into safe values (2, {f})",
    "insert into safe select 2, {f}",
    "insert into safe values (2, 'x') returning {f}",
    "update safe set t = {f}",
    "update safe set a = 3 where {f} is null",
    "delete from safe where {f} is null",
    "merge into safe using (select {f} as x) s on s.x = t when matched then delete",
    "copy (select {f}) to stdout",
    "explain select {f}",
    "explain analyze select {f} from safe",
    "prepare p as select {f}",
    "create table bad (a int, t text default {f})",
    "create table bad (a int check ({f} is null))",
    "create table bad as select {f} as x",
    "create view bad as select {f} as x",
    "declare c cursor with hold for select {f}",
    "select a from safe for system_time as of {f}",
]
RELATIONS = [
    '"parquet"."/etc/passwd"', '"text"."/etc/passwd"', '"csv"."/etc/passwd"', 'delta."/etc"',
    '"binaryFile"."/etc/passwd"', '"/etc/passwd"', '"s3://bucket/x.parquet"', '"x.csv"',
    "'/etc/passwd'", "parquet.`/etc/passwd`", "`parquet`.`/etc/passwd`", "sqlite_master",
    "duckdb_tables", "memory.main.safe", "system.main.duckdb_settings", "spark_catalog.default.t",
    '"r1"', "global_temp.x",
]  # fmt: skip
USES = [
    "select * from {r}", "select * from {r} as x join safe on true", "insert into {r} values (1)",
    "insert into safe select 1, 'x' from {r}", "update {r} set a = 1", "delete from {r}",
    "merge into {r} using safe on true when matched then delete", "truncate {r}", "drop table {r}",
    "copy {r} to stdout", "copy {r} from stdin", "select (select 1 from {r})",
    "create table y as select * from {r}", "create view y as select * from {r}", "table {r}",
]  # fmt: skip
STATEMENTS = [
    "select transform(a) using 'cat /etc/passwd' from safe",
    "create table x using text options (path '/etc/passwd')",
    "create table x (a int) using parquet location '/tmp/x'",
    "create view x using text",
    "create table x (a int) location '{outside}'",
    "create table x (a int) tblproperties ('a' = 'b')",
    "create table x (a int) with (location = '{outside}')",
    "create table x (a int) tablespace pg_global",
    "create external table x (a int) location '{outside}'",
    "insert overwrite directory '{outside}' select 1",
    "insert overwrite local directory '{outside}' using csv select 1",
    "load data inpath '{outside}' into table safe",
    "add jar '{outside}'",
    "add file '{outside}'",
    "list file",
    "create function f as 'java.lang.Runtime' using jar '{outside}'",
    "create function f() returns int language c as '{outside}'",
    "create function f() returns int language sql as 'select 1'",
    "create temporary macro f(x) as x",
    "cache table safe",
    "refresh table safe",
    "analyze table safe compute statistics",
    "execute immediate 'select 1'",
    "begin select 1; end",
    "use default",
    "set catalog x",
    "set spark.sql.runSQLOnFiles = true",
    "set spark.sql.ansi.enabled to false",
    'set "spark.master" = x',
    "set -v",
    "reset spark.sql.ansi.enabled",
    "set enable_external_access = true",
    "set allowed_directories = '/'",
    "set memory_limit = '1TB'",
    "set threads = 100",
    "set lock_configuration = false",
    "set variable x = 1",
    "pragma database_list",
    "attach '{outside}' as x",
    "detach memory",
    "install httpfs",
    "load httpfs",
    "load '{outside}'",
    "export database '{outside}'",
    "import database '{outside}'",
    "copy safe to '{outside}'",
    "copy safe to '{outside}' (format parquet)",
    "copy (select 1) to '{outside}'",
    "copy safe from '/etc/passwd'",
    "copy safe to program 'cat > {outside}'",
    "copy safe from program 'cat /etc/passwd'",
    "create extension dblink",
    "create server s foreign data wrapper f",
    "do $$ begin null; end $$",
    "call f()",
    "alter system set x = 1",
    "set role postgres",
    "set session authorization postgres",
    "create secret (type s3)",
    "describe safe",
    "summarize safe",
    "from safe",
    "select * from safe pivot (sum(a) for t in ('x'))",
    "select * exclude (a) from safe",
    "select columns('a') from safe",
    "select /*+ broadcast(safe) */ reflect('a', 'b') from safe",
    "checkpoint",
    "shutdown",
]
REFUSALS = (
    "0A000", "22023", "25P01", "3D000", "3F000", "42501", "42601", "42602", "42703", "42704",
    "42809", "42883", "42P01", "55P02",
)  # fmt: skip
TOLD_IN_SHORT = 7
"""Of what is asked of the local engine, Spark is asked one in so many."""


def refused(target: Target, texts: list[str]) -> None:
    """All of them fail in one of the ways that say no."""
    if target.engine == "spark":
        texts = texts[::TOLD_IN_SHORT]
    answers = target.ask(*texts)
    odd = [
        (text, answer)
        for text, answer in zip(texts, answers, strict=True)
        if not (isinstance(answer, Failed) and answer.sqlstate in REFUSALS)
    ]
    assert not odd
    target.lives()


@pytest.mark.parametrize("clause", CLAUSES)
def test_functions_of_engines_in_every_clause(target: Target, clause: str) -> None:
    refused(target, [clause.replace("{f}", function) for function in FUNCTIONS])


@pytest.mark.parametrize("relation", RELATIONS)
def test_files_are_no_relations(target: Target, relation: str) -> None:
    refused(target, [use.replace("{r}", relation) for use in USES])


def test_statements_of_engines(target: Target) -> None:
    outside = target.warehouse / "outside"
    refused(target, [text.replace("{outside}", str(outside)) for text in STATEMENTS])
    assert not outside.exists()


def test_settings_of_engines_are_not_shown(target: Target) -> None:
    names = ("spark.master", "spark.sql.ansi.enabled", "memory_limit", "access_mode", "threads")
    shown = target.ask(*(f"show {name}" for name in names))
    assert all(isinstance(answer, Failed) for answer in shown)
