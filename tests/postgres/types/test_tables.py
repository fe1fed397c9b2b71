"""Columns of every type: stored, read back by drivers in text and binary, by COPY, from files."""

import io
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from tests.support.servers import meridian

Connection = psycopg.Connection[tuple[Any, ...]]
COLUMNS = (
    ("i", "int[]"), ("l", "int8[]"), ("t", "text[]"), ("n", "numeric(10,2)[]"), ("b", "bool[]"),
    ("d", "date[]"), ("ts", "timestamp[]"), ("tz", "timestamptz[]"), ("u", "uuid[]"),
    ("f", "float8[]"), ("v", "varchar(3)[]"), ("by", "bytea[]"), ("j", "jsonb"), ("js", "json"),
    ("ja", "jsonb[]"), ("iv", "interval"), ("iva", "interval[]"), ("nm", "name"), ("o", "oid"),
    ("tt", "timetz"), ("tta", "timetz[]"),
    ("ch", '"char"'), ("cha", '"char"[]'),
)  # fmt: skip
ROW = (
    "{1,NULL,3}", "{9223372036854775807}", '{a,"b c",NULL,""}', "{1.50,-2.25}", "{t,f}",
    "{2024-02-29,NULL}", '{"2024-02-29 23:59:59.5"}', '{"2024-02-29 10:00:00+00"}',
    "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "{1.5,NaN,-Infinity}", "{abc}", '{"\\\\x00ff"}',
    '{"a": [1, 2.50], "b": null}', '{"b" : 1,"b":2}', '{"{\\"a\\": 1}",2,NULL}',
    "1 year 2 mons -3 days +04:05:06.789", '{"1 day",NULL,-00:00:01}', "pg", "4294967295",
    "10:00:00.5-05:30", "{10:00:00+02,NULL}", "q", '{x,y,NULL}',
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory = tmp_path_factory.mktemp("types")
    with meridian(directory, ("--spark-master", "none", "--set", "inline_bytes_max=4096")) as run:
        yield run, directory


@pytest.fixture
def connection(server: Any) -> Iterator[Connection]:
    with psycopg.connect(server[0].dsn, autocommit=True) as connection:
        connection.execute("set timezone = 'UTC'")
        yield connection


def test_arrays_of_every_type_come_back(connection: Connection) -> None:
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS)
    connection.execute(f"create table arrays (id int primary key, {columns})".encode())
    marks = ", ".join(["%s"] * len(ROW))
    connection.execute(f"insert into arrays values (1, {marks})".encode(), ROW)
    connection.execute("insert into arrays (id) values (2)")
    names = ", ".join(name for name, _ in COLUMNS)
    texts = ", ".join(f"{name}::text" for name, _ in COLUMNS)
    (shown,) = connection.execute(f"select {texts} from arrays where id = 1".encode()).fetchall()
    assert shown == ROW
    in_text = connection.execute(f"select {names} from arrays order by id".encode()).fetchall()
    binary = connection.cursor(binary=True)
    in_binary = binary.execute(f"select {names} from arrays order by id".encode()).fetchall()
    assert repr(in_text) == repr(in_binary)
    assert in_text[1] == (None,) * len(COLUMNS)
    # What was read goes back in as parameters, in binary.
    given = [
        at for at, (_, type_) in enumerate(COLUMNS) if not type_.startswith(("json", "interval"))
    ]
    names = ", ".join(COLUMNS[at][0] for at in given)
    texts = ", ".join(f"{COLUMNS[at][0]}::text" for at in given)
    marks = ", ".join(["%b"] * len(given))
    values = [in_binary[0][at] for at in given]
    connection.execute(f"insert into arrays (id, {names}) values (3, {marks})".encode(), values)
    found = connection.execute(f"select {texts} from arrays where id = 3".encode()).fetchone()
    assert found == tuple(ROW[at] for at in given)


