"""Subqueries in the conditions of outer joins, as text: what they become does not grow by itself.

What they answer: area `outer_join_subqueries` of `tests/postgres/queries/`.
"""

from collections.abc import Callable

import pytest

from sql.emit.duckdb import dialect as duckdb
from sql.emit.emitted_query import EmittedQuery
from sql.emit.spark import dialect as spark
from sql.errors import SqlError
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT8, TEXT
from tests.engines.spark.shared_engine import plan_of

COLUMNS = [("id", INT8), ("k", INT8), ("name", TEXT)]
Emit = Callable[..., EmittedQuery]


def emitted(emit: Emit, text: str) -> str:
    plan = plan_of(text, t=COLUMNS, u=COLUMNS)
    return emit(plan, {RelationId(name): name for name in ("t", "u")}).text


def chain(length: int, condition: str) -> str:
    """A table with as many joined to it, each on a condition over `{u}`."""
    joins = [
        f"left join u u{n} on u{n}.id = t.k and {condition.format(u=f'u{n}')}"
        for n in range(length)
    ]
    return f"select t.id from t {' '.join(joins)}"


@pytest.mark.parametrize("emit", [spark.emit, duckdb.emit])
@pytest.mark.parametrize(
    "condition",
    ["{u}.k = (select id from t where name = 'x')", "t.id = (select id from t where name = 'x')"],
)
def test_a_chain_of_joins_grows_with_its_length(emit: Emit, condition: str) -> None:
    some, twice = (len(emitted(emit, chain(length, condition))) for length in (5, 10))
    assert twice < 3 * some


def test_what_cannot_fail_stays_on_duckdb() -> None:
    text = emitted(
        duckdb.emit, "select t.id from t left join u on exists (select from t s where s.id = u.k)"
    )
    assert " on exists (" in text


def test_a_side_is_read_once_for_what_cannot_fail() -> None:
    text = emitted(
        spark.emit,
        "select t.id from t left join u on t.k = u.k"
        " and exists (select from t s where s.id = u.k and s.k = t.id)",
    )
    assert text.count("`u`") == 1


@pytest.mark.parametrize(
    "text",
    [
        # Of both sides there are no pairs to choose from.
        "select t.id from t full join u on t.k = u.k"
        " and exists (select from t s where s.id = u.k and s.k = t.id)",
        "select t.id from t left join u on t.k = u.k and exists (select where random() < t.id)",
        # What is read twice has to be the same rows.
        "select t.id from (select * from t limit 3) t left join u on t.k = u.k"
        " and t.k = (select s.k from t s where s.id = t.id)",
    ],
)
def test_spark_refuses(text: str) -> None:
    with pytest.raises(SqlError, match="a subquery in the condition of a") as caught:
        emitted(spark.emit, text)
    assert caught.value.sqlstate == "0A000"
