"""postgres_fdw: another PostgreSQL reads and changes tables of the server under test."""

import contextlib
import os
from collections.abc import Callable, Iterator

import psycopg

from tests.clients.suites.contrib.places import (
    Connection,
    equal,
    fresh_schema,
    local,
    remote,
    rows,
    value,
    version,
)
from tests.clients.suites.python.clients.cases import Cases

cases = Cases("postgres_fdw", version())

_TABLES = """
    create table people (id int primary key, name text not null unique, age int,
        born timestamptz, fee numeric(10, 2), tags text[], meta jsonb);
    insert into people values (1, 'ann', 41, '2024-02-29 01:02:03+00', 1.50, '{a,b}', '{"k": 1}'),
        (2, 'bob', null, null, null, null, null);
    create table pets (id int, owner int references people, name varchar(20));
    insert into pets values (1, 1, 'rex'), (2, 1, 'tom'), (3, 2, 'kim')"""


@contextlib.contextmanager
def _both(schema: str, **options: str) -> Iterator[tuple[Connection, Connection]]:
    """The local server, whose schema `far` has all tables, and the one under test."""
    with remote() as theirs, local("postgres_fdw") as ours:
        fresh_schema(theirs, schema)
        theirs.execute(_TABLES)
        place = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE"}
        listed = [f"{name} '{os.environ[variable]}'" for name, variable in place.items()]
        listed += [f"{name} '{setting}'" for name, setting in options.items()]
        ours.execute(
            f"create server far foreign data wrapper postgres_fdw options ({', '.join(listed)})"
        )
        user, secret = os.environ["PGUSER"], os.environ["PGPASSWORD"]
        more = f", password '{secret}'" if secret else ""
        ours.execute(f"create user mapping for public server far options (user '{user}'{more})")
        ours.execute("create schema far")
        ours.execute(f"import foreign schema {schema} from server far into far")
        ours.execute("set search_path = far")
        yield ours, theirs
        theirs.execute(f"drop schema {schema} cascade")


def _case(
    body: Callable[[Connection, Connection], None], **options: str
) -> Callable[[Connection, Connection], None]:
    """A case of its own name."""

    def run() -> None:
        with _both(f"f_{body.__name__}", **options) as (ours, theirs):
            body(ours, theirs)

    run.__name__ = body.__name__
    cases.case(run)
    return body


@_case
def schemas_are_imported(ours: Connection, theirs: Connection) -> None:
    """Columns have their types and constraints."""
    columns = """select column_name, data_type, is_nullable from information_schema.columns
        where table_name = 'people' order by ordinal_position"""
    found = [" ".join(map(str, row)) for row in rows(ours, columns)]
    equal(found[:3], ["id integer NO", "name text NO", "age integer YES"])
    equal(found[4:], ["fee numeric YES", "tags ARRAY YES", "meta jsonb YES"])
    equal(
        value(
            ours,
            "select format_type(atttypid, atttypmod) from pg_attribute"
            " where attrelid = 'pets'::regclass and attname = 'name'",
        ),
        "character varying(20)",
    )


@_case
def schemas_are_imported_with_defaults(ours: Connection, theirs: Connection) -> None:
    """Options of IMPORT FOREIGN SCHEMA, LIMIT TO and EXCEPT."""
    theirs.execute('create table made (n int default 7, s text collate "C")')
    ours.execute(
        "import foreign schema f_schemas_are_imported_with_defaults limit to (made)"
        " from server far into far options (import_default 'true')"
    )
    ours.execute("insert into made (s) values ('x')")
    equal(rows(theirs, "select * from made"), [(7, "x")])


@_case
def rows_are_read(ours: Connection, theirs: Connection) -> None:
    """Values of all types."""
    found = rows(ours, "select * from people order by id")
    equal(found[0][:3], (1, "ann", 41))
    equal(str(found[0][4]), "1.50")
    equal(found[0][5:], (["a", "b"], {"k": 1}))
    equal(found[1], (2, "bob", None, None, None, None, None))
    born = "select born at time zone 'utc' = '2024-02-29 01:02:03' from people where id = 1"
    equal(value(ours, born), True)


