"""psycopg 3: values, statements, COPY, transactions, cursors."""

import datetime
import decimal
import json
import uuid
from typing import Any

import psycopg
from cases import Cases, address, fails, same, url
from psycopg import sql
from psycopg.rows import class_row, dict_row, namedtuple_row
from psycopg.types.json import Json, Jsonb

cases = Cases("psycopg", psycopg.__version__)


def _connect(**options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(url(), **options)


def _table(name: str, columns: str) -> None:
    with _connect(autocommit=True) as connection:
        connection.execute(f"drop table if exists {name} cascade")
        connection.execute(f"create table {name} ({columns})")


@cases.case
def connect_in_every_form() -> None:
    at = address()
    words = f"host={at['host']} port={at['port']} user={at['user']} dbname={at['database']}"
    for dsn in (url(), words, "", f"{url()}?application_name=suite&connect_timeout=5"):
        with psycopg.connect(dsn) as connection:
            same(connection.execute("select 1").fetchone(), (1,))
    with psycopg.connect(host=at["host"], port=int(at["port"]), user=at["user"]) as connection:
        same(connection.info.dbname, at["user"])


@cases.case
def what_the_connection_knows() -> None:
    with psycopg.connect(url(), application_name="suite") as connection:
        info = connection.info
        same(info.server_version // 10000, 18)
        same((info.encoding, info.dbname), ("utf-8", address()["database"]))
        same(info.parameter_status("application_name"), "suite")
        same(info.parameter_status("standard_conforming_strings"), "on")
        same(info.parameter_status("integer_datetimes"), "on")
        pid = connection.execute("select pg_backend_pid()").fetchone()
        same(pid, (info.backend_pid,))


VALUES: tuple[tuple[str, Any], ...] = (
    ("int2", -7),
    ("int4", 70000),
    ("int8", 1 << 40),
    ("float8", 1.5),
    ("numeric", decimal.Decimal("12345678901234567890.125")),
    ("bool", True),
    ("text", "zażółć ' \\ \n"),
    ("varchar(10)", "abc"),
    ("bytea", b"\x00\xff'\\"),
    ("date", datetime.date(2024, 2, 29)),
    ("time", datetime.time(12, 34, 56, 789)),
    ("timestamp", datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
    ("timestamptz", datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.UTC)),
    ("interval", datetime.timedelta(days=3, seconds=7, microseconds=9)),
    ("uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    ("int4[]", [1, None, 3]),
    ("text[]", ["a", "b,c", None, 'd"e']),
)


@cases.case
def values_round_trip_in_text_and_binary() -> None:
    with _connect() as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            for kind, value in VALUES:
                found = cursor.execute(f"select %s::{kind}", (value,)).fetchone()
                same((kind, binary, found), (kind, binary, (value,)))


@cases.case
def values_round_trip_through_a_table() -> None:
    columns = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(VALUES))
    _table("psy_values", columns)
    marks = ", ".join(["%s"] * len(VALUES))
    with _connect() as connection:
        row = tuple(value for _, value in VALUES)
        connection.execute(f"insert into psy_values values ({marks})", row)
        connection.execute(f"insert into psy_values values ({marks})", [None] * len(row))
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            found = cursor.execute("select * from psy_values order by c0").fetchall()
            same(found, [row, (None,) * len(row)])


@cases.case
def arrays_needs_several_dimensions() -> None:
    with _connect() as connection:
        found = connection.execute("select %s::int4[]", ([[1, 2], [3, 4]],)).fetchone()
        same(found, ([[1, 2], [3, 4]],))


@cases.case
def json_goes_in_and_out() -> None:
    _table("psy_json", "id int primary key, a json, b jsonb")
    value = {"k": [1, 2.5, None, {"x": "ü"}], "z": True}
    with _connect() as connection:
        connection.execute("insert into psy_json values (1, %s, %s)", (Json(value), Jsonb(value)))
        same(connection.execute("select a, b from psy_json").fetchone(), (value, value))
        got = connection.execute("select b -> 'k' ->> 0, b @> %s from psy_json", (Jsonb({"z": 1}),))
        same(got.fetchone(), ("1", False))
        text = connection.execute("select b::text from psy_json").fetchone()
        same(json.loads(text[0] if text else ""), value)


@cases.case
def enums_are_registered() -> None:
    import enum

    from psycopg.types.enum import EnumInfo, register_enum

    class Mood(enum.Enum):
        SAD = "sad"
        GLAD = "glad"

    with _connect(autocommit=True) as connection:
        connection.execute("drop table if exists psy_mood")
        connection.execute("drop type if exists psy_moods")
        connection.execute("create type psy_moods as enum ('sad', 'glad')")
        info = EnumInfo.fetch(connection, "psy_moods")
        assert info is not None
        same(list(info.labels), ["sad", "glad"])
        register_enum(info, connection, Mood, mapping={m: m.value for m in Mood})
        connection.execute("create table psy_mood (m psy_moods)")
        connection.execute("insert into psy_mood values (%s), (%s)", (Mood.GLAD, Mood.SAD))
        found = connection.execute("select m from psy_mood order by m").fetchall()
        same(found, [(Mood.SAD,), (Mood.GLAD,)])
        same(connection.execute("select array_agg(m) from psy_mood").fetchone()[0][0], Mood.GLAD)


@cases.case
def composites_are_fetched_needs_composite_types() -> None:
    from psycopg.types.composite import CompositeInfo, register_composite

    with _connect(autocommit=True) as connection:
        connection.execute("drop type if exists psy_card")
        connection.execute("create type psy_card as (value int8, suit text)")
        info = CompositeInfo.fetch(connection, "psy_card")
        assert info is not None
        register_composite(info, connection)
        found = connection.execute("select '(8,hearts)'::psy_card").fetchone()
        same(tuple(found[0] if found else ()), (8, "hearts"))


@cases.case
def rows_of_every_shape() -> None:
    class Point:
        def __init__(self, x: int, y: int) -> None:
            self.sum = x + y

    with _connect() as connection:
        query = "select 1 as x, 2 as y"
        same(connection.cursor(row_factory=dict_row).execute(query).fetchone(), {"x": 1, "y": 2})
        same(connection.cursor(row_factory=namedtuple_row).execute(query).fetchone().y, 2)
        same(connection.cursor(row_factory=class_row(Point)).execute(query).fetchone().sum, 3)


@cases.case
def descriptions_of_columns() -> None:
    with _connect() as connection:
        cursor = connection.execute("select 1::int8 a, 'x'::varchar(5) b, 1.5::numeric(10,2) c")
        found = [(c.name, c.type_code, c.precision, c.scale) for c in cursor.description or ()]
        same(found, [("a", 20, None, None), ("b", 1043, None, None), ("c", 1700, 10, 2)])
        same(cursor.description[1].display_size if cursor.description else 0, 5)


@cases.case
def executemany_returns_rows() -> None:
    _table("psy_many", "id int generated always as identity primary key, v text")
    with _connect() as connection:
        cursor = connection.cursor()
        cursor.executemany("insert into psy_many (v) values (%s)", [(str(i),) for i in range(500)])
        same(cursor.rowcount, 500)
        statement = "insert into psy_many (v) values (%s) returning id"
        cursor.executemany(statement, [("a",), ("b",)], returning=True)
        ids = [cursor.fetchone()]
        while cursor.nextset():
            ids.append(cursor.fetchone())
        same(ids, [(501,), (502,)])


@cases.case
def copy_text_in_and_out() -> None:
    _table("psy_copy", "id int, v text, at timestamptz")
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    with _connect() as connection:
        cursor = connection.cursor()
        with cursor.copy("copy psy_copy from stdin") as copy:
            for i in range(1000):
                copy.write_row((i, None if i % 7 == 0 else f"v\t{i}", at))
        same(cursor.rowcount, 1000)
        with cursor.copy("copy (select * from psy_copy where id < 3 order by id) to stdout") as out:
            out.set_types(["int4", "text", "timestamptz"])
            rows = list(out.rows())
        same(rows, [(0, None, at), (1, "v\t1", at), (2, "v\t2", at)])


@cases.case
def copy_binary_in_and_out() -> None:
    _table("psy_copyb", "id int, v text, n numeric, b bytea")
    row = (7, "x", decimal.Decimal("1.50"), b"\0\1")
    with _connect() as connection:
        cursor = connection.cursor()
        with cursor.copy("copy psy_copyb from stdin (format binary)") as copy:
            copy.set_types(["int4", "text", "numeric", "bytea"])
            copy.write_row(row)
            copy.write_row((8, None, None, None))
        with cursor.copy("copy psy_copyb to stdout (format binary)") as out:
            out.set_types(["int4", "text", "numeric", "bytea"])
            same(sorted(out.rows()), [row, (8, None, None, None)])


@cases.case
def copy_that_fails_leaves_nothing() -> None:
    _table("psy_copyf", "id int primary key")
    with _connect() as connection:
        cursor = connection.cursor()
        with fails("22P02", psycopg.Error), cursor.copy("copy psy_copyf from stdin") as copy:
            copy.write("1\nx\n")
        connection.rollback()
        try:
            with cursor.copy("copy psy_copyf from stdin") as copy:
                copy.write("1\n")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        connection.rollback()
        same(connection.execute("select count(*) from psy_copyf").fetchone(), (0,))


@cases.case
def copy_csv_between_tables() -> None:
    _table("psy_c1", "id int, v text")
    _table("psy_c2", "id int, v text")
    with _connect() as one, _connect() as other:
        one.execute("insert into psy_c1 values (1, 'a,\"b'), (2, null), (3, '')")
        with (
            one.cursor().copy("copy psy_c1 to stdout (format csv, header)") as out,
            other.cursor().copy("copy psy_c2 from stdin (format csv, header)") as into,
        ):
            for data in out:
                into.write(data)
        found = other.execute("select * from psy_c2 order by id").fetchall()
        same(found, [(1, 'a,"b'), (2, None), (3, "")])


@cases.case
def transactions_and_savepoints() -> None:
    _table("psy_tx", "id int primary key")
    with _connect() as connection:
        with connection.transaction():
            connection.execute("insert into psy_tx values (1)")
            with fails("23505", psycopg.errors.UniqueViolation), connection.transaction():
                connection.execute("insert into psy_tx values (2)")
                connection.execute("insert into psy_tx values (1)")
            with connection.transaction(force_rollback=True):
                connection.execute("insert into psy_tx values (3)")
            connection.execute("insert into psy_tx values (4)")
        found = connection.execute("select id from psy_tx order by id").fetchall()
        same(found, [(1,), (4,)])


@cases.case
def levels_and_read_only() -> None:
    with _connect() as connection:
        for level in psycopg.IsolationLevel:
            connection.isolation_level = level
            shown = connection.execute("show transaction_isolation").fetchone()
            assert shown is not None
            same(shown[0], level.name.lower().replace("_", " "))
            connection.rollback()
        connection.isolation_level = None
        connection.read_only = True
        with fails("25006", psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("create table psy_never (id int)")


@cases.case
def two_phase_commit_needs_prepared_transactions() -> None:
    _table("psy_tpc", "id int")
    with _connect() as connection:
        xid = connection.xid(1, "psy-gid", "branch")
        connection.tpc_begin(xid)
        connection.execute("insert into psy_tpc values (1)")
        connection.tpc_prepare()
        connection.tpc_commit()
        same(connection.execute("select * from psy_tpc").fetchall(), [(1,)])


@cases.case
def errors_name_what_they_are_about() -> None:
    _table("psy_err", "id int primary key, n int not null constraint psy_pos check (n > 0)")
    statements = (
        ("insert into psy_err values (1, 0)", "23514", "psy_err", None, "psy_pos"),
        ("insert into psy_err values (1, null)", "23502", "psy_err", "n", None),
        ("insert into psy_err values (1, 1), (1, 1)", "23505", "psy_err", None, "psy_err_pkey"),
    )
    with _connect(autocommit=True) as connection:
        for statement, state, table, column, constraint in statements:
            with fails(state, psycopg.Error) as found:
                connection.execute(statement)
            diagnostics = found[0].diag  # type: ignore[attr-defined]
            same(
                (diagnostics.schema_name, diagnostics.table_name, diagnostics.column_name),
                ("public", table, column),
            )
            same((diagnostics.constraint_name, diagnostics.severity), (constraint, "ERROR"))
        with fails("42601", psycopg.errors.SyntaxError) as found:
            connection.execute("select from from")
        same(found[0].diag.statement_position, "13")  # type: ignore[attr-defined]


@cases.case
def notices_reach_their_handler() -> None:
    with _connect(autocommit=True) as connection:
        seen: list[str | None] = []
        connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
        connection.execute("drop table if exists psy_not_there")
        same(seen, ['table "psy_not_there" does not exist, skipping'])


@cases.case
def statements_are_prepared() -> None:
    with _connect(prepare_threshold=1, autocommit=True) as connection:
        for value in range(6):
            same(connection.execute("select %s + 1", (value,)).fetchone(), (value + 1,))
        found = connection.execute(
            "select statement, parameter_types::text from pg_prepared_statements", prepare=False
        ).fetchall()
        same(found, [("select $1 + 1", "{smallint}")])


@cases.case
def a_server_cursor_scrolls() -> None:
    with _connect() as connection:
        with connection.cursor("psy_cursor", scrollable=True) as cursor:
            cursor.execute("select * from generate_series(1, 100)")
            same(cursor.fetchmany(2), [(1,), (2,)])
            cursor.scroll(50)
            same(cursor.fetchone(), (53,))
            cursor.scroll(0, mode="absolute")
            same(cursor.fetchone(), (1,))
            same(len(cursor.fetchall()), 99)


@cases.case
def a_cursor_with_hold_outlives_its_transaction() -> None:
    with _connect() as connection:
        cursor = connection.cursor("psy_hold", withhold=True)
        cursor.execute("select generate_series(1, 5)")
        connection.commit()
        same(cursor.fetchall(), [(i,) for i in range(1, 6)])
        cursor.close()


@cases.case
def rows_are_streamed() -> None:
    with _connect() as connection:
        rows = connection.cursor().stream("select generate_series(1, 2000)")
        same(sum(row[0] for row in rows), 2001000)


@cases.case
def statements_are_composed() -> None:
    _table('"psy Odd ""name"', '"a b" int')
    name = sql.Identifier('psy Odd "name')
    with _connect() as connection:
        insert = sql.SQL("insert into {} ({}) values ({})")
        connection.execute(insert.format(name, sql.Identifier("a b"), sql.Literal(3)))
        found = connection.execute(sql.SQL("select * from {}").format(name)).fetchall()
        same(found, [(3,)])


@cases.case
def several_statements_at_once() -> None:
    with _connect() as connection:
        cursor = connection.execute("select 1; select 2; select 3")
        found = [cursor.fetchone()]
        while cursor.nextset():
            found.append(cursor.fetchone())
        same(found, [(1,), (2,), (3,)])


@cases.case
def lists_instead_of_in() -> None:
    _table("psy_any", "id int, v text")
    with _connect() as connection:
        connection.execute("insert into psy_any select i, i::text from generate_series(1, 9) i")
        query = "select id from psy_any where id = any(%s) and v <> all(%s) order by id"
        found = connection.execute(query, ([2, 3, 5], ["3"])).fetchall()
        same(found, [(2,), (5,)])


@cases.case
def rows_are_locked() -> None:
    _table("psy_lock", "id int primary key")
    with _connect() as one, _connect() as other:
        one.execute("insert into psy_lock values (1), (2)")
        one.commit()
        one.execute("select * from psy_lock where id = 1 for update")
        found = other.execute("select id from psy_lock order by id for update skip locked")
        same(found.fetchall(), [(2,)])
        with fails("55P03", psycopg.errors.LockNotAvailable):
            other.execute("select id from psy_lock where id = 1 for update nowait")


@cases.case
def time_zones() -> None:
    with _connect() as connection:
        connection.execute("set time zone 'Europe/Warsaw'")
        found = connection.execute("select '2024-07-01 12:00+00'::timestamptz").fetchone()
        assert found is not None
        same((found[0].utcoffset(), found[0].hour), (datetime.timedelta(hours=2), 14))
        same(connection.execute("select 'NaN'::float8 = 'NaN'").fetchone(), (True,))


@cases.case
def an_infinite_date_is_not_pythons_needs_infinite_dates() -> None:
    with _connect() as connection:
        with fails("", psycopg.DataError):
            connection.execute("select 'infinity'::date").fetchone()
        same(connection.execute("select 'infinity'::date::text").fetchone(), ("infinity",))


@cases.case
def upserts_and_merge() -> None:
    _table("psy_up", "id int primary key, n int")
    with _connect() as connection:
        statement = """insert into psy_up values (%s, %s)
            on conflict (id) do update set n = psy_up.n + excluded.n
            returning n, (old.id is null) as is_new"""
        same(connection.execute(statement, (1, 10)).fetchone(), (10, True))
        same(connection.execute(statement, (1, 5)).fetchone(), (15, False))
        merged = connection.execute("""merge into psy_up t using (values (1, 1), (2, 2)) s (id, n)
            on t.id = s.id when matched then update set n = s.n
            when not matched then insert values (s.id, s.n) returning merge_action(), t.id""")
        same(sorted(merged.fetchall()), [("INSERT", 2), ("UPDATE", 1)])


if __name__ == "__main__":
    cases.run()
