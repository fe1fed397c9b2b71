"""Statements about types on the reference evaluator and the local engine, as PostgreSQL answers."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Run
from compute.reference.executor import execute_plan
from sql.functions.table import FunctionKind, rows_of_file
from sql.plan.nodes import Plan
from tests.postgres.types.corpus import (
    NAMES,
    TESTDATA,
    Engine,
    Rows,
    differences,
    record,
    recorded,
    rows_of_batches,
    statements,
)
from tests.support.servers import postgres

REWRITE = os.environ.get("REWRITE") == "1"


@pytest.fixture(scope="module", autouse=True)
def _recorded() -> None:
    if REWRITE:
        with postgres() as dsn:
            for name in NAMES:
                record(dsn, name)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalExecutor]:
    directory = tmp_path_factory.mktemp("local")
    executor = LocalExecutor(LocalSettings(directory, directory / "spill"))
    yield executor
    asyncio.run(executor.close())


async def on_reference(plan: Plan) -> Rows:
    return list(execute_plan(plan, {}))


def check(name: str, engine: str, run: Engine) -> None:
    """No wrong answer, and no refusal that is not on record."""
    wrong: list[str] = []
    refused: list[str] = []

    async def ask_all() -> None:
        async for sql, what, is_refusal in differences(name, run):
            (refused if is_refusal else wrong).append(f"{sql}  -- {what}")

    asyncio.run(ask_all())
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])
    path = TESTDATA / f"{name}_refused_{engine}.txt"
    if os.environ.get("REFUSALS") == "1":
        path.write_text("\n".join(refused) + "\n", encoding="utf-8")
    assert refused == [line for line in path.read_text(encoding="utf-8").splitlines() if line]


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_answers_as_postgresql(name: str) -> None:
    assert list(recorded(name)) == list(dict.fromkeys(statements(name))), "record again: REWRITE=1"
    check(name, "reference", on_reference)


@pytest.mark.parametrize("name", NAMES)
def test_the_local_engine_answers_as_postgresql(name: str, local: LocalExecutor) -> None:
    async def on_local(plan: Plan) -> Rows:
        return await rows_of_batches(plan, local.run(Run(plan, {})))

    check(name, "local", on_local)


def test_refusals_belong_to_statements() -> None:
    for path in TESTDATA.glob("*_refused_*.txt"):
        assert path.name.partition("_")[0] in NAMES, path.name


SQLDIFF = Path(__file__).parent.parent / "queries" / "testdata"
"""Statement files, which have cases of rows that have none here."""


def test_every_row_of_the_table_has_cases() -> None:
    """By name: arrays, json and times have no samples from which cases could be made."""
    texts = " ".join(sql for name in NAMES for sql in statements(name)).lower()
    texts += " ".join(path.read_text().lower() for path in sorted(SQLDIFF.glob("*.txt")))
    for file in ("arrays.txt", "json.txt", "times.txt"):
        for row in rows_of_file(file):
            if not row.internal and row.kind is not FunctionKind.CAST and "." not in row.name:
                # What a set-returning function is rewritten to has its name, and a prefix.
                assert row.name.removeprefix("meridian_") in texts, row.id
