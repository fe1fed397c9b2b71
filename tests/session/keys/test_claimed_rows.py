"""A row is claimed once in a statement, in whatever batches its claims come."""

import random

import pyarrow as pa
import pytest

from coordinator.execution.dml.claimed_rows import ClaimedRows
from storage.types import Source


@pytest.mark.parametrize("seed", range(5))
def test_once_in_batches_of_all_sizes(seed: int) -> None:
    chance = random.Random(seed)
    before, seen = ClaimedRows(), set[tuple[str, int]]()
    parts = [before, ClaimedRows([before])]
    for _ in range(60):
        count = chance.choice((0, 1, 3, 10, 11, 40))
        rows = [(chance.choice("abc"), chance.randrange(200)) for _ in range(count)]
        expected = [row not in seen and row not in rows[:at] for at, row in enumerate(rows)]
        part = parts[len(seen) > 100]
        fresh = part.take(
            pa.array([source for source, _ in rows], pa.string()),
            pa.array([index for _, index in rows], pa.int64()),
        )
        assert fresh.tolist() == expected
        seen.update(rows)
    claimed = {(str(name), at) for part in parts for name, own in part.rows.items() for at in own}
    assert claimed == seen
    assert all(parts[1].has(Source(name), at) for name, at in seen)