def test_a_list_of_keys_as_one_parameter(connection: Connection) -> None:
    connection.execute("create table keys (id int primary key, name text, u uuid)")
    connection.execute(
        "insert into keys select x, 'n' || x, null from (values (1),(2),(3),(4)) v(x)"
    )
    for cursor in (connection.cursor(), connection.cursor(binary=True)):
        found = cursor.execute("select id from keys where id = any(%s) order by 1", ([1, 3, 9],))
        assert found.fetchall() == [(1,), (3,)]
        found = cursor.execute("select id from keys where name = any(%s) order by 1", (["n2"],))
        assert found.fetchall() == [(2,)]
        found = cursor.execute("select id from keys where id <> all(%s) order by 1", ([1, 3],))
        assert found.fetchall() == [(2,), (4,)]
        assert cursor.execute("select id from keys where id = any(%s)", ([],)).fetchall() == []
        assert cursor.execute("delete from keys where id = any(%s)", ([9],)).rowcount == 0


def test_copy_of_arrays(connection: Connection) -> None:
    connection.execute("create table copied (a int[], b text[])")
    text = '{1,NULL}\t{a,"b c"}\n\\N\t{}\n'
    with connection.cursor().copy("copy copied from stdin") as copy:
        copy.write(text)
    out = io.BytesIO()
    with connection.cursor().copy("copy copied to stdout") as copy:
        for data in copy:
            out.write(data)
    assert out.getvalue().decode() == text
    refused = pytest.raises(psycopg.errors.InvalidTextRepresentation)
    with refused, connection.cursor().copy("copy copied from stdin") as copy:
        copy.write("{1\t{}\n")


def test_digits_of_seconds(connection: Connection) -> None:
    """However a value comes into a column, it has the digits and fields of the column."""
    connection.execute(
        "create table digits (a timestamp(3), b timestamptz(0), c time(1), d interval hour)"
    )
    copied = (
        "2024-01-01 00:00:00.0005\t1999-12-31 23:59:59.5+00\t10:00:00.25\t5\n"
        "1999-12-31 23:59:59.9995\t\\N\t22:59:59.99\t90 min\n"
    )
    with connection.cursor().copy("copy digits from stdin") as copy:
        copy.write(copied)
    row = ("2024-01-01 00:00:00.0005", "1999-12-31 23:59:59.5+00", "10:00:00.25", "5")
    connection.execute("insert into digits values (%s, %s, %s, %s)", row)
    # Not as a literal: a parameter's bare number is seconds.
    given = connection.execute("select a, b, c, d from digits").fetchall()
    connection.execute("insert into digits values (%b, %b, %b, %b)", given[0])
    texts = "select a::text, b::text, c::text, d::text from digits order by d, a"
    assert connection.execute(texts.encode()).fetchall() == [
        ("2024-01-01 00:00:00.001", "1999-12-31 23:59:59+00", "10:00:00.3", "00:00:00"),
        ("1999-12-31 23:59:59.999", None, "23:00:00", "01:00:00"),
        ("2024-01-01 00:00:00.001", "1999-12-31 23:59:59+00", "10:00:00.3", "05:00:00"),
        ("2024-01-01 00:00:00.001", "1999-12-31 23:59:59+00", "10:00:00.3", "05:00:00"),
    ]


def test_a_default_whose_cast_is_no_constant(connection: Connection) -> None:
    connection.execute("create table clocks (id int, t timetz default '10:00+02')")
    connection.execute("insert into clocks values (1)")
    connection.execute("alter table clocks alter column t type time")
    connection.execute("insert into clocks values (2)")
    connection.execute("alter table clocks alter column t type timetz")
    connection.execute("insert into clocks values (3)")
    found = connection.execute("select t::text from clocks order by id").fetchall()
    # The default is what was written, cast from its own type, as in PostgreSQL.
    assert found == [("10:00:00+00",), ("10:00:00+00",), ("10:00:00+02",)]


