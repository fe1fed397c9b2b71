"""psycopg2."""

import datetime
import decimal
import io
import select
import threading
import uuid
from typing import Any

import psycopg2
import psycopg2.extensions as ext
import psycopg2.extras as extras
import psycopg2.pool
from cases import Cases, address, fails, same, url
from psycopg2 import errors, sql

cases = Cases("psycopg2", psycopg2.__version__.split()[0])


def _connect(**options: Any) -> Any:
    return psycopg2.connect(url(), **options)


def _table(name: str, columns: str) -> None:
    connection = _connect()
    with connection, connection.cursor() as cursor:
        cursor.execute(f"drop table if exists {name} cascade")
        cursor.execute(f"create table {name} ({columns})")
    connection.close()


@cases.case
def connect_and_ask() -> None:
    connection = _connect(application_name="suite")
    same(connection.server_version // 10000, 18)
    same(connection.get_dsn_parameters()["dbname"], address()["database"])
    same(connection.get_parameter_status("server_encoding"), "UTF8")
    cursor = connection.cursor()
    cursor.execute("select current_setting('application_name'), %s", ("ü'\\",))
    same(cursor.fetchone(), ("suite", "ü'\\"))
    connection.close()


@cases.case
def values_round_trip() -> None:
    extras.register_uuid()
    values: list[Any] = [
        1, 1 << 40, 1.5, decimal.Decimal("1.50"), True, None, "ü'\\", datetime.date(2024, 2, 29),
        datetime.time(1, 2, 3), datetime.datetime(2024, 1, 1, 2, 3, 4, 5),
        datetime.timedelta(days=1, seconds=5), uuid.UUID(int=5), [1, 2, None], ["a", "b,"],
    ]  # fmt: skip
    with _connect() as connection, connection.cursor() as cursor:
        for value in values:
            cursor.execute("select %s", (value,))
            same(cursor.fetchone(), (value,))
        cursor.execute("select %s::bytea", (psycopg2.Binary(b"\0\xff"),))
        same(bytes(cursor.fetchone()[0]), b"\0\xff")


@cases.case
def named_parameters_and_rows_as_dicts() -> None:
    with _connect() as connection:
        with connection.cursor(cursor_factory=extras.RealDictCursor) as cursor:
            cursor.execute("select %(a)s::int as x, %(b)s as y", {"a": 1, "b": "z"})
            same(dict(cursor.fetchone()), {"x": 1, "y": "z"})
        with connection.cursor(cursor_factory=extras.NamedTupleCursor) as cursor:
            cursor.execute("select 1 as x")
            same(cursor.fetchone().x, 1)
        with connection.cursor(cursor_factory=extras.DictCursor) as cursor:
            cursor.execute("select 1 as x")
            same(cursor.fetchone()["x"], 1)


@cases.case
def json_and_lists() -> None:
    _table("p2_json", "a jsonb, b json, c text[]")
    value = {"k": [1, None, {"z": "ü"}]}
    with _connect() as connection, connection.cursor() as cursor:
        row = (extras.Json(value), extras.Json(value), ["x", "y"])
        cursor.execute("insert into p2_json values (%s, %s, %s)", row)
        cursor.execute("select a, b, c from p2_json where 'x' = any(c) and c && %s", (["y"],))
        same(cursor.fetchone(), (value, value, ["x", "y"]))
        cursor.execute("select 5 in %s", ((1, 5),))
        same(cursor.fetchone(), (True,))


@cases.case
def execute_values_and_batch() -> None:
    _table("p2_many", "id serial primary key, n int, v text")
    with _connect() as connection, connection.cursor() as cursor:
        rows = [(i, f"v{i}") for i in range(1000)]
        extras.execute_values(cursor, "insert into p2_many (n, v) values %s", rows, page_size=300)
        got = extras.execute_values(
            cursor, "insert into p2_many (n, v) values %s returning id", [(1, "a")], fetch=True
        )
        same(got, [(1001,)])
        extras.execute_batch(cursor, "update p2_many set n = %s where id = %s", [(5, 1), (6, 2)])
        cursor.execute("select count(*), sum(n) from p2_many")
        same(cursor.fetchone(), (1001, 999 * 500 + 1 + 5 - 0 + 6 - 1))
        update = "update p2_many t set v = d.v from (values %s) as d (id, v) where t.id = d.id"
        extras.execute_values(cursor, update, [(1, "one"), (2, "two")])
        same(cursor.rowcount, 2)


@cases.case
def copy_in_and_out() -> None:
    _table("p2_copy", "id int, v text")
    with _connect() as connection, connection.cursor() as cursor:
        cursor.copy_from(io.StringIO("1\ta\n2\t\\N\n"), "p2_copy", columns=("id", "v"))
        same(cursor.rowcount, 2)
        cursor.copy_expert("copy p2_copy from stdin csv header", io.StringIO('id,v\n3,"x,y"\n'))
        out = io.StringIO()
        cursor.copy_to(out, "p2_copy", sep="|", null="-")
        same(sorted(out.getvalue().splitlines()), ["1|a", "2|-", "3|x,y"])
        out = io.StringIO()
        cursor.copy_expert("copy (select v from p2_copy where id = 3) to stdout csv header", out)
        same(out.getvalue(), 'v\n"x,y"\n')


@cases.case
def copy_that_fails() -> None:
    _table("p2_copyf", "id int")
    with _connect() as connection, connection.cursor() as cursor:
        with fails("22P02", errors.InvalidTextRepresentation):
            cursor.copy_from(io.StringIO("1\nx\n"), "p2_copyf")
        connection.rollback()
        cursor.execute("select count(*) from p2_copyf")
        same(cursor.fetchone(), (0,))


@cases.case
def errors_have_states_and_names() -> None:
    _table("p2_err", "id int primary key, n int constraint p2_pos check (n > 0)")
    connection = _connect()
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("insert into p2_err values (1, 1)")
    with fails("23505", errors.UniqueViolation) as found:
        cursor.execute("insert into p2_err values (1, 1)")
    same(found[0].diag.constraint_name, "p2_err_pkey")  # type: ignore[attr-defined]
    same(found[0].diag.message_detail, "Key (id)=(1) already exists.")  # type: ignore[attr-defined]
    with fails("23514", errors.CheckViolation) as found:
        cursor.execute("insert into p2_err values (2, 0)")
    same(found[0].diag.constraint_name, "p2_pos")  # type: ignore[attr-defined]
    with fails("42P01", errors.UndefinedTable):
        cursor.execute("select * from p2_not_there")
    same(psycopg2.errors.lookup("40001"), errors.SerializationFailure)
    connection.close()


@cases.case
def transactions_by_with() -> None:
    _table("p2_tx", "id int primary key")
    connection = _connect()
    with connection, connection.cursor() as cursor:
        cursor.execute("insert into p2_tx values (1)")
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("insert into p2_tx values (2)")
            raise KeyError
    except KeyError:
        pass
    with connection, connection.cursor() as cursor:
        cursor.execute("savepoint a")
        cursor.execute("insert into p2_tx values (3)")
        cursor.execute("rollback to savepoint a")
        cursor.execute("select id from p2_tx")
        same(cursor.fetchall(), [(1,)])
        same(connection.status, ext.STATUS_IN_TRANSACTION)
    same(connection.get_transaction_status(), ext.TRANSACTION_STATUS_IDLE)
    connection.close()


@cases.case
def levels_of_isolation() -> None:
    connection = _connect()
    levels = ((1, "read committed"), (2, "repeatable read"), (3, "serializable"))
    for number, name in levels:
        connection.set_session(isolation_level=number)
        with connection, connection.cursor() as cursor:
            cursor.execute("show transaction_isolation")
            same(cursor.fetchone(), (name,))
    connection.set_session(readonly=True, deferrable=True)
    with fails("25006", errors.ReadOnlySqlTransaction), connection.cursor() as cursor:
        cursor.execute("create table p2_never (id int)")
    connection.close()


@cases.case
def named_cursors_fetch_in_parts() -> None:
    connection = _connect()
    with connection, connection.cursor("p2_named") as cursor:
        cursor.itersize = 100
        cursor.execute("select generate_series(1, 1000)")
        same(sum(row[0] for row in cursor), 500500)
    with connection, connection.cursor("p2_scroll", scrollable=True) as cursor:
        cursor.execute("select generate_series(1, 10)")
        cursor.scroll(5)
        same(cursor.fetchone(), (6,))
        cursor.scroll(-2)
        same(cursor.fetchone(), (5,))
    with connection.cursor("p2_hold", withhold=True) as cursor:
        cursor.execute("select generate_series(1, 3)")
        connection.commit()
        same(len(cursor.fetchall()), 3)
    connection.close()


@cases.case
def notifications_by_polling() -> None:
    one, other = _connect(), _connect()
    for connection in (one, other):
        connection.set_isolation_level(ext.ISOLATION_LEVEL_AUTOCOMMIT)
    one.cursor().execute("listen p2_channel")
    other.cursor().execute("notify p2_channel, 'hello'")
    while not one.notifies:
        select.select([one], [], [], 10)
        one.poll()
    same((one.notifies[0].channel, one.notifies[0].payload), ("p2_channel", "hello"))
    one.close()
    other.close()


@cases.case
def notices_are_kept() -> None:
    connection = _connect()
    with connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists p2_not_there")
    same(connection.notices, ['NOTICE:  table "p2_not_there" does not exist, skipping\n'])
    connection.close()


@cases.case
def a_query_is_cancelled() -> None:
    connection = _connect()
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    with fails("57014", ext.QueryCanceledError), connection.cursor() as cursor:
        cursor.execute("select pg_sleep(20)")
    timer.join()
    connection.close()


@cases.case
def waiting_without_blocking() -> None:
    connection = psycopg2.connect(url(), async_=1)
    extras.wait_select(connection)
    cursor = connection.cursor()
    cursor.execute("select generate_series(1, 3)")
    extras.wait_select(connection)
    same(cursor.fetchall(), [(1,), (2,), (3,)])
    connection.close()


@cases.case
def a_pool() -> None:
    pool = psycopg2.pool.ThreadedConnectionPool(1, 3, url())
    found: list[int] = []

    def work() -> None:
        connection = pool.getconn()
        cursor = connection.cursor()
        cursor.execute("select 1")
        found.append(cursor.fetchone()[0])
        pool.putconn(connection)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(found, [1, 1, 1])
    pool.closeall()


@cases.case
def two_phases_needs_prepared_transactions() -> None:
    _table("p2_tpc", "id int")
    connection = _connect()
    connection.reset()
    connection.tpc_begin(connection.xid(1, "p2", "b"))
    connection.cursor().execute("insert into p2_tpc values (1)")
    connection.tpc_prepare()
    connection.tpc_rollback()
    connection.close()


@cases.case
def reset_gives_back_a_clean_session() -> None:
    connection = _connect()
    cursor = connection.cursor()
    cursor.execute("set work_mem = '7MB'")
    connection.commit()
    connection.reset()
    cursor.execute("show work_mem")
    same(cursor.fetchone() == ("7MB",), False)
    connection.close()


@cases.case
def statements_are_composed() -> None:
    _table('"p2 Odd"', '"a b" int')
    with _connect() as connection, connection.cursor() as cursor:
        fields = sql.SQL(", ").join(map(sql.Identifier, ["a b"]))
        insert = sql.SQL("insert into {} ({}) values (%s)").format(sql.Identifier("p2 Odd"), fields)
        cursor.execute(insert, (4,))
        cursor.execute(sql.SQL("select {} from {}").format(fields, sql.Identifier("p2 Odd")))
        same(cursor.fetchall(), [(4,)])
        same(cursor.mogrify("%s %s", ("it's", None)), b"'it''s' NULL")


@cases.case
def columns_are_described() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 1 a, 'x'::varchar(7) b, 1.5::numeric(9,3) c, now() d")
        found = [(c.name, c.type_code, c.precision, c.scale) for c in cursor.description]
        same(found, [("a", 23, None, None), ("b", 1043, None, None), ("c", 1700, 9, 3),
                     ("d", 1184, None, None)])  # fmt: skip


@cases.case
def composites_needs_composite_types() -> None:
    connection = _connect()
    with connection, connection.cursor() as cursor:
        cursor.execute("drop type if exists p2_card")
        cursor.execute("create type p2_card as (value int, suit text)")
        extras.register_composite("p2_card", cursor)
        cursor.execute("select (8, 'hearts')::p2_card")
        same(tuple(cursor.fetchone()[0]), (8, "hearts"))
    connection.close()


if __name__ == "__main__":
    cases.run()
