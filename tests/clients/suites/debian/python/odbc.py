"""psqlODBC, PostgreSQL's driver of ODBC, by pyodbc."""

import datetime
import decimal
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyodbc
from harness import Mismatch, equal, run_all

_PLACE = {
    "Driver": "{PostgreSQL Unicode}",
    "Server": os.environ["PGHOST"],
    "Port": os.environ["PGPORT"],
    "Database": os.environ["PGDATABASE"],
    "Uid": os.environ["PGUSER"],
    "Pwd": os.environ["PGPASSWORD"],
}
_PEOPLE = """
    create table people (id serial primary key, name varchar(40) not null unique, age int);
    insert into people (name, age) values ('ann', 41), ('bob', null)"""

CASES: dict[str, Callable[[], None]] = {}

pyodbc.pooling = False


def connect(schema: str = "", **more: str) -> pyodbc.Connection:
    """A connection whose search path is the schema."""
    first = f"set search_path = {schema}" if schema else "set client_min_messages = warning"
    parts = {**_PLACE, "ConnSettings": f"{{{first}}}", **more}
    source = ";".join(f"{name}={value}" for name, value in parts.items())
    return pyodbc.connect(source, autocommit=True)


def case(body: Callable[[pyodbc.Connection, str], None]) -> Callable[..., None]:
    """A case of its own name, with a schema of its own and the table of people."""
    name = body.__name__

    def run() -> None:
        schema = f"od_{name}"
        admin = connect()
        admin.execute(f"drop schema if exists {schema} cascade")
        admin.execute(f"create schema {schema}")
        c = connect(schema)
        c.execute(_PEOPLE)
        body(c, schema)
        c.close()
        admin.execute(f"drop schema {schema} cascade")
        admin.close()

    CASES[name] = run
    return body


def state_of(c: pyodbc.Connection, query: str, *parameters: object) -> str:
    """The SQLSTATE of a query that must fail."""
    try:
        c.execute(query, *parameters).fetchall()
    except pyodbc.Error as error:
        return str(error.args[0])
    raise Mismatch("no error")


def rows_of(cursor: pyodbc.Cursor) -> Iterator[tuple[object, ...]]:
    """Rows as plain tuples."""
    return (tuple(row) for row in cursor.fetchall())


@case
def connects(c: pyodbc.Connection, schema: str) -> None:
    """What a program asks first."""
    equal(c.execute("select current_schema()").fetchval(), schema)
    equal(c.getinfo(pyodbc.SQL_DBMS_NAME), "PostgreSQL")
    equal(c.getinfo(pyodbc.SQL_DBMS_VER).startswith("18"), True)
    equal(c.getinfo(pyodbc.SQL_DATABASE_NAME), os.environ["PGDATABASE"])


@case
def rows_are_fetched(c: pyodbc.Connection, schema: str) -> None:
    """By name and place."""
    cursor = c.execute("select id, name, age from people order by id")
    row = cursor.fetchone()
    equal((row.id, row.name, row[2]), (1, "ann", 41))
    equal(tuple(cursor.fetchone()), (2, "bob", None))
    equal(cursor.fetchone(), None)
    equal([column[0] for column in cursor.description], ["id", "name", "age"])
    equal(cursor.description[1][3], 40)


@case
def parameters_are_bound(c: pyodbc.Connection, schema: str) -> None:
    """Question marks."""
    c.execute("insert into people (name, age) values (?, ?)", "it's ä", None)
    found = c.execute("select name from people where name = ? and age is null", "it's ä")
    equal(found.fetchval(), "it's ä")
    equal(c.execute("select ?::int + ?", 40, 2).fetchval(), 42)


@case
def many_parameters(c: pyodbc.Connection, schema: str) -> None:
    """executemany, one by one and as arrays."""
    cursor = c.cursor()
    insert = "insert into people (name, age) values (?, ?)"
    cursor.executemany(insert, [(f"p{n}", n) for n in range(20)])
    cursor.fast_executemany = True
    cursor.executemany(insert, [(f"q{n}", n) for n in range(20)])
    equal(cursor.execute("select count(*) from people").fetchval(), 42)


@case
def types(c: pyodbc.Connection, schema: str) -> None:
    """Values that the driver converts."""
    row = c.execute(
        "select 1::int2, 5000000000::int8, 2.5::float8, 1.50::numeric(5, 2), date '2024-02-29',"
        " timestamp '2024-02-29 01:02:03.000004', time '01:02:03', '\\x00ff'::bytea, 'x'::text"
    ).fetchone()
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
    equal(tuple(row)[:4], (1, 5_000_000_000, 2.5, decimal.Decimal("1.50")))
    equal(tuple(row)[4:7], (moment.date(), moment, datetime.time(1, 2, 3)))
    equal(tuple(row)[7:], (b"\x00\xff", "x"))


@case
def types_of_parameters(c: pyodbc.Connection, schema: str) -> None:
    """Values that a program sends."""
    c.execute("create table t (d date, z timestamp, n numeric(10, 2), b bytea, f float8, u uuid)")
    row = (
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 1, 2, 3),
        decimal.Decimal("-1.50"),
        b"\x00\xff",
        2.5,
        str(uuid.UUID(int=7)),
    )
    c.execute("insert into t values (?, ?, ?, ?, ?, ?)", *row)
    equal(tuple(c.execute("select * from t").fetchone()), row)