def test_files_hold_lists(server: Any, connection: Connection) -> None:
    connection.execute("create table filed (id int, tags text[], days date[])")
    connection.execute("insert into filed values (1, '{a,b}', '{2024-01-01}'), (2, null, '{}')")
    for n in range(3):
        # Large enough to become a file.
        connection.execute("insert into filed values (%s, %s, null)", (n + 3, ["x" * 5000]))
    files = [path for path in server[1].rglob("*.parquet") if "tags" in pq.read_schema(path).names]
    assert files
    assert str(pq.read_schema(files[0]).field("tags").type).startswith("list<element: string")
    rows = "select id, cardinality(tags), days from filed order by id"
    assert len(connection.execute(rows.encode()).fetchall()) == 5
    connection.execute("update filed set tags = array_append(tags, 'new') where id = 3")
    connection.execute("delete from filed where 'a' = any(tags)")
    found = connection.execute("select id, cardinality(tags) from filed order by id").fetchall()
    assert found == [(2, None), (3, 2), (4, 1), (5, 1)]
    assert connection.execute("select tags[2] from filed where id = 3").fetchone() == ("new",)
    grouped = "select days, count(*) from filed group by days order by 1"
    assert connection.execute(grouped.encode()).fetchall() == [([], 1), (None, 3)]


def test_intervals_and_json_in_files(server: Any, connection: Connection) -> None:
    connection.execute("create table spans (id int, i interval, j jsonb)")
    values = [("1 mon", '{"a": 1}'), ("30 days", '{"a": 1.0}'), ("29 days", "[]"), (None, None)]
    for number, (span, value) in enumerate(values):
        connection.execute("insert into spans values (%s, %s, %s)", (number, span, value))
    connection.execute("insert into spans select id + 10, i, j from spans, (values (1)) v(x)")
    for n in range(2):
        # Large enough to become a file.
        connection.execute("insert into spans values (%s, null, %s)", (n + 20, f'"{"x" * 5000}"'))
    order = "select id from spans where id < 20 order by i desc nulls last, id"
    for engine in ("local", "spark"):
        connection.execute(f"set engine = {engine}".encode())
        found = [row[0] for row in connection.execute(order.encode()).fetchall()]
        assert found == [0, 1, 10, 11, 2, 12, 3, 13]
        grouped = "select count(*) from spans where id < 20 group by i order by 1"
        assert connection.execute(grouped.encode()).fetchall() == [(2,), (2,), (4,)]
        grouped = "select count(*) from spans where id < 20 group by j order by 1"
        assert connection.execute(grouped.encode()).fetchall() == [(2,), (2,), (4,)]
        (a,) = connection.execute("select count(*) from spans where j ->> 'a' = '1.0'").fetchall()
        assert a == (2,)
    connection.execute(
        "update spans set i = i + interval '1 day', j = j || '{\"b\": 2}' where id = 0"
    )
    found = connection.execute("select i::text, j::text from spans where id = 0").fetchone()
    assert found == ("1 mon 1 day", '{"a": 1, "b": 2}')
    for text in ("create table k (i interval primary key)", "create table k (j jsonb unique)"):
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute(text.encode())


def test_a_list_of_keys_is_a_list_of_rows(connection: Connection, server: Any) -> None:
    """Two that change other rows, each by a list, are in nobody's way."""
    connection.execute("create table counted (id int primary key, n int)")
    connection.execute("insert into counted select x, 0 from (values (1),(2),(3),(4)) v(x)")
    update = "update counted set n = n + 1 where id = any(%s)"
    with psycopg.connect(server[0].dsn) as first, psycopg.connect(server[0].dsn) as second:
        for other in (first, second):
            other.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        first.execute(update, ([1, 2],))
        second.execute(update, ([3, 4],))
        first.commit()
        second.commit()
    found = connection.execute("select sum(n) from counted where id = any('{1,2,3,4}')")
    assert found.fetchone() == (4,)
