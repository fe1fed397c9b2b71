"""The generator of random queries: always the same, always SQL, and it can make them smaller."""

import random

import pglast
import pytest

from tests.sqlfuzz.queries import Queries, Query, smaller_queries
from tests.sqlfuzz.schema import statements


def draw(seed: int) -> Query:
    return Queries(random.Random(seed)).draw()


def test_the_same_seed_draws_the_same() -> None:
    assert [draw(seed).sql for seed in range(50)] == [draw(seed).sql for seed in range(50)]
    assert len({draw(seed).sql for seed in range(50)}) == 50
    assert statements() == statements()


@pytest.mark.parametrize("seed", range(0, 300, 10))
def test_what_is_drawn_and_made_smaller_is_sql(seed: int) -> None:
    query = draw(seed)
    pglast.parse_sql(query.sql)
    for less in smaller_queries(query):
        pglast.parse_sql(less.sql)
        assert less != query


def test_smaller_ones_lead_to_the_smallest() -> None:
    # As the fuzzer does it: whatever still joins counts as wrong.
    query = next(draw(seed) for seed in range(100) if "left join" in draw(seed).sql)
    candidates = smaller_queries(query)
    while (less := next(candidates, None)) is not None:
        if "left join" in less.sql:
            query, candidates = less, smaller_queries(less)
    assert len(query.joins) == 1
    assert query.where is query.other is query.having is None
    assert all(not item.parts for item in query.shown)
