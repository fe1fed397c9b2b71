"""pandas through SQLAlchemy and ADBC."""

import datetime
from typing import Any

import numpy
import pandas
import sqlalchemy as sa
from cases import Cases, same, url
from sqlalchemy.dialects.postgresql import insert

cases = Cases("pandas", pandas.__version__)
ENGINE = sa.create_engine(url("postgresql+psycopg"))


def _frame() -> pandas.DataFrame:
    day = datetime.datetime(2024, 1, 1)
    return pandas.DataFrame(
        {
            "id": [1, 2, 3],
            "x": [1.5, numpy.nan, -2.0],
            "t": ["a", None, "ü"],
            "b": [True, False, True],
            "at": pandas.to_datetime([day, None, day + datetime.timedelta(hours=5)]),
        }
    )


def _written(name: str, **options: Any) -> pandas.DataFrame:
    frame = _frame()
    frame.to_sql(name, ENGINE, index=False, if_exists="replace", **options)
    return frame


@cases.case
def frames_round_trip() -> None:
    frame = _written("pd_round")
    found = pandas.read_sql("select * from pd_round order by id", ENGINE)
    pandas.testing.assert_frame_equal(found, frame, check_dtype=False)


@cases.case
def multi_inserts_and_chunks() -> None:
    frame = pandas.DataFrame({"n": range(3000)})
    frame.to_sql("pd_multi", ENGINE, if_exists="replace", method="multi", chunksize=500)
    chunks = pandas.read_sql("select n from pd_multi", ENGINE, chunksize=700)
    same(sum(int(chunk.n.sum()) for chunk in chunks), 3000 * 2999 // 2)


@cases.case
def appending_and_replacing() -> None:
    _written("pd_append")
    _frame().to_sql("pd_append", ENGINE, index=False, if_exists="append")
    same(len(pandas.read_sql_table("pd_append", ENGINE)), 6)
    _written("pd_append")
    same(len(pandas.read_sql_table("pd_append", ENGINE)), 3)
    try:
        _frame().to_sql("pd_append", ENGINE, if_exists="fail")
        raise AssertionError("the table is there")
    except ValueError:
        pass


@cases.case
def tables_are_read_by_name() -> None:
    _written("pd_named")
    found = pandas.read_sql_table("pd_named", ENGINE, columns=["t"], index_col="id")
    same((list(found.columns), found.index.name, found.loc[3, "t"]), (["t"], "id", "ü"))


@cases.case
def types_are_chosen() -> None:
    kinds = {"id": sa.BigInteger, "x": sa.Numeric(8, 2), "t": sa.String(5)}
    _written("pd_types", dtype=kinds)
    shown = {c["name"]: str(c["type"]) for c in sa.inspect(ENGINE).get_columns("pd_types")}
    same([shown[name] for name in kinds], ["BIGINT", "NUMERIC(8, 2)", "VARCHAR(5)"])


@cases.case
def queries_take_parameters_and_dates() -> None:
    _written("pd_query")
    query = sa.text("select id, at from pd_query where id >= :low")
    found = pandas.read_sql_query(query, ENGINE, params={"low": 3}, parse_dates=["at"])
    same(found.at[0, "at"], pandas.Timestamp("2024-01-01 05:00"))
    kinds = {"id": "int32"}
    same(str(pandas.read_sql("select id from pd_query", ENGINE, dtype=kinds).id.dtype), "int32")


@cases.case
def a_schema_of_its_own() -> None:
    with ENGINE.begin() as connection:
        connection.execute(sa.text("drop schema if exists pd_schema cascade"))
        connection.execute(sa.text("create schema pd_schema"))
    _written("t", schema="pd_schema")
    same(len(pandas.read_sql_table("t", ENGINE, schema="pd_schema")), 3)


@cases.case
def rows_are_copied_in() -> None:
    def copied(table: Any, connection: Any, keys: list[str], rows: Any) -> None:
        columns = ", ".join(f'"{key}"' for key in keys)
        with connection.connection.cursor() as cursor:
            with cursor.copy(f'copy "{table.name}" ({columns}) from stdin') as copy:
                for row in rows:
                    copy.write_row(row)

    _written("pd_copy", method=copied)
    same(
        pandas.read_sql("select count(*) n, count(x) x from pd_copy", ENGINE).values.tolist(),
        [[3, 2]],
    )


@cases.case
def upserts_by_a_method() -> None:
    _written("pd_up")
    with ENGINE.begin() as connection:
        connection.execute(sa.text("alter table pd_up add primary key (id)"))

    def upsert(table: Any, connection: Any, keys: list[str], rows: Any) -> int:
        values = [dict(zip(keys, row, strict=True)) for row in rows]
        made = sa.Table("pd_up", sa.MetaData(), autoload_with=connection)
        statement = insert(made).values(values)
        changes = {key: statement.excluded[key] for key in keys if key != "id"}
        return connection.execute(
            statement.on_conflict_do_update(index_elements=["id"], set_=changes)
        ).rowcount

    more = pandas.DataFrame({"id": [3, 4], "t": ["changed", "new"]})
    more.to_sql("pd_up", ENGINE, index=False, if_exists="append", method=upsert)
    found = pandas.read_sql("select id, t from pd_up where id > 2 order by id", ENGINE)
    same(found.values.tolist(), [[3, "changed"], [4, "new"]])


@cases.case
def frames_through_adbc() -> None:
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(url()) as connection:
        frame = _frame()[["id", "x", "t", "b"]]
        frame.to_sql("pd_adbc", connection, index=False, if_exists="replace")
        found = pandas.read_sql("select * from pd_adbc order by id", connection)
        same(found.id.tolist(), [1, 2, 3])
        same(found.t.tolist()[2], "ü")


@cases.case
def groups_are_those_of_sql() -> None:
    frame = pandas.DataFrame({"g": [i % 7 for i in range(500)], "v": [i * 0.5 for i in range(500)]})
    frame.to_sql("pd_groups", ENGINE, index=False, if_exists="replace")
    query = "select g, sum(v) s, avg(v) a, count(*) n from pd_groups group by g order by g"
    found = pandas.read_sql(query, ENGINE)
    wanted = frame.groupby("g").v.agg(s="sum", a="mean", n="count").reset_index()
    pandas.testing.assert_frame_equal(found, wanted, check_dtype=False)


if __name__ == "__main__":
    cases.run()
