"""polars, through SQLAlchemy and ADBC."""

import datetime
import decimal

import polars
import sqlalchemy as sa
from cases import Cases, same, url

cases = Cases("polars", polars.__version__)
ENGINE = sa.create_engine(url("postgresql+psycopg"))


def _frame() -> polars.DataFrame:
    return polars.DataFrame(
        {
            "id": [1, 2, 3],
            "x": [1.5, None, -2.0],
            "t": ["a", None, "ü"],
            "b": [True, False, None],
            "d": [datetime.date(2024, 2, 29), None, datetime.date(1999, 1, 1)],
            "at": [datetime.datetime(2024, 1, 1, 2, 3, 4, 5), None, datetime.datetime(2000, 1, 1)],
        }
    )


@cases.case
def written_and_read_by_adbc() -> None:
    _frame().write_database("pl_adbc", url(), engine="adbc", if_table_exists="replace")
    found = polars.read_database_uri("select * from pl_adbc order by id", url(), engine="adbc")
    same(found.rows(), _frame().rows())


@cases.case
def written_and_read_by_sqlalchemy() -> None:
    _frame().write_database("pl_sa", url("postgresql+psycopg"), if_table_exists="replace")
    found = polars.read_database("select * from pl_sa order by id", ENGINE.connect())
    same(found.rows(), _frame().rows())


@cases.case
def appended_by_adbc() -> None:
    for mode in ("replace", "append"):
        _frame().write_database("pl_app", url(), engine="adbc", if_table_exists=mode)  # type: ignore[arg-type]
    found = polars.read_database_uri("select count(*) from pl_app", url(), engine="adbc")
    same(found.rows(), [(6,)])


@cases.case
def parameters_and_schemas() -> None:
    with ENGINE.connect() as connection:
        found = polars.read_database(
            sa.text("select :a ::int as a, :b as b"),
            connection,
            execute_options={"parameters": {"a": 3, "b": "x"}},
            schema_overrides={"a": polars.Int8},
        )
    same((found.rows(), found.schema["a"]), ([(3, "x")], polars.Int8))


@cases.case
def decimals_and_times() -> None:
    query = "select 1.50::numeric(10,2) n, '12:30'::time t, '2024-01-01 00:00+00'::timestamptz z"
    found = polars.read_database(query, ENGINE.connect()).row(0)
    same(found[:2], (decimal.Decimal("1.50"), datetime.time(12, 30)))
    same(found[2], datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))


@cases.case
def batches_are_iterated() -> None:
    frame = polars.DataFrame({"n": range(5000)})
    frame.write_database("pl_batch", url(), engine="adbc", if_table_exists="replace")
    parts = polars.read_database(
        "select n from pl_batch", ENGINE.connect(), iter_batches=True, batch_size=900
    )
    same(sum(part["n"].sum() for part in parts), 5000 * 4999 // 2)


@cases.case
def arrays_and_json() -> None:
    query = "select array[1, 2, null] a, '{\"k\": 1}'::jsonb j, 'x'::text t"
    found = polars.read_database(query, ENGINE.connect()).row(0)
    same((found[0], found[2]), ([1, 2, None], "x"))


@cases.case
def several_queries_at_once() -> None:
    frame = polars.DataFrame({"n": range(10)})
    frame.write_database("pl_two", url(), engine="adbc", if_table_exists="replace")
    parts = [f"select n from pl_two where n % 2 = {rest}" for rest in (0, 1)]
    found = polars.concat([polars.read_database_uri(part, url(), engine="adbc") for part in parts])
    same(sorted(found["n"].to_list()), list(range(10)))


@cases.case
def an_empty_result_has_its_columns() -> None:
    query = "select 1::int8 a, 'x'::text b, now() c where false"
    found = polars.read_database_uri(query, url(), engine="adbc")
    same((found.columns, found.height), (["a", "b", "c"], 0))


@cases.case
def a_table_in_a_schema() -> None:
    with ENGINE.begin() as connection:
        connection.execute(sa.text("drop schema if exists pl_schema cascade"))
        connection.execute(sa.text("create schema pl_schema"))
    _frame().write_database("pl_schema.t", url("postgresql+psycopg"), if_table_exists="replace")
    _frame().write_database("pl_schema.u", url(), engine="adbc", if_table_exists="replace")
    for name in ("t", "u"):
        query = f"select count(*) from pl_schema.{name}"
        same(polars.read_database(query, ENGINE.connect()).rows(), [(3,)])


if __name__ == "__main__":
    cases.run()
