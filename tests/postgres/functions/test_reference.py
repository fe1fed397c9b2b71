"""Every row of the function table on the reference evaluator, against PostgreSQL's answers.

    REWRITE=1 pytest tests/postgres/functions/test_reference.py records the answers from a real
    PostgreSQL again REFUSALS=1 pytest tests/postgres/functions records what the engines refuse

`-k family` does it for one family, a data file of the table.

An engine may refuse an expression (0A000); which ones it refuses is on record too, so that a
refusal is a decision and not an accident.
"""

import os
from collections.abc import Iterable
from decimal import Decimal, localcontext
from pathlib import Path

import pytest

from compute.reference.executor import execute_plan
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.plan.nodes import Call, GroupBy, Plan, Subquery, output_columns
from sql.plan.traverse import child_expressions, inputs, plan_expressions
from sql.statements.bound import BoundQuery
from sql.types.sql_type import SqlType, Value
from sql.types.text_output import format_text
from tests.postgres.functions.generating import FAMILIES, expressions
from tests.postgres.functions.recorded import TESTDATA, Answer, ask, read, write
from tests.support.servers import postgres

REWRITE = os.environ.get("REWRITE") == "1"


def plan_of(expression: str) -> Plan:
    statement = parse(f"select {expression}")[0]
    prepared = bind(statement, BindContext(Catalog(), ["public"], 0), [])
    assert isinstance(prepared.bound, BoundQuery)
    return prepared.bound.plan


def answer(value: Value, type_: SqlType) -> Answer:
    return Answer(type_.name, None if value is None else format_text(value, type_))


def on_reference(expression: str) -> tuple[Answer, SqlType | None]:
    try:
        plan = plan_of(expression)
        type_ = output_columns(plan)[0].type
        ((value,),) = list(execute_plan(plan, {}))
        return answer(value, type_), type_
    except SqlError as error:
        return Answer(f"!{error.sqlstate}", error.message), None


def same(expression: str, found: Answer, type_: SqlType | None, expected: Answer) -> bool:
    if found.kind != expected.kind:
        return False
    if found.failed or found.text == expected.text:
        return True
    if found.text is None or expected.text is None or type_ is None:
        return False
    if type_.name == "numeric" and type_.trim:
        digits = Decimal(1) if "std" in expression else Decimal("0.5")
        return _close(Decimal(found.text), Decimal(expected.text), digits)
    return False


def _close(found: Decimal, expected: Decimal, digits: Decimal) -> bool:
    """Equal in all digits that both print: the number of decimals of a quotient is our own."""
    exponent = expected.as_tuple().exponent
    assert isinstance(exponent, int)
    # PostgreSQL's stddev is itself off by less than one in its last digit.
    return abs(found - expected) <= max(
        Decimal(1).scaleb(exponent) * digits, Decimal(1).scaleb(-18)
    )


def is_refusal(found: Answer, expected: Answer) -> bool:
    """Whether an error of ours says that we do not do this, where PostgreSQL does."""
    if expected.failed or not found.failed:
        return found.kind == "!0A000" != expected.kind
    # Infinite dates and intervals are out of range for us; a LIKE pattern with a bad end is found
    # before it matters.
    infinite = found.kind == "!22008" and expected.text in ("infinity", "-infinity")
    early = found.kind == "!22025"
    too_wide = found.kind == "!22003" and _too_wide(expected)
    return found.kind == "!0A000" or infinite or early or too_wide


def _too_wide(expected: Answer) -> bool:
    """A numeric, alone or in an array, that no engine of ours can hold: 22003 refuses rightly."""
    if expected.kind not in ("numeric", "_numeric") or expected.text is None:
        return False
    return any(map(_is_too_wide, expected.text.strip("{}").split(",")))


def _is_too_wide(text: str) -> bool:
    if not text[-1:].isdigit():
        return text not in ("", "NULL")
    value = Decimal(text)
    with localcontext(prec=100):
        return value.adjusted() >= 20 or value != round(value, 18)


def check(engine: str, family: str, wrong: Iterable[str], refused: Iterable[str]) -> None:
    """No wrong answers; refusals as recorded."""
    listed = list(wrong)
    assert not listed, f"{len(listed)} wrong:\n" + "\n".join(listed[:60])
    path = _refusals(engine, family)
    if REWRITE or os.environ.get("REFUSALS") == "1":
        path.write_text("".join(f"{line}\n" for line in sorted(refused)), encoding="utf-8")
    assert sorted(refused) == path.read_text(encoding="utf-8").splitlines()


def refusals(engine: str, family: str) -> frozenset[str]:
    """What is on record as refused."""
    return frozenset(_refusals(engine, family).read_text(encoding="utf-8").splitlines())


def _refusals(engine: str, family: str) -> Path:
    return TESTDATA / f"refused_{engine}_{family}.txt"


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest) -> dict[str, Answer]:
    family: str = request.param
    if REWRITE or not (TESTDATA / f"{family}.jsonl").exists():
        with postgres() as dsn:
            write(family, ask(dsn, expressions(family)))
    return read(family)


@pytest.mark.parametrize(("family", "recorded"), [(f, f) for f in FAMILIES], indirect=["recorded"])
def test_reference_answers_as_postgresql(family: str, recorded: dict[str, Answer]) -> None:
    wrong: list[str] = []
    refused: list[str] = []
    for expression, expected in recorded.items():
        found, type_ = on_reference(expression)
        if is_refusal(found, expected):
            refused.append(f"{expression}  -- {found.text}")
        elif not same(expression, found, type_, expected):
            wrong.append(f"{expression}: {found} instead of {expected}")
    check("reference", family, wrong, refused)


def functions_of(plan: Plan) -> set[str]:
    found: set[str] = set()
    plans = [plan]
    while plans:
        node = plans.pop()
        plans += inputs(node)
        if isinstance(node, GroupBy):
            found |= {call.function.id for call in node.aggregates}
        exprs = list(plan_expressions(node))
        while exprs:
            expr = exprs.pop()
            if isinstance(expr, Call):
                found.add(expr.function.id)
            if isinstance(expr, Subquery):
                plans.append(expr.plan)
            exprs += child_expressions(expr)
    return found
