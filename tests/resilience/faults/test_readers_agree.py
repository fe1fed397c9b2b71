"""After random transactions and crashes, other readers see in every version what we say was there.

    random DML, crashes, cuts ─▶ stop ─▶ start: AS OF every cut ─▶ our answer
                                  └▶ the files: delta-rs, DuckDB, delta-spark ─▶ theirs

INVARIANTS
  V1  version N of a table is what `AS OF` its cut answers: the log names the cut.
  V2  every table is compared in every version, from its first one.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import asyncpg
import psycopg
import pytest

from tests.resilience.faults import nemesis
from tests.resilience.faults.clients import Account, Client
from tests.resilience.faults.nemesis import Strike, Target
from tests.resilience.faults.preload import Faults
from tests.resilience.faults.running import HURRIED, REFERENCE, Plan, load, report_on
from tests.resilience.history.events import Finding, Operation
from tests.support.foreign_readers import (
    DeltaRs,
    ForeignReader,
    Rows,
    delta_spark_reader,
    duckdb_reader,
)
from tests.support.log_cuts import cuts_of_versions
from tests.support.servers import meridian

COLUMNS = "id bigint NOT NULL, label text, price numeric(12, 2), ratio double precision, ok boolean"
QUERY = "SELECT id, label, CAST(price * 100 AS bigint), ratio, ok FROM {table}"


class Changes:
    """Random inserts, updates and deletes of one to three tables at once."""

    tables = ("parts", "orders", "lines", "notes")

    async def create(self, client: Client) -> None:
        """See Workload."""
        for table in self.tables:
            await client.fetch(f"CREATE TABLE {table} ({COLUMNS})")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        statements = [
            self._statement(table, client.account, rng)
            for table in rng.sample(self.tables, rng.choice((1, 1, 2, 3)))
        ]

        async def body(connection: asyncpg.Connection) -> Sequence[Operation]:
            for statement in statements:
                await connection.execute(statement)
            return []

        await client.transact([], body)

    def _statement(self, table: str, account: Account, rng: random.Random) -> str:
        low = rng.randrange(1, account.acknowledged + 10)
        match rng.choice(("insert", "insert", "insert", "update", "delete", "copy")):
            case "insert":
                rows = [_row(account.value(), rng) for _ in range(rng.randint(1, 20))]
                return f"INSERT INTO {table} VALUES {', '.join(rows)}"
            case "update":
                return (
                    f"UPDATE {table} SET price = price + 1, label = 'changed ' || id, ok = NOT ok"
                    f" WHERE id BETWEEN {low} AND {low + 20}"
                )
            case "delete":
                return f"DELETE FROM {table} WHERE id BETWEEN {low} AND {low + 8}"
            case _:
                source = rng.choice([name for name in self.tables if name != table])
                return (
                    f"INSERT INTO {table} SELECT id, label, price, ratio, ok FROM {source}"
                    f" WHERE id BETWEEN {low} AND {low + 15}"
                )

    async def read_all(self, client: Client) -> bool:
        """See Workload."""
        for table in self.tables:
            await client.fetch(f"SELECT * FROM {table}")
        return True

    def judge(self, account: Account) -> list[Finding]:
        """The readers are the judges."""
        return []


def _row(number: int, rng: random.Random) -> str:
    label = rng.choice(("NULL", "''", f"'row {number}'", f"'{'ä' * rng.randint(1, 40)}'"))
    price = rng.choice(("NULL", f"{rng.randint(-99_999, 99_999)}.{rng.randint(0, 99):02}"))
    ratio = rng.choice(("NULL", "0.5", f"{rng.random()!r}", "1e300"))
    return f"({number}, {label}, {price}, {ratio}, {rng.choice(('NULL', 'true', 'false'))})"


async def make_cuts_due(target: Target) -> None:
    """Another version of every table that was written."""
    target.make_cuts_due()


async def crash(target: Target) -> None:
    """kill -9 while cuts are written."""
    target.make_cuts_due()
    await target.progress(2)
    await nemesis.kill(target)


def _directories(dsn: str, warehouse: Path) -> Mapping[str, Path]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        shards = connection.execute("SELECT DISTINCT table_name, shard FROM meridian.cuts")
        return {table: warehouse / shard for table, shard in shards.fetchall()}


def _normal(rows: Iterable[Sequence[object]]) -> Rows:
    return sorted((tuple(row) for row in rows), key=repr)


def _ours(dsn: str, table: str, cuts: Mapping[int, int]) -> Mapping[int, Rows]:
    question = QUERY.format(table=table)
    with psycopg.connect(dsn, autocommit=True) as connection:
        return {
            version: _normal(connection.execute(f"{question} AS OF {cut}".encode()).fetchall())
            for version, cut in cuts.items()
        }


@pytest.fixture(scope="module")
def readers() -> Iterator[Mapping[str, ForeignReader]]:
    with duckdb_reader() as duckdb:
        yield {"delta-rs": DeltaRs(), "DuckDB": duckdb}


def _changed(directory: Path, strikes: Sequence[Strike], between: int) -> Path:
    """A data directory after the load."""
    faults = Faults(directory)
    plan = Plan(strikes, clients=4, between=between)
    with meridian(faults.root, (*REFERENCE, *HURRIED), faults.environment) as server:
        account = asyncio.run(load(server, faults, Changes(), plan))
        assert server.stop() == 0, server.log
    report_on(f"readers, {len(strikes)} cuts and crashes", account, Changes())
    return faults.root


def _compare(root: Path, readers: Mapping[str, ForeignReader]) -> int:
    """Compare all readers on every table and version (V2); how many answers were compared."""
    compared = 0
    with meridian(root, REFERENCE) as server:
        for table, path in _directories(server.dsn, server.data / "warehouse").items():
            cuts = cuts_of_versions(path)
            assert [*cuts] == [*range(len(cuts))], f"{table}: versions are missing"
            for version, ours in _ours(server.dsn, table, cuts).items():
                for name, reader in readers.items():
                    question = QUERY.format(table=table)
                    theirs = reader.query(question, {table: path}, {table: version})
                    assert _normal(theirs) == ours, f"{name}, {table}, version {version}"
                    compared += 1
    return compared


def test_readers_agree_after_fifty_transactions(
    tmp_path: Path, readers: Mapping[str, ForeignReader]
) -> None:
    root = _changed(tmp_path, [make_cuts_due, crash, make_cuts_due], between=13)
    # Four tables, two readers, and more than one version of most.
    assert _compare(root, readers) >= 16


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory after a thousand transactions with thirteen crashes."""
    strikes = [make_cuts_due, make_cuts_due, crash] * 13
    return _changed(tmp_path_factory.mktemp("thousand"), strikes, between=26)


@pytest.mark.slow
def test_readers_agree_after_a_thousand_transactions(
    thousand: Path, readers: Mapping[str, ForeignReader]
) -> None:
    assert _compare(thousand, readers) >= 200


@pytest.mark.slow
@pytest.mark.spark
def test_delta_spark_agrees_after_a_thousand_transactions(thousand: Path) -> None:
    with delta_spark_reader() as spark:
        assert _compare(thousand, {"delta-spark": spark}) >= 100
