"""DuckDB's optimizers change no answer of a few random queries; `optimizers.py` asks many."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.duckdb.optimizers import Comparison
from tests.engines.duckdb.unoptimized_twin import answer
from tests.postgres.fuzz.shapes import Shapes

COUNT = 25


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    comparison = Comparison(tmp_path_factory.mktemp("twins"))
    yield comparison
    comparison.twins.close()


def test_they_change_no_answer(comparison: Comparison) -> None:
    queries = [Shapes(random.Random(seed)).draw() for seed in range(COUNT)]
    assert [text for text in queries if not comparison.try_one(text)] == []
    assert comparison.counts["alike"] > COUNT // 2


def test_one_that_does_is_seen(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path, disabled=())
    nothing = "mid a left join mid b on a.i = b.i and b.l < 0"
    assert comparison.is_wrong(f"select count(*) from (select a.i from {nothing} limit 3) s")
    assert comparison.is_wrong(f"select exists (select 1 from {nothing})")
    comparison.twins.close()


@pytest.mark.parametrize(
    ("text", "sorted_by"),
    [
        ("select i, l from few order by l desc limit 2", ["[5000000059]", "[5000000058]"]),
        ("select l, l + 1 from few order by 1, i limit 1", ["[5000000000]"]),
        ("select i, l from few order by l + 1, i limit 2", []),
        ("select i from few", []),
    ],
)
def test_the_order_that_counts(comparison: Comparison, text: str, sorted_by: list[str]) -> None:
    found = answer(comparison.twins.ours, comparison.tables.run(text))
    assert list(found.order) == sorted_by
