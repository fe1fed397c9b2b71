"""Random statements upstream; more of them: `python -m tests.ingest.postgres.random_statements`."""

from __future__ import annotations

import pytest

from tests.ingest.postgres.random_statements import RandomUpstream, check_reader
from tests.ingest.upstream_database import UpstreamDatabase, run


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_batches_folded_onto_the_snapshot_are_the_tables(
    database: UpstreamDatabase, seed: int
) -> None:
    run(check_reader(RandomUpstream(database, seed), database.reader(), 120))
