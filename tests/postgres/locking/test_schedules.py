"""Random schedules of sessions are answered by Meridian as by a live PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.postgres.locking.lockstep import Lockstep
from tests.postgres.locking.schedules import SUBJECTS
from tests.postgres.locking.sessions import POSTGRES_SETTINGS
from tests.support.servers import postgres
from tests.support.stack import WITHOUT_CUTS, serving

SEEDS = range(1, 5)
MORE_SEEDS = range(100, 400)


@pytest.fixture(scope="module")
def both() -> Iterator[Lockstep]:
    with (
        serving(core=WITHOUT_CUTS) as ours,
        postgres(POSTGRES_SETTINGS) as theirs,
        closing(Lockstep(theirs, ours)) as lockstep,
    ):
        yield lockstep


def check(both: Lockstep, subject: str, seeds: range) -> None:
    """Fails with the smallest schedule of the first seed that differs."""
    for seed in seeds:
        played = both.draw(seed, subject)
        if played.differs and both.is_certain(played):
            pytest.fail(f"seed {seed} of {subject}\n{both.smallest(played).shown()}")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_some(both: Lockstep, subject: str) -> None:
    check(both, subject, SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_many(both: Lockstep, subject: str) -> None:
    check(both, subject, MORE_SEEDS)
