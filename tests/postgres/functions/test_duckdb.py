"""The same expressions on the local engine: what it answers is what PostgreSQL answers."""

import asyncio
from collections.abc import Iterator

import pytest

from compute.duckdb.database import LocalSettings
from compute.duckdb.executor import LocalExecutor
from compute.executor import Run
from compute.reference.arrow import to_values
from sql.errors import SqlError
from sql.plan.nodes import output_columns
from sql.types.sql_type import SqlType
from tests.postgres.functions.generating import FAMILIES
from tests.postgres.functions.recorded import Answer, read
from tests.postgres.functions.test_reference import answer, check, is_refusal, plan_of, same
from tests.postgres.functions.test_spark import close_floats


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalExecutor]:
    directory = tmp_path_factory.mktemp("local")
    executor = LocalExecutor(LocalSettings(directory, directory / "spill"))
    yield executor
    asyncio.run(executor.close())


async def ask(local: LocalExecutor, expression: str) -> tuple[Answer, SqlType | None]:
    try:
        plan = plan_of(expression)
        type_ = output_columns(plan)[0].type
        values = [
            value
            async for batch in local.run(Run(plan, {}))
            for value in to_values(batch.column(0), type_)
        ]
    except SqlError as error:
        return Answer(f"!{error.sqlstate}", error.message), None
    assert len(values) == 1
    return answer(values[0], type_), type_


@pytest.mark.parametrize("family", FAMILIES)
def test_local_answers_as_postgresql(local: LocalExecutor, family: str) -> None:
    wrong: list[str] = []
    refused: list[str] = []

    async def ask_all() -> None:
        for expression, expected in read(family).items():
            found, type_ = await ask(local, expression)
            if is_refusal(found, expected):
                refused.append(f"{expression}  -- {found.text}")
            elif not (same(expression, found, type_, expected) or close_floats(found, expected)):
                wrong.append(f"{expression}: {found} instead of {expected}")

    asyncio.run(ask_all())
    check("local", family, wrong, refused)
