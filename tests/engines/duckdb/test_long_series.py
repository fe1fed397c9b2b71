"""L1, L2 of `sql/emit/duckdb/long_series.py`: the series of each row is that of Python's range."""

import random

import pytest

from sql.emit.duckdb.long_series import LEVELS, STRETCH
from sql.errors import SqlError
from tests.engines.duckdb.local_engine import Engine
from tests.postgres.functions.test_reference import plan_of

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_LENGTHS = (0, 1, 2, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH, 2 * STRETCH + 1, 3 * STRETCH)


def series(rng: random.Random) -> tuple[int, int, int]:
    """Start, stop and step. 1 << 51 times STRETCH is no number any more."""
    any_step = 1 << rng.randrange(63), rng.randrange(1, _MOST)
    step = rng.choice([1, 7, (1 << 51) - 1, 1 << 51, *any_step])
    length = rng.choice(_LENGTHS)
    start = rng.choice([0, rng.randrange(-1_000, 1_000), _LEAST, rng.randrange(_LEAST, _MOST)])
    stop = max(_LEAST, min(_MOST, start + (length - 1) * step + rng.randrange(step)))
    return (-1 - start, -1 - stop, -step) if rng.random() < 0.5 else (start, stop, step)


@pytest.mark.parametrize("seed", range(3))
def test_series_of_rows(engine: Engine, seed: int) -> None:
    rng = random.Random(seed)
    rows = [series(rng) for _ in range(60)]
    values = ", ".join(f"({at}, {', '.join(f'int8 {_text(x)}' for x in row)})"
                       for at, row in enumerate(rows))  # fmt: skip
    text = (
        "(select string_agg(concat_ws(' ', i, n, low, high), ';' order by i) from"
        " (select i, count(g) as n, min(g) as low, max(g) as high"
        f" from (values {values}) v(i, a, b, d)"
        " left join lateral generate_series(a, b, d) g on true group by 1) s)"
    )
    expected: list[tuple[int, ...]] = []
    for at, (start, stop, step) in enumerate(rows):
        found = range(start, stop + (1 if step > 0 else -1), step)
        expected.append((at, len(found), *(sorted((found[0], found[-1])) if found else ())))
    shown = ";".join(" ".join(map(str, row)) for row in expected)
    assert engine.answer(plan_of(text)) == [(shown,)]
    assert any(row[1] > STRETCH for row in expected)


def _text(number: int) -> str:
    return f"'{number}'"


def test_a_series_that_is_too_long(engine: Engine) -> None:
    text = "(select count(g) from (values (int8 '{}')) v(b), generate_series(1, b, 2) g)"
    assert engine.answer(plan_of(text.format(2 * STRETCH))) == [(STRETCH,)]
    with pytest.raises(SqlError, match="is too long"):
        engine.answer(plan_of(text.format(4 * STRETCH**LEVELS)))
