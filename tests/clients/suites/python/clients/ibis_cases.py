"""Ibis, its PostgreSQL backend."""

import datetime
from typing import Any

import ibis
import pandas
import psycopg
from cases import Cases, address, same, url

cases = Cases("ibis", ibis.__version__)
AT = address()


def _connect() -> Any:
    """A connection to a server without the tables that cases make.

    `overwrite` is not used: Ibis 12 with SQLGlot 30 writes a wrong DROP for it.
    """
    with psycopg.connect(url(), autocommit=True) as connection:
        connection.execute("drop view if exists ib_view")
        connection.execute("drop table if exists ib_rows, ib_names, ib_made")
    return ibis.postgres.connect(
        host=AT["host"], port=int(AT["port"]), user=AT["user"], database=AT["database"],
        password=AT["password"] or None,
    )  # fmt: skip


def _filled() -> tuple[Any, Any]:
    """A connection, and a table with six rows."""
    connection = _connect()
    frame = pandas.DataFrame(
        {
            "id": range(6),
            "g": ["a", "b", "a", "b", "a", "c"],
            "x": [1.5, 2.0, None, 4.0, 5.0, 6.0],
            "at": [datetime.datetime(2024, 1, 1 + i) for i in range(6)],
        }
    )
    return connection, connection.create_table("ib_rows", frame)


@cases.case
def tables_are_listed_and_described() -> None:
    connection, table = _filled()
    same("ib_rows" in connection.list_tables(), True)
    same("public" in connection.list_databases(), True)
    schema = connection.table("ib_rows").schema()
    same([str(schema[name]) for name in ("id", "g", "x")], ["int64", "string", "float64"])
    same(int(table.count().execute()), 6)


@cases.case
def groups() -> None:
    _, t = _filled()
    found = t.group_by("g").agg(n=t.count(), s=t.x.sum()).order_by("g").execute()
    same(found.values.tolist(), [["a", 3, 6.5], ["b", 2, 6.0], ["c", 1, 6.0]])


@cases.case
def filters_and_expressions() -> None:
    _, t = _filled()
    found = t.filter((t.x > 1.6) & t.g.isin(["b", "c"])).mutate(y=t.x * 2, u=t.g.upper())
    same(
        found.order_by("id")[["y", "u"]].execute().values.tolist(),
        [[4.0, "B"], [8.0, "B"], [12.0, "C"]],
    )
    case = ibis.cases((t.x.isnull(), "none"), (t.x > 3, "big"), else_="small")
    same(
        t.order_by("id").select(c=case).execute().c.tolist()[:4], ["small", "small", "none", "big"]
    )


@cases.case
def joins() -> None:
    connection, t = _filled()
    names = connection.create_table(
        "ib_names", pandas.DataFrame({"g": ["a", "b"], "name": ["A", "B"]})
    )
    found = t.left_join(names, "g").order_by("id").name.execute().tolist()
    same([x if isinstance(x, str) else None for x in found], ["A", "B", "A", "B", "A", None])


@cases.case
def windows() -> None:
    _, t = _filled()
    window = ibis.window(group_by="g", order_by="id")
    found = t.mutate(r=ibis.row_number().over(window), l=t.id.lag().over(window)).order_by("id")
    same(found.r.execute().tolist(), [0, 0, 1, 1, 2, 0])


@cases.case
def dates() -> None:
    _, t = _filled()
    found = t.order_by("id").select(d=t.at.day(), m=t.at.truncate("M"), s=t.at.strftime("%Y"))
    row = found.execute().iloc[2]
    same((row.d, row.m, row.s), (3, pandas.Timestamp("2024-01-01"), "2024"))


@cases.case
def texts() -> None:
    connection = _connect()
    t = ibis.literal("Hello, World")
    found = [
        (t.length(), 12), (t.substr(0, 5), "Hello"), (t.replace("l", "L"), "HeLLo, WorLd"),
        (t.re_search("^H.*d$"), True), (t.find("World"), 7),
    ]  # fmt: skip
    for expression, wanted in found:
        same(connection.execute(expression), wanted)


@cases.case
def statistics() -> None:
    _, t = _filled()
    found = t.agg(a=t.x.mean(), m=t.x.max(), s=t.x.std(), n=t.g.nunique()).execute().iloc[0]
    same((found.a, found.m, found.n), (3.7, 6.0, 3))
    same(round(float(found.s), 4), 1.9235)


@cases.case
def tables_are_written() -> None:
    connection, t = _filled()
    made = connection.create_table("ib_made", t.filter(t.id < 2))
    connection.insert(
        "ib_made",
        pandas.DataFrame(
            {"id": [9], "g": ["z"], "x": [0.0], "at": [datetime.datetime(2024, 1, 1)]}
        ),
    )
    same(sorted(made.id.execute().tolist()), [0, 1, 9])
    connection.truncate_table("ib_made")
    same(int(made.count().execute()), 0)


@cases.case
def views() -> None:
    connection, t = _filled()
    view = connection.create_view("ib_view", t.filter(t.g == "a"))
    same(int(view.count().execute()), 3)


@cases.case
def sql_and_expressions_mix() -> None:
    connection, _ = _filled()
    t = connection.sql("select g, max(x) as x from ib_rows group by g")
    same(t.filter(t.x > 4.5).order_by("g").g.execute().tolist(), ["a", "c"])
    same(connection.raw_sql("select 1").fetchone(), (1,))


@cases.case
def sets_and_arrow() -> None:
    _, t = _filled()
    both = ibis.union(t.filter(t.id < 2), t.filter(t.id > 3), distinct=False)
    same(both.to_pyarrow().num_rows, 4)
    same(t.distinct().limit(3, offset=1).to_polars().height, 3)


if __name__ == "__main__":
    cases.run()
