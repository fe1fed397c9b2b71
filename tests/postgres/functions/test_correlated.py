"""Subqueries that aggregate the rows of an outer row's key: Spark joins by the key.

Its optimizer has ways to the answer that look at every pair of rows, and takes them for texts that
say the same in another shape. At scale they do not end (TPC-H 2, 17 and 20).
"""

from collections.abc import Iterator

import pytest

from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Column, Table
from sql.emit.spark.dialect import emit
from sql.parser.parse import parse
from sql.plan.traverse import scans
from sql.statements.bound import BoundQuery
from sql.types.sql_type import FLOAT8, INT8, numeric
from tests.postgres.functions.spark_session import Spark

pytestmark = pytest.mark.spark
COLUMNS = (Column("k", INT8), Column("n", numeric(12, 2)), Column("f", FLOAT8))
TABLES = {
    ("public", name): Table(16_384 + place, "public", name, name, COLUMNS)
    for place, name in enumerate(("item", "sale"))
}
CONTEXT = BindContext(
    Catalog(1, frozenset({"public"}), TABLES, {SYSTEM_TIMELINE.name: SYSTEM_TIMELINE}, {}),
    ("public",),
    0,
    user="u",
    database="d",
)
AGGREGATES = (
    "count(*)",
    "count(*) + 1",
    "count(distinct n)",
    "sum(n)",
    "sum(k)",
    "0.2 * avg(n)",
    "avg(k)",
    "avg(f) * 2",
    "sum(f)",
    "min(n)",
    "max(n) - min(n)",
    "coalesce(max(n), 0)",
    "bool_and(n > 0)",
)
QUERIES = (
    "select (select {} from sale where sale.k = item.k) from item",
    "select count(*) from item where (select {} from sale where sale.k = item.k) is null",
    "select sum(s.n) from sale s, item i where s.k = i.k"
    " and (select {} from sale where sale.k = i.k) is not null",
)
LIMITED = (
    "select (select s.n from sale s where s.k = item.k limit 1) from item",
    "select (select s.n from sale s where s.k = item.k + 0 limit 1) from item",
    "select (select count(*) from (select from sale s where s.k = item.k offset 1) q) from item",
    "select s.n from item, lateral (select n from sale where sale.k = item.k limit 2) s",
    "select count(*) from item where exists (select from sale s where s.k = item.k offset 1)",
)


@pytest.fixture(scope="module")
def tables(spark: Spark) -> Iterator[Spark]:
    rows = "select id, cast(id as decimal(12,2)), cast(id as double) from range(100)"
    for name in ("item", "sale"):
        spark.session.sql(f"create temporary view {name}(f0, f1, f2) as {rows}")
    spark.session.sql("set spark.sql.autoBroadcastJoinThreshold = -1")
    yield spark
    spark.session.sql("reset spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_join_by_the_key(tables: Spark, query: str, aggregate: str) -> None:
    check_join(tables, query.format(aggregate))


@pytest.mark.parametrize("query", LIMITED)
def test_rows_are_numbered_by_the_key(tables: Spark, query: str) -> None:
    plan = check_join(tables, query)
    assert "Window [row_number()" in plan
    assert "SinglePartition" not in plan.partition("Window [row_number()")[2]


def check_join(tables: Spark, query: str) -> str:
    """The plan of a query, in which Spark joins by the key and reads each input once."""
    bound = bind(parse(query)[0], CONTEXT, ()).bound
    assert isinstance(bound, BoundQuery)
    read = list(scans(bound.plan))
    emitted = emit(bound.plan, {scan.relation: scan.name for scan in read})
    found = tables.session.sql(f"explain {emitted.text}", args=dict(emitted.arguments))
    plan = str(found.collect()[0][0])
    assert "Physical Plan" in plan
    assert "CartesianProduct" not in plan
    assert "NestedLoopJoin" not in plan
    assert plan.count("Range (") <= len(read), "an input is read more than once"
    return plan
