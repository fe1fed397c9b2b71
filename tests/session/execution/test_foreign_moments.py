"""Several tables at one moment, asked by others for `TIMESTAMP AS OF`: no sum is ever torn.

transfers between tables, cuts ──▶ AS OF the cut before a random moment ──▶ our answer
                                └▶ real files: delta-rs, DuckDB, delta-spark ──▶ theirs

delta-spark asks where a JVM runs already: `tests/unit/storage/delta/test_foreign_readers.py`.

INVARIANTS
  X1  a moment is after the first cut of all tables, and all that came before it is in the files.
"""

import asyncio
import json
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from psycopg.errors import SerializationFailure

from coordinator.core.settings import CoreSettings
from storage.local_store import LocalObjectStore
from storage.memory import MemoryObjectStore
from tests.support.connections import Connection, all_rows, connected
from tests.support.foreign_readers import duckdb_reader
from tests.support.stack import Stack, running

TABLES = ("t0", "t1", "t2", "t3")
BALANCE = 1_000
ACCOUNTS = 3
CLIENTS = 3
TRANSFERS = 30
MOMENTS = 12

Balances = list[tuple[str, int, int]]


class MirroredStore(MemoryObjectStore):
    """Serves from memory, and does the same with files, which others read."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._files = LocalObjectStore.open(root)

    async def create(self, name: str, content: bytes, *, modified_ms: int | None = None) -> None:
        await self._files.create(name, content, modified_ms=modified_ms)
        await super().create(name, content, modified_ms=modified_ms)

    async def sync(self, names: Sequence[str], *, modified_ms: int | None = None) -> None:
        await self._files.sync(names, modified_ms=modified_ms)
        await super().sync(names, modified_ms=modified_ms)

    async def delete(self, name: str) -> None:
        await self._files.delete(name)
        await super().delete(name)

    def close(self) -> None:
        self._files.close()


@dataclass(frozen=True)
class Bank:
    """Where the tables lie, the times of their versions, and our answer at each moment (ms)."""

    paths: Mapping[str, Path]
    versions: Mapping[str, Sequence[int]]
    answers: Mapping[int, Balances]


async def transfers(connection: Connection, rng: random.Random) -> None:
    for _ in range(TRANSFERS):
        here, there = rng.sample(TABLES, 2)
        amount = rng.randint(1, 50)
        async with connection.transaction():
            await connection.execute("set local transaction isolation level repeatable read")
            for table, change in sorted([(here, -amount), (there, amount)]):
                await connection.execute(
                    f"update {table} set balance = balance + {change}"
                    f" where id = {rng.randrange(ACCOUNTS)}"
                )


async def retried(connection: Connection, rng: random.Random) -> None:
    for _ in range(3):
        try:
            await transfers(connection, rng)
        except SerializationFailure:
            continue
        return


async def wait_until_flushed(connection: Connection) -> None:
    query = "select 1 from meridian.frontiers having sum(tail_rows) > 0"
    while await all_rows(connection, query):
        await connection.execute("select 1")


def our_query(at: int) -> str:
    parts = [f"select '{name}' t, id, balance from {name}" for name in TABLES]
    return f"{' union all '.join(parts)} order by 1, 2 as of {at}"


async def tell(stack: Stack, root: Path) -> Bank:
    async with connected(stack, CLIENTS) as connections:
        first = connections[0]
        for name in TABLES:
            await first.execute(f"create table {name} (id int primary key, balance bigint)")
        filled = [
            f"insert into {name} select g, {BALANCE} from generate_series(0, {ACCOUNTS - 1}) g"
            for name in TABLES
        ]
        async with first.transaction():
            for statement in filled:
                await first.execute(statement)
        (begun,) = (await all_rows(first, "select (extract(epoch from now()) * 1000)::bigint"))[0]
        async with asyncio.TaskGroup() as tasks:
            for number, connection in enumerate(connections):
                tasks.create_task(retried(connection, random.Random(number)))
        await wait_until_flushed(first)
        paths = paths_of(root)
        versions = {name: times(path) for name, path in paths.items()}
        # X1: at a cut later than the filling, every table has its rows.
        cuts = sorted({ms for at in versions.values() for ms in at if ms > begun})
        between = random.Random(7).sample(range(cuts[0], cuts[-1]), MOMENTS)
        moments = sorted({*between, cuts[len(cuts) // 2], cuts[-1]})
        at_cut = {ms: cuts[bisect_right(cuts, ms) - 1] for ms in moments}
        answers = {ms: await all_rows(first, our_query(cut * 1_000)) for ms, cut in at_cut.items()}
        return Bank(paths, versions, answers)


def paths_of(root: Path) -> dict[str, Path]:
    """Directories are named in the order of their creation."""
    return dict(zip(TABLES, sorted(root.glob("t*")), strict=True))


def times(path: Path) -> list[int]:
    """The in-commit timestamps of a table's versions."""
    logs = sorted((path / "_delta_log").glob("*.json"))
    infos = [json.loads(log.read_text().splitlines()[0])["commitInfo"] for log in logs]
    return [info["inCommitTimestamp"] for info in infos]


def told_bank(root: Path) -> Bank:
    """A bank whose files lie below `root`."""

    async def story() -> Bank:
        store = MirroredStore(root)
        try:
            async with running(store=store, core=CoreSettings(cut_age_us=40_000)) as stack:
                return await tell(stack, root)
        finally:
            store.close()

    return asyncio.run(story())


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return told_bank(tmp_path_factory.mktemp("moments"))


def test_the_past_was_asked_while_money_moved(bank: Bank) -> None:
    assert len({tuple(answer) for answer in bank.answers.values()}) > 2
    for answer in bank.answers.values():
        assert sum(balance for _, _, balance in answer) == len(TABLES) * ACCOUNTS * BALANCE


def test_delta_rs_has_our_answer_at_any_moment(bank: Bank) -> None:
    """It goes by the modification times of the log files (C5 of `storage/cuts.py`)."""
    for ms, expected in bank.answers.items():
        found: Balances = []
        for name, path in bank.paths.items():
            table = DeltaTable(path)
            table.load_as_version(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms))
            builder = QueryBuilder().register("t", table)
            rows = pa.table(builder.execute("SELECT id, balance FROM t").read_all()).to_pylist()
            found += sorted((name, row["id"], row["balance"]) for row in rows)
        assert found == expected, ms


def test_duckdb_has_our_answer_at_any_moment(bank: Bank) -> None:
    """It has no time travel by time: the version of a time is what the protocol says."""
    parts = [f"SELECT '{name}', id, balance FROM {name}" for name in TABLES]
    with duckdb_reader() as duckdb:
        for ms, expected in bank.answers.items():
            versions = {n: bisect_right(times, ms) - 1 for n, times in bank.versions.items()}
            found = duckdb.query(f"{' UNION ALL '.join(parts)} ORDER BY 1, 2", bank.paths, versions)
            assert found == expected, ms
