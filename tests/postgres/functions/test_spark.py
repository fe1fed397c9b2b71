"""The same expressions on Spark: what it answers is what PostgreSQL answers.

Expressions that PostgreSQL answers run many at a time in one statement; errors need a statement
each. What Spark's workers compute is asked for in one SELECT, so that it crosses to Python once; of
its errors, which all come back in the same way, a few stand for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sql.emit.emitted_query import EmittedQuery
from sql.emit.error_tag import ERROR_TAG
from sql.emit.spark.dialect import emit
from sql.emit.spark.types import spark_type
from sql.errors import SqlError
from sql.plan.nodes import ColumnId, Expr, Plan, PlanColumn, Project, Values, output_columns
from sql.plan.traverse import is_volatile_plan
from sql.types.sql_type import SqlType
from tests.postgres.functions.generating import FAMILIES
from tests.postgres.functions.recorded import Answer, read
from tests.postgres.functions.spark_session import Spark
from tests.postgres.functions.test_reference import (
    answer,
    check,
    is_refusal,
    plan_of,
    refusals,
    same,
)

pytestmark = pytest.mark.spark
BATCH = 100
OUTSIDE_ERRORS_EVERY = 10
SLOW_EVERY = {
    "postgresql": 34,
    "arrays": 11,
    "patterns": 5,
    "texts": 5,
    "formats": 5,
    "json": 22,
    "times": 11,
    "aliases": 11,
}
"""Of the cases of these families, which cross to Python or fail one by one, so many stand for one
that `make test` asks."""


@dataclass(frozen=True, slots=True)
class Case:
    expression: str
    expected: Answer
    plan: Plan
    query: EmittedQuery
    type: SqlType

    @property
    def outside(self) -> bool:
        return bool(self.query.functions)


def together(cases: Sequence[Case]) -> EmittedQuery:
    """All cases as scalar subqueries of one SELECT; those that workers compute as its columns."""
    if cases[0].outside:
        return emit(in_one_row([case.plan for case in cases]), {})
    arguments: dict[str, str] = {}
    parts: list[str] = []
    for index, case in enumerate(cases):
        text = case.query.text
        for name in sorted(case.query.arguments, key=len, reverse=True):
            text = text.replace(f":{name} ", f":x{index}_{name} ")
            arguments[f"x{index}_{name}"] = case.query.arguments[name]
        # PySpark does not take a NULL struct whose parts are never NULL.
        value = f"({text})"
        if case.type.name == "interval":
            value = f"cast({value} as {spark_type(case.type)})"
        parts.append(f"{value} as r{index}")
    return EmittedQuery(f"select {', '.join(parts)}", arguments, ())


def in_one_row(plans: Sequence[Plan]) -> Plan:
    """The only expression of each plan, side by side."""
    exprs: list[Expr] = []
    for plan in plans:
        assert isinstance(plan, Project), "a SELECT without FROM"
        assert isinstance(plan.input, Values), "a SELECT without FROM"
        exprs += plan.exprs
    columns = [PlanColumn(ColumnId(n), f"r{n}", expr.type) for n, expr in enumerate(exprs, 1)]
    return Project(Values((), ((),)), tuple(columns), tuple(exprs))


def ask(spark: Spark, cases: Sequence[Case]) -> list[Answer]:
    """Answers of the cases, halving the batch as long as something in it fails."""
    try:
        row = spark.row(together(cases), [case.type for case in cases])
        return [answer(value, case.type) for value, case in zip(row, cases, strict=True)]
    except SqlError as error:
        if len(cases) == 1:
            return [Answer(f"!{error.sqlstate}", error.message)]
        half = len(cases) // 2
        return ask(spark, cases[:half]) + ask(spark, cases[half:])


def close_floats(found: Answer, expected: Answer) -> bool:
    """Functions of floats may differ in the last place between two C libraries."""
    if found.kind != expected.kind or found.kind not in ("float4", "float8"):
        return False
    a, b = found.text, expected.text
    if a is None or b is None:
        return False
    return abs(float(a) - float(b)) <= 1e-14 * abs(float(b))


@pytest.mark.parametrize("family", FAMILIES)
def test_spark_answers_as_postgresql(spark: Spark, family: str) -> None:
    """All cases, or some of those that take long."""
    if every := SLOW_EVERY.get(family):
        wrong, refused = answered(spark, dict(list(read(family).items())[::every]))
        assert not wrong, "\n".join(wrong)
        assert set(refused) <= refusals("spark", family)
    else:
        check("spark", family, *answered(spark, read(family)))


@pytest.mark.slow
@pytest.mark.parametrize("family", SLOW_EVERY)
def test_spark_answers_all_as_postgresql(spark: Spark, family: str) -> None:
    check("spark", family, *answered(spark, read(family)))


def answered(spark: Spark, recorded: dict[str, Answer]) -> tuple[list[str], list[str]]:
    """What is wrong, and what is refused."""
    wrong: list[str] = []
    refused: list[str] = []
    cases: list[Case] = []
    for expression, expected in recorded.items():
        try:
            plan = plan_of(expression)
            query = emit(plan, {})
        except SqlError as error:
            if error.sqlstate == "0A000" != expected.kind[1:]:
                refused.append(f"{expression}  -- {error.message}")
            continue
        cases.append(Case(expression, expected, plan, query, output_columns(plan)[0].type))
    bad = [case for case in cases if case.expected.failed]
    batches: list[Sequence[Case]] = []
    for outside in (False, True):
        good = [case for case in cases if case.outside is outside and not case.expected.failed]
        # Volatile calls of plans bound apart have the same numbers (V1 of volatile_calls.py).
        batches += [[case] for case in good if is_volatile_plan(case.plan)]
        good = [case for case in good if not is_volatile_plan(case.plan)]
        batches += [good[at : at + BATCH] for at in range(0, len(good), BATCH)]
    batches += [[case] for case in bad if not case.outside]
    batches += [[case] for case in bad if case.outside][::OUTSIDE_ERRORS_EVERY]
    for batch in batches:
        for case, found in zip(batch, ask(spark, batch), strict=True):
            if is_refusal(found, case.expected):
                refused.append(f"{case.expression}  -- {found.text}")
            elif not (
                same(case.expression, found, case.type, case.expected)
                or close_floats(found, case.expected)
            ):
                wrong.append(f"{case.expression}: {found} instead of {case.expected}")
    return wrong, refused


def test_error_tag_is_what_the_adapter_maps() -> None:
    assert ERROR_TAG == "MERIDIAN:"
