"""The generator of random queries: always the same, always SQL, and it can make them smaller."""

import contextlib
import random

import pglast
import pytest

from tests.postgres.fuzz.queries import Queries, Query, smaller_queries
from tests.postgres.fuzz.rows import KIN_SHARES
from tests.postgres.fuzz.schema import statements
from tests.postgres.fuzz.shapes import Shapes
from tests.postgres.fuzz.shrinking import smaller, smallest


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


def test_shapes_are_sql_and_always_the_same() -> None:
    drawn = [Shapes(random.Random(seed)).draw() for seed in range(200)]
    assert drawn == [Shapes(random.Random(seed)).draw() for seed in range(200)]
    kin = [Shapes(random.Random(seed), KIN_SHARES).draw() for seed in range(200)]
    assert not any(" big " in text for text in kin)
    for text in [*drawn, *kin]:
        pglast.parse_sql(text)


def test_any_statement_is_made_smaller() -> None:
    text = (
        "with x as (select i from few) select distinct a.i + 1, max(b.n) from x a left join"
        " (select * from mid where i > 3) b on a.i = b.i and b.l in (1, 2) where a.i is not null"
        " group by a.i order by 1 limit 3"
    )
    assert all(len(less) < len(text) for less in smaller(text))

    def is_wrong(less: str) -> bool:
        with contextlib.suppress(pglast.Error):
            pglast.parse_sql(less)
            return "LEFT JOIN" in less and "max" in less
        return False

    found = smallest(text, is_wrong)
    assert is_wrong(found)
    assert len(found) < 50