@_case
def conditions_are_pushed_down(ours: Connection, theirs: Connection) -> None:
    """Comparisons, IN, patterns, functions."""
    for condition, ids in (
        ("age > 40", [1]),
        ("age is null", [2]),
        ("id in (2, 3)", [2]),
        ("name like 'a%'", [1]),
        ("upper(name) = 'BOB'", [2]),
        ("fee = 1.5", [1]),
        ("born > '2024-01-01 00:00:00+01'", [1]),
        ("'b' = any (tags)", [1]),
        ("case when age > 1 then id = 1 else id = 2 end", [1, 2]),
    ):
        found = rows(ours, f"select id from people where {condition} order by id")
        equal([row[0] for row in found], ids)


@_case
def joins_are_pushed_down(ours: Connection, theirs: Connection) -> None:
    """Of inner and outer kinds, with sorting and limit."""
    found = rows(
        ours,
        "select p.name, t.name from people p left join pets t on t.owner = p.id and t.id > 1"
        " order by t.id nulls last limit 2",
    )
    equal(found, [("ann", "tom"), ("bob", "kim")])
    full = "select count(*) from people p full join pets t on p.id = t.id"
    equal(value(ours, full), 3)
    semi = "select name from people p where exists (select from pets t where t.owner = p.id)"
    equal(len(rows(ours, semi)), 2)


@_case
def aggregates_are_pushed_down(ours: Connection, theirs: Connection) -> None:
    """Grouping and HAVING."""
    found = rows(
        ours,
        "select owner, count(*), max(name), string_agg(name, ',' order by id) from pets"
        " group by owner having count(*) > 1",
    )
    equal(found, [(1, 2, "tom", "rex,tom")])
    equal(value(ours, "select count(distinct owner) filter (where id > 1) from pets"), 2)


@_case
def parameters_are_sent(ours: Connection, theirs: Connection) -> None:
    """Values of outer rows and of statements."""
    ours.execute("prepare one as select name from people where id = $1")
    equal([value(ours, f"execute one ({n})") for n in (1, 2, 1, 2, 1, 2, 1)][-1], "ann")
    ours.execute("create table public.wanted (n int)")
    ours.execute("insert into public.wanted values (1), (3)")
    ours.execute("set enable_hashjoin = off; set enable_mergejoin = off")
    joined = "select w.n, t.name from public.wanted w join pets t on t.id = w.n order by 1"
    equal(rows(ours, joined), [(1, "rex"), (3, "kim")])


@_case
def rows_are_inserted(ours: Connection, theirs: Connection) -> None:
    """By values, RETURNING, and from queries."""
    ours.execute("insert into pets values (4, 1, 'zoe')")
    equal(rows(ours, "insert into pets values (5, 2, 'x') returning id, name"), [(5, "x")])
    ours.execute("insert into pets select g, 1, 'p' || g from generate_series(100, 300) g")
    equal(value(theirs, "select count(*) from pets"), 206)
    ours.execute("insert into people (id, name) values (1, 'ann') on conflict do nothing")
    equal(value(theirs, "select count(*) from people"), 2)


@_case
def rows_are_updated(ours: Connection, theirs: Connection) -> None:
    """Whole statements that are sent as they are."""
    ours.execute("update people set age = age + 1, name = upper(name) where id = 1")
    equal(rows(theirs, "select name, age from people where id = 1"), [("ANN", 42)])
    equal(rows(ours, "delete from pets where owner = 1 returning id"), [(1,), (2,)])


@_case
def rows_are_updated_one_by_one(ours: Connection, theirs: Connection) -> None:
    """By their ctid, where conditions cannot be sent."""
    ours.execute("update people set age = 7 where random() >= 0 and id = 1")
    equal(value(theirs, "select age from people where id = 1"), 7)
    ours.execute("delete from pets where random() >= 0 and id = 3")
    equal(value(theirs, "select count(*) from pets"), 2)


@_case
def transactions_are_kept(ours: Connection, theirs: Connection) -> None:
    """Commit, roll back, savepoints."""
    with ours.transaction():
        ours.execute("delete from pets where id = 1")
        equal(value(theirs, "select count(*) from pets"), 3)
        with ours.transaction(force_rollback=True):
            ours.execute("delete from pets")
    equal(value(theirs, "select count(*) from pets"), 2)
    with ours.transaction(force_rollback=True):
        ours.execute("delete from pets")
    equal(value(theirs, "select count(*) from pets"), 2)


