"""Queries on DuckDB with and without its optimizers: a wrong answer is made small and printed.

    python -m tests.engines.duckdb.optimizers ..
        --seconds 60 --seed 1        random queries, one after the other
        --replay 4711                one of them, by its number
        --sql "select .."            any query over the same tables
        --areas joins subqueries     statements of tests/postgres/queries

What is printed is wrong in DuckDB, unless the statement leaves it open. A statement of
`tests/postgres/queries` may, a random one does not.
"""

import argparse
import asyncio
import contextlib
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import psycopg
import pyarrow as pa

from compute.executor import Run
from coordinator.core.settings import CoreSettings
from sql.errors import SqlError
from tests.engines.duckdb.large_tables import LargeTables
from tests.engines.duckdb.local_engine import Engine
from tests.engines.duckdb.unoptimized_twin import Answer, Twins
from tests.postgres.fuzz.shapes import Shapes
from tests.postgres.fuzz.shrinking import smallest
from tests.postgres.queries.running import session
from tests.postgres.queries.statement_files import areas, cases
from tests.support.stack import serving

NO_FILES = CoreSettings(cut_age_us=1 << 60, cut_bytes_max=1 << 60, cut_commits_max=1 << 60)
"""A server that keeps all rows in memory, where its local engine finds them."""

Answers = Mapping[str, Answer]


class Comparison:
    """Twins over large tables, and how often they were alike."""

    def __init__(self, directory: Path, **options: tuple[str, ...]) -> None:
        self.twins = Twins(directory, directory / "spill", **options)
        self.tables = LargeTables(Engine(self.twins.ours, directory))
        self.counts: Counter[str] = Counter()

    def is_wrong(self, text: str) -> bool:
        """Whether it has several answers."""
        try:
            return len(self.twins.answers(self.tables.run(text))) > 1
        except SqlError:
            return False

    def try_one(self, text: str) -> bool:
        """Compare; whether all answered alike. Prints what is wrong."""
        found = self.twins.answers(self.tables.run(text))
        self.counts[{0: "not compared", 1: "alike"}.get(len(found), "WRONG")] += 1
        if len(found) < 2:
            return True
        less = smallest(text, self.is_wrong)
        run = self.tables.run(less)
        tell(less, self.twins.answers(run), self.twins.guilty(run))
        return False


def tell(text: str, found: Answers, guilty: Sequence[str]) -> None:
    """Print what was found, and the optimizers that have to do with it."""
    print(f"{text}\n# {', '.join(guilty) or 'no optimizer alone'}")
    print("".join(f"#   {name}: {answer}\n" for name, answer in found.items()), flush=True)


class Watched:
    """The local engine of a server, and what of its answers was not alike."""

    name = "local"

    def __init__(self, twins: Twins) -> None:
        self._twins = twins
        self.count = 0
        self.found: list[tuple[Run, Answers]] = []

    async def run(self, run: Run) -> AsyncIterator[pa.RecordBatch]:
        """See Executor."""
        found = await asyncio.to_thread(self._twins.answers, run)
        self.count += 1
        if len(found) > 1:
            self.found.append((run, found))
        async for batch in self._twins.ours.run(run):
            yield batch

    async def close(self) -> None:
        """See Executor; the twins are closed by who made them."""


def try_areas(names: Sequence[str], directory: Path) -> int:
    """All statements of these files, as many as were not alike are printed."""
    twins = Twins(directory, directory / "spill")
    watched = Watched(twins)
    wrong = 0
    with contextlib.closing(twins), serving(local=watched, core=NO_FILES) as dsn:
        for area in names:
            for text in _asked(dsn, area):
                for run, found in watched.found:
                    tell(f"# {area}\n{text}", found, twins.guilty(run))
                    wrong += 1
                watched.found.clear()
    print(f"{watched.count} plans")
    return wrong


def _asked(dsn: str, area: str) -> Iterator[str]:
    """Each statement of a file, when it was run."""
    with session(dsn, area, "local") as connection:
        for case in cases(area):
            connection.send_query(case.text.encode())
            # libpq's own waiting would keep the server, in this process, from answering.
            psycopg.waiting.wait(psycopg.generators.execute(connection), connection.socket)
            yield case.text


def main() -> None:
    """Do what the arguments say; exit code 1 if anything was not alike."""
    parser = argparse.ArgumentParser(prog="tests.engines.duckdb.optimizers", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first query")
    parser.add_argument("--replay", type=int, help="only this query")
    parser.add_argument("--sql", help="only this query")
    parser.add_argument("--areas", nargs="*", help="all, if none is named")
    arguments = parser.parse_args()
    # How DuckDB fails is told with the answers.
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="optimizers-") as place:
        if arguments.areas is not None:
            sys.exit(try_areas(arguments.areas or areas(), Path(place)) > 0)
        comparison = Comparison(Path(place))
        with contextlib.closing(comparison.twins):
            if arguments.sql or arguments.replay is not None:
                text = arguments.sql or Shapes(random.Random(arguments.replay)).draw()
                sys.exit(not comparison.try_one(text))
            seed, wrong = arguments.seed, 0
            end = time.monotonic() + arguments.seconds
            while time.monotonic() < end:
                if not comparison.try_one(Shapes(random.Random(seed)).draw()):
                    print(f"# that was --replay {seed}\n", flush=True)
                    wrong += 1
                seed += 1
    print(f"{seed - arguments.seed} queries:", dict(comparison.counts))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
