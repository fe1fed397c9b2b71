"""ADBC's driver for PostgreSQL: results as Arrow, by binary COPY."""

import datetime
import decimal
from typing import Any

import adbc_driver_postgresql
import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from cases import Cases, same, url

cases = Cases("adbc", adbc_driver_postgresql.__version__)


def _connect() -> Any:
    return adbc.connect(url())


def _rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": pa.array(["a", None, "ü"]),
            "f": pa.array([1.5, None, -2.0]),
            "b": pa.array([True, None, False]),
            "d": pa.array([datetime.date(2024, 2, 29), None, None]),
            "at": pa.array([datetime.datetime(2024, 1, 1), None, None], pa.timestamp("us")),
            "raw": pa.array([b"\0", None, b""]),
        }
    )


@cases.case
def a_query_is_arrow() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 1::int4 a, 'x' b, 1.5::float8 c, null::int8 d, true e")
        table = cursor.fetch_arrow_table()
        same(table.to_pylist(), [{"a": 1, "b": "x", "c": 1.5, "d": None, "e": True}])
        same(table.schema.field("a").type, pa.int32())


@cases.case
def types_of_results() -> None:
    query = """select '2024-02-29'::date, '12:30'::time, '2024-01-01 01:02:03'::timestamp,
        '2024-01-01 00:00+00'::timestamptz, '\\x00ff'::bytea, array[1,2], array['a',null],
        '{"a": 1}'::jsonb::text, 5::int2, 1.25::float4"""
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        found = cursor.fetchone()
        same(found[:3], (datetime.date(2024, 2, 29), datetime.time(12, 30),
                         datetime.datetime(2024, 1, 1, 1, 2, 3)))  # fmt: skip
        same(found[4:], (b"\0\xff", [1, 2], ["a", None], '{"a": 1}', 5, 1.25))


@cases.case
def numerics_are_text() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 12345678901234567890.125::numeric, -0.5::numeric(5,2)")
        found = [decimal.Decimal(value) for value in cursor.fetchone()]
        same(found, [decimal.Decimal("12345678901234567890.125"), decimal.Decimal("-0.5")])


@cases.case
def tables_are_ingested() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists ad_ingest")
        same(cursor.adbc_ingest("ad_ingest", _rows(), mode="create"), 3)
        same(cursor.adbc_ingest("ad_ingest", _rows(), mode="append"), 3)
        connection.commit()
        cursor.execute("select * from ad_ingest order by id")
        found = cursor.fetch_arrow_table().to_pylist()
        same(found[::2], _rows().to_pylist())
        same(found[1::2], _rows().to_pylist())
        cursor.adbc_ingest("ad_ingest", _rows().slice(0, 1), mode="replace")
        cursor.execute("select count(*) from ad_ingest")
        same(cursor.fetchone(), (1,))


@cases.case
def parameters_are_bound() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("select $1::int8 + 1, $2::text", (41, "x"))
        same(cursor.fetchone(), (42, "x"))
        cursor.execute("drop table if exists ad_bind")
        cursor.execute("create table ad_bind (id int8, v text)")
        cursor.executemany("insert into ad_bind values ($1, $2)", [(1, "a"), (2, None)])
        cursor.execute("select count(v), sum(id)::int8 from ad_bind")
        same(cursor.fetchone(), (1, 3))


@cases.case
def transactions() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists ad_tx")
        cursor.execute("create table ad_tx (id int)")
        connection.commit()
        cursor.execute("insert into ad_tx values (1)")
        connection.rollback()
        cursor.execute("select count(*) from ad_tx")
        same(cursor.fetchone(), (0,))


@cases.case
def rows_come_in_batches() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": "4096"})
        cursor.execute("select i::int8, repeat('x', 100) from generate_series(1, 3000) i")
        reader = cursor.fetch_record_batch()
        same(sum(batch.num_rows for batch in reader), 3000)


@cases.case
def the_catalog_is_read() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists ad_child")
        cursor.execute("drop table if exists ad_parent")
        cursor.execute("create table ad_parent (id int primary key, v text unique)")
        cursor.execute("create table ad_child (p int references ad_parent)")
        connection.commit()
        found = connection.adbc_get_objects(
            depth="all", db_schema_filter="public", table_name_filter="ad_%"
        ).read_all()
        (catalog,) = [c for c in found.to_pylist() if c["catalog_db_schemas"]]
        tables = {t["table_name"]: t for t in catalog["catalog_db_schemas"][0]["db_schema_tables"]}
        same({"ad_parent", "ad_child"} <= set(tables), True)
        columns = [c["column_name"] for c in tables["ad_parent"]["table_columns"]]
        same(columns, ["id", "v"])
        kinds = sorted(c["constraint_type"] for c in tables["ad_child"]["table_constraints"])
        same(kinds, ["FOREIGN KEY"])


@cases.case
def the_schema_of_a_table() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists ad_schema")
        cursor.execute("create table ad_schema (a int2, b text, c timestamptz, d float4[])")
        connection.commit()
        schema = connection.adbc_get_table_schema("ad_schema")
        same(schema.names, ["a", "b", "c", "d"])
        same((schema.field("a").type, schema.field("b").type), (pa.int16(), pa.string()))
        same("table" in connection.adbc_get_table_types(), True)


@cases.case
def errors_have_states() -> None:
    with _connect() as connection, connection.cursor() as cursor:
        for query, state in (("select * from ad_not_there", "42P01"), ("selec 1", "42601")):
            try:
                cursor.execute(query)
                raise AssertionError("no error")
            except adbc.Error as error:
                same(error.sqlstate, state)
            connection.rollback()


@cases.case
def what_the_connection_knows() -> None:
    with _connect() as connection:
        found = connection.adbc_get_info()
        same(found["vendor_name"], "PostgreSQL")
        same(str(found["vendor_version"]).startswith("18"), True)
        same(connection.adbc_current_db_schema, "public")


if __name__ == "__main__":
    cases.run()