@_case
def snapshots_are_kept(ours: Connection, theirs: Connection) -> None:
    """A transaction reads one state of the other server."""
    with ours.transaction():
        equal(value(ours, "select count(*) from pets"), 3)
        theirs.execute("delete from pets")
        equal(value(ours, "select count(*) from pets"), 3)
    equal(value(ours, "select count(*) from pets"), 0)


@_case
def errors_come_through(ours: Connection, theirs: Connection) -> None:
    """With SQLSTATE and detail."""
    try:
        ours.execute("insert into people (id, name) values (1, 'zoe')")
    except psycopg.errors.UniqueViolation as error:
        equal(error.diag.message_detail, "Key (id)=(1) already exists.")
    else:
        raise AssertionError("no error")
    theirs.execute("drop table pets")
    try:
        ours.execute("select * from pets")
    except psycopg.errors.UndefinedTable:
        return
    raise AssertionError("no error")


@_case
def many_rows_are_fetched(ours: Connection, theirs: Connection) -> None:
    """By a cursor, in parts."""
    theirs.execute("insert into pets select g, 1, 'p' from generate_series(10, 2009) g")
    equal(value(ours, "select count(*) from (select * from pets offset 0) t"), 2003)
    equal(value(ours, "select sum(id) from (select * from pets offset 0) t"), 2_019_006)


@_case
def rows_are_copied(ours: Connection, theirs: Connection) -> None:
    """COPY into a foreign table, and out of one."""
    with ours.cursor().copy("copy pets from stdin") as copy:
        for n in range(10, 60):
            copy.write_row((n, 1, f"p{n}"))
    equal(value(theirs, "select count(*) from pets"), 53)
    with ours.cursor().copy("copy (select * from pets) to stdout") as copy:
        equal(sum(1 for _ in copy.rows()), 53)


@_case
def tables_are_truncated(ours: Connection, theirs: Connection) -> None:
    """TRUNCATE is sent."""
    ours.execute("truncate pets")
    equal(value(theirs, "select count(*) from pets"), 0)


@_case
def tables_are_analyzed(ours: Connection, theirs: Connection) -> None:
    """Samples of rows come by a cursor."""
    ours.execute("analyze people")
    equal(value(ours, "select count(*) from pg_stats where tablename = 'people'"), 7)


@_case
def rows_are_locked(ours: Connection, theirs: Connection) -> None:
    """FOR UPDATE is sent."""
    with ours.transaction():
        ours.execute("select * from people where id = 1 for update")
        free = "select id from people for update skip locked"
        equal(rows(theirs, free), [(2,)])


def _connections_are_told(ours: Connection, theirs: Connection) -> None:
    """postgres_fdw_get_connections, and application_name."""
    equal(value(ours, "select count(*) from pets"), 3)
    equal(value(ours, "select server_name from public.postgres_fdw_get_connections()"), "far")
    names = "select count(*) from pg_stat_activity where application_name = 'from afar'"
    equal(value(theirs, names), 1)
    equal(value(ours, "select public.postgres_fdw_disconnect('far')"), True)


_connections_are_told.__name__ = "connections_are_told"
_case(_connections_are_told, application_name="from afar")


def _estimates_are_asked_for(ours: Connection, theirs: Connection) -> None:
    """use_remote_estimate: EXPLAIN is sent."""
    equal(len(rows(ours, "select * from people where age > 40 order by name")), 1)
    plan = rows(ours, "explain (costs off, verbose) select name from people where age > 40")
    assert any("Remote SQL: SELECT name FROM" in str(row[0]) for row in plan), plan


_estimates_are_asked_for.__name__ = "estimates_are_asked_for"
_case(_estimates_are_asked_for, use_remote_estimate="true")


def _rows_are_inserted_in_batches(ours: Connection, theirs: Connection) -> None:
    """batch_size."""
    ours.execute("insert into pets select g, 1, 'p' || g from generate_series(10, 259) g")
    equal(value(theirs, "select count(*) from pets"), 253)


_rows_are_inserted_in_batches.__name__ = "rows_are_inserted_in_batches"
_case(_rows_are_inserted_in_batches, batch_size="100", fetch_size="7")


def _tables_are_read_at_once(ours: Connection, theirs: Connection) -> None:
    """async_capable."""
    both = "select id from people union all select id from pets"
    equal(len(rows(ours, both)), 5)


_tables_are_read_at_once.__name__ = "tables_are_read_at_once"
_case(_tables_are_read_at_once, async_capable="true", parallel_commit="true")


if __name__ == "__main__":
    cases.run()
