"""Four clients that define, alter and drop at once: nobody is hurt, and what is left fits."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.server.check import find_inconsistencies
from sql.catalog.catalog import Catalog
from storage.memory import MemoryObjectStore, MemoryStash
from tests.session.ddl.definition_clients import SETUP, Speaker, problems, run
from tests.support.servers import meridian
from tests.support.stack import serving

CLIENTS = 4
REAL_SEEDS = 4
REAL_BLOCKS = 100


@pytest.mark.parametrize(
    ("seeds", "blocks"),
    [
        pytest.param(range(2), 60, id="short"),
        pytest.param(range(2, 30), 250, id="long", marks=pytest.mark.slow),
    ],
)
def test_what_four_clients_leave_fits_together(seeds: range, blocks: int) -> None:
    for seed in seeds:
        _race(seed, blocks)


def _race(seed: int, blocks: int) -> None:
    stash, store = MemoryStash(), MemoryObjectStore()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        for text in SETUP:
            one.execute(text.encode())
        speakers = [Speaker(seed * CLIENTS + client) for client in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as threads:
            done = [*threads.map(lambda speaker: run(dsn, speaker, blocks), speakers)]
        assert min(done) > blocks // 10, "much of what they say is possible"
        assert [*problems(one)] == []
    left = asyncio.run(_checked(stash, store))
    stash, store = stash.crash(), store.crash()
    with serving(stash=stash, store=store) as dsn, psycopg.connect(dsn, autocommit=True) as one:
        assert [*problems(one)] == []
    assert asyncio.run(_checked(stash, store)) == left


@pytest.mark.slow
def test_a_real_server_outlives_them(tmp_path: Path) -> None:
    """On DuckDB, with real files; killed when they have spoken, and looked at from without."""
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as one:
            for text in SETUP:
                one.execute(text.encode())
        for seed in range(REAL_SEEDS):
            speakers = [Speaker(-1 - seed * CLIENTS - client) for client in range(CLIENTS)]
            with ThreadPoolExecutor(CLIENTS) as threads:
                assert min(threads.map(lambda one: run(server.dsn, one, REAL_BLOCKS), speakers)) > 0
            with psycopg.connect(server.dsn, autocommit=True) as one:
                assert [*problems(one)] == []
            server.kill()
            checked = server.check()
            assert checked.returncode == 0, checked.stdout + checked.stderr
            server.start()


async def _checked(stash: MemoryStash, store: MemoryObjectStore) -> Catalog:
    """The catalog, of which `meridian check` finds nothing to say."""
    names = {name.partition("/")[0] for name in await store.list("")}
    findings, _ = await find_inconsistencies(stash, store, names)
    assert [found for found in findings if found.severity == "error"] == []
    return VersionedCatalog(decode_changes(await stash.scan(COLLECTION))).current
