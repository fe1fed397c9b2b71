"""What guards the parts of a statement that may fail, as text: it does not grow by itself.

What the guarded statements answer: areas `demanded_*`, `subqueries_*` of `tests/postgres/queries/`.
"""

from collections.abc import Callable

import pytest

from sql.emit.duckdb import dialect as duckdb
from sql.emit.emitted_query import EmittedQuery
from sql.emit.spark import dialect as spark
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT8
from tests.engines.spark.shared_engine import plan_of

COLUMNS = [("id", INT8), ("k", INT8), ("v", INT8)]
Emit = Callable[..., EmittedQuery]


def length(emit: Emit, text: str) -> int:
    plan = plan_of(text, t=COLUMNS, u=COLUMNS)
    return len(emit(plan, {RelationId(name): name for name in ("t", "u")}).text)


def derived(levels: int, quotient: str) -> str:
    """A column that may fail, asked for twice in a branch at each level."""
    text = f"select k, v, {quotient} as q from t"
    for level in range(levels):
        text = f"select k, v, case when v <> 0 then q + q end as q from ({text}) s{level}"
    return text


def layers(levels: int) -> str:
    """A column that may fail, asked for twice in a subquery at each level."""
    text = "select k, v, 10 / v as q from t"
    for level in range(levels):
        query = f"(select max(10 / u.v) from u where u.k = s{level}.q or u.v = s{level}.q)"
        text = f"select k, v, {query} as q from ({text}) s{level}"
    return text


def nested(levels: int) -> str:
    """Subqueries in each other's WHERE, behind a condition that may fail."""
    text = "true"
    for level in reversed(range(levels)):
        inner = f"u{level + 1}.k = u{level}.k and 10 / u{level + 1}.v > 1 and {text}"
        text = f"exists (select from u u{level + 1} where {inner})"
    return f"select u0.id from t u0 where {text}"


@pytest.mark.parametrize("emit", [spark.emit, duckdb.emit])
@pytest.mark.parametrize("quotient", ["10 / v", "(select max(10 / u.v) from u where u.k = t.k)"])
def test_levels_of_derived_tables_grow_with_their_number(emit: Emit, quotient: str) -> None:
    some, twice = (length(emit, derived(levels, quotient)) for levels in (8, 16))
    assert twice < 3 * some


@pytest.mark.parametrize("emit", [spark.emit, duckdb.emit])
def test_nested_conditions_grow_with_their_number(emit: Emit) -> None:
    some, twice = (length(emit, nested(levels)) for levels in (3, 6))
    assert twice < 4 * some


@pytest.mark.parametrize("emit", [spark.emit, duckdb.emit])
def test_layers_of_subqueries_grow_with_their_number(emit: Emit) -> None:
    some, twice = (length(emit, layers(levels)) for levels in (8, 16))
    assert twice < 3 * some
