"""pg8000: a driver without libpq."""

import datetime
import decimal
import io
import uuid
from typing import Any

import pg8000
import pg8000.dbapi
import pg8000.native
from cases import Cases, address, same

cases = Cases("pg8000", pg8000.__version__)
AT = address()
PLACE: dict[str, Any] = {
    "host": AT["host"], "port": int(AT["port"]), "user": AT["user"],
    "password": AT["password"] or None, "database": AT["database"],
}  # fmt: skip


def _native() -> pg8000.native.Connection:
    return pg8000.native.Connection(**PLACE)


def _failing(state: str, run: Any) -> dict[str, str]:
    try:
        run()
    except pg8000.dbapi.DatabaseError as error:
        same(error.args[0]["C"], state)
        return dict(error.args[0])
    raise AssertionError(f"no error instead of {state}")


@cases.case
def connect_and_ask() -> None:
    with _native() as connection:
        same(connection.run("select :a || 'y'", a="x"), [["xy"]])
        same([c["name"] for c in connection.columns or ()], ["?column?"])
        same(connection.parameter_statuses["server_version"].startswith("18"), True)


@cases.case
def values_round_trip() -> None:
    values: tuple[tuple[str, Any], ...] = (
        ("int4", 5), ("int8", 1 << 40), ("float8", 1.5), ("numeric", decimal.Decimal("1.50")),
        ("bool", True), ("text", "ü'\\"), ("bytea", b"\0\xff"), ("uuid", uuid.UUID(int=4)),
        ("date", datetime.date(2024, 2, 29)), ("time", datetime.time(1, 2, 3, 4)),
        ("timestamp", datetime.datetime(2024, 1, 1, 2, 3, 4, 5)), ("jsonb", {"a": [1, None]}),
        ("timestamptz", datetime.datetime(2024, 1, 1, 2, 3, tzinfo=datetime.UTC)),
        ("interval", datetime.timedelta(days=2, seconds=5)), ("int4[]", [1, None]),
        ("text[]", ["a", "b,c", None]), ("int4", None),
    )  # fmt: skip
    with _native() as connection:
        for kind, value in values:
            same((kind, connection.run(f"select cast(:v as {kind})", v=value)), (kind, [[value]]))


@cases.case
def transactions() -> None:
    with _native() as connection:
        connection.run("drop table if exists p8_tx")
        connection.run("create table p8_tx (id int primary key)")
        connection.run("start transaction")
        connection.run("insert into p8_tx values (1)")
        connection.run("rollback")
        same(connection.run("select count(*) from p8_tx"), [[0]])


@cases.case
def dbapi_with_autocommit_and_rowcount() -> None:
    connection = pg8000.dbapi.connect(**PLACE)
    cursor = connection.cursor()
    cursor.execute("drop table if exists p8_db")
    cursor.execute("create table p8_db (id int, v text)")
    cursor.executemany("insert into p8_db values (%s, %s)", [(1, "a"), (2, "b"), (3, None)])
    same(cursor.rowcount, 3)
    connection.commit()
    cursor.execute("select * from p8_db order by id")
    same(
        (list(cursor.fetchone()), [list(row) for row in cursor.fetchmany(1)]),
        ([1, "a"], [[2, "b"]]),
    )
    cursor.execute("insert into p8_db values (4, 'x')")
    connection.rollback()
    connection.autocommit = True
    cursor.execute("select count(*) from p8_db")
    same(list(cursor.fetchone()), [3])
    connection.close()


@cases.case
def copy_in_and_out() -> None:
    with _native() as connection:
        connection.run("drop table if exists p8_copy")
        connection.run("create table p8_copy (id int, v text)")
        stream = io.BytesIO(b"1,a\n2,\n")
        connection.run("copy p8_copy from stdin with (format csv)", stream=stream)
        out = io.BytesIO()
        connection.run("copy (select * from p8_copy order by id) to stdout", stream=out)
        same(out.getvalue(), b"1\ta\n2\t\\N\n")


@cases.case
def statements_are_prepared() -> None:
    with _native() as connection:
        statement = connection.prepare("select cast(:n as int) * 2")
        same([statement.run(n=n) for n in (1, 2, 3)], [[[2]], [[4]], [[6]]])
        statement.close()


@cases.case
def errors_name_what_they_are_about() -> None:
    with _native() as connection:
        connection.run("drop table if exists p8_err")
        connection.run("create table p8_err (id int primary key)")
        connection.run("insert into p8_err values (1)")
        error = _failing("23505", lambda: connection.run("insert into p8_err values (1)"))
        same((error["t"], error["n"], error["s"]), ("p8_err", "p8_err_pkey", "public"))
        _failing("42601", lambda: connection.run("selec 1"))
        same(connection.run("select 1"), [[1]])


@cases.case
def notifications_and_notices() -> None:
    with _native() as one, _native() as other:
        one.run("listen p8_channel")
        other.run("notify p8_channel, 'hello'")
        one.run("select 1")
        same([(n[1], n[2]) for n in one.notifications], [("p8_channel", "hello")])
        one.run("drop table if exists p8_not_there")
        same(one.notices[0][b"C"], b"00000")


@cases.case
def lists_and_in() -> None:
    with _native() as connection:
        found = connection.run(
            "select i from generate_series(1, 9) i where i = any(cast(:l as int[]))", l=[2, 5]
        )
        same(found, [[2], [5]])
        found = connection.run("select unnest(cast(:a as text[]))", a=["x", "y"])
        same(found, [["x"], ["y"]])


@cases.case
def several_statements_at_once() -> None:
    with _native() as connection:
        connection.run("drop table if exists p8_s; create table p8_s (n int);")
        connection.run("insert into p8_s values (1); insert into p8_s values (2)")
        same(connection.run("select sum(n) from p8_s"), [[3]])


if __name__ == "__main__":
    cases.run()