@case
def booleans(c: pyodbc.Connection, schema: str) -> None:
    """As characters, and as bits."""
    equal(c.execute("select true").fetchval(), "1")
    bits = connect(schema, BoolsAsChar="0")
    equal(bits.execute("select true, ?::bool", False).fetchone()[0], True)
    bits.close()


@case
def transactions(c: pyodbc.Connection, schema: str) -> None:
    """Commit, roll back, and statements after an error."""
    c.autocommit = False
    c.execute("insert into people (name) values ('zoe')")
    c.commit()
    c.execute("delete from people")
    c.rollback()
    equal(c.execute("select count(*) from people").fetchval(), 3)
    c.rollback()
    c.autocommit = True


@case
def errors_roll_back_a_statement(c: pyodbc.Connection, schema: str) -> None:
    """The driver's savepoints (Protocol 7.4-2)."""
    other = connect(schema, Protocol="7.4-2")
    other.autocommit = False
    other.execute("insert into people (name) values ('zoe')")
    equal(state_of(other, "insert into people (name) values ('ann')"), "23505")
    other.execute("insert into people (name) values ('yan')")
    other.commit()
    other.close()
    equal(c.execute("select count(*) from people").fetchval(), 4)


@case
def errors_have_states(c: pyodbc.Connection, schema: str) -> None:
    """SQLSTATE as ODBC has it, and the server's text."""
    equal(state_of(c, "select * from nowhere"), "42P01")
    equal(state_of(c, "selec 1"), "42601")
    equal(state_of(c, "select 1 / 0"), "22012")
    equal(state_of(c, "insert into people (name) values (?)", None), "23502")
    try:
        c.execute("insert into people (name) values ('ann')")
    except pyodbc.IntegrityError as error:
        equal("Key (name)=(ann) already exists." in error.args[1], True)


@case
def tables_are_listed(c: pyodbc.Connection, schema: str) -> None:
    """SQLTables."""
    c.execute("create view adults as select * from people where age > 17")
    found = [(row.table_name, row.table_type) for row in c.cursor().tables(schema=schema)]
    equal(sorted(found), [("adults", "VIEW"), ("people", "TABLE")])


@case
def columns_are_listed(c: pyodbc.Connection, schema: str) -> None:
    """SQLColumns."""
    found = list(c.cursor().columns(table="people", schema=schema))
    equal([row.column_name for row in found], ["id", "name", "age"])
    equal([row.type_name for row in found], ["int4", "varchar", "int4"])
    equal([row.nullable for row in found], [0, 0, 1])
    equal(found[1].column_size, 40)


@case
def keys_are_listed(c: pyodbc.Connection, schema: str) -> None:
    """SQLPrimaryKeys, SQLForeignKeys."""
    c.execute("create table pets (id int, owner int references people (id) on delete cascade)")
    found = list(c.cursor().primaryKeys("people", schema=schema))
    equal([(row.column_name, row.pk_name) for row in found], [("id", "people_pkey")])
    found = list(c.cursor().foreignKeys(table="people", schema=schema))
    equal([(row.fktable_name, row.fkcolumn_name) for row in found], [("pets", "owner")])


@case
def indexes_are_listed(c: pyodbc.Connection, schema: str) -> None:
    """SQLStatistics."""
    c.execute("create index people_age on people (age)")
    found = {row.index_name for row in c.cursor().statistics("people", schema=schema)}
    equal(found - {None}, {"people_pkey", "people_name_key", "people_age"})


@case
def types_are_listed(c: pyodbc.Connection, schema: str) -> None:
    """SQLGetTypeInfo."""
    found = list(c.cursor().getTypeInfo(pyodbc.SQL_INTEGER))
    equal("int4" in {row.type_name for row in found}, True)


@case
def cursors_of_the_server(c: pyodbc.Connection, schema: str) -> None:
    """UseDeclareFetch: rows come in parts."""
    other = connect(schema, UseDeclareFetch="1", Fetch="100")
    cursor = other.execute("select g from generate_series(1, 1050) g")
    equal(sum(row[0] for row in cursor), 551_775)
    other.close()


@case
def prepared_on_the_client(c: pyodbc.Connection, schema: str) -> None:
    """UseServerSidePrepare=0."""
    other = connect(schema, UseServerSidePrepare="0")
    equal(other.execute("select ?::text, ?::int", "it's", 3).fetchone()[0], "it's")
    other.close()


@case
def several_results(c: pyodbc.Connection, schema: str) -> None:
    """Statements at once."""
    cursor = c.execute("select 1; select 2")
    equal((cursor.fetchval(), cursor.nextset(), cursor.fetchval()), (1, True, 2))


@case
def rows_are_counted(c: pyodbc.Connection, schema: str) -> None:
    """SQLRowCount."""
    equal(c.execute("update people set age = 1").rowcount, 2)
    equal(c.execute("delete from people where id = ?", 1).rowcount, 1)


@case
def escapes_of_odbc(c: pyodbc.Connection, schema: str) -> None:
    """{fn ..}, {d ..}, {ts ..}."""
    row = c.execute("select {fn ucase('a')}, {d '2024-02-29'}, {fn length('abc')}").fetchone()
    equal((row[0], str(row[1]), row[2]), ("A", "2024-02-29", 3))


def _version() -> str:
    c = connect()
    found = str(c.getinfo(pyodbc.SQL_DRIVER_VER))
    c.close()
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    run_all("psqlodbc", _version(), CASES)
