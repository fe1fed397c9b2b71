# ruff: noqa: E501 -- a statement stands on one line
"""Deep, long and wide statements answer, or fail with 54xxx or 53xxx; the server lives."""

import pytest

from tests.postgres.queries.answers import Done, Failed, Rows
from tests.security.conftest import Target

MANY = 5_000
DEEP = 10_000
LIMITS = ("53", "54")

STATEMENTS = {
    "parentheses": f"select {'(' * DEEP}a{')' * DEEP} from safe",
    "parentheses that do not match": f"select {'(' * DEEP}a from safe",
    "brackets": f"select {'array[' * DEEP}1{']' * DEEP}",
    "signs": f"select {'- ' * DEEP}a from safe",
    "nots": f"select a from safe where {'not ' * DEEP}true",
    "casts": f"select a{'::int' * DEEP} from safe",
    "functions": f"select {'abs(' * DEEP}a{')' * DEEP} from safe",
    "cases": f"select {'case when a = 1 then ' * 2_000}1{' end' * 2_000} from safe",
    "subqueries": f"select {'(select ' * 2_000}1{')' * 2_000} from safe",
    "derived tables": f"select * from {'(select * from ' * 1_000}safe{') x' * 1_000}",
    "sum": f"select {'+'.join(['a'] * DEEP)} from safe",
    "concatenation": f"select {'||'.join(['t'] * DEEP)} from safe",
    "ands": f"select a from safe where {' and '.join(['a = 1'] * DEEP)}",
    "ors": f"select a from safe where {' or '.join(f'a = {n}' for n in range(DEEP))}",
    "in": f"select a from safe where a in ({','.join(map(str, range(MANY)))})",
    "in of text": f"select a from safe where t in ({','.join(f'$${n}x$$' for n in range(MANY))})",
    "in of expressions": f"select a from safe where a in ({','.join(f'{n} + 0' for n in range(MANY))})",
    "not in": f"select a from safe where a not in ({','.join(map(str, range(2, MANY)))})",
    "any": f"select a from safe where a = any(array[{','.join(map(str, range(MANY)))}])",
    "values": f"select count(*) from (values {','.join(f'({n})' for n in range(MANY))}) v",
    "unions": " union all ".join(["select a from safe"] * 2_000),
    "columns": f"select {','.join(['a'] * 1_600)} from safe",
    "too many columns": f"select {','.join(['a'] * 20_000)} from safe",
    "joins": "select count(*) from safe s0 " + " ".join(f"join safe s{n} on true" for n in range(1, 60)),
    "ctes": "with " + ", ".join(f"x{n} as (select {n} as a)" for n in range(500)) + " select * from x499",
    "order by": f"select a from safe order by {','.join(['a'] * 1_500)}",
    "a long literal": f"select length('{'x' * 1_000_000}') from safe",
    "a long name": f"select a as {'x' * 1_000_000} from safe",
    "a long comment": f"select a /* {'x' * 1_000_000} */ from safe",
    "a long number": f"select a from safe where a = {'9' * 100_000}",
    "a long insert": f"insert into wide values {','.join(f'({n}, $$row {n}$$)' for n in range(60_000))}",
    "a long blank": f"select a{' ' * 1_000_000}from safe",
    "many statements": "select 1;" * 5_000,
}  # fmt: skip
ON_SPARK = (  # one of each kind
    "parentheses",
    "functions",
    "in",
    "in of text",
    "concatenation",
    "a long literal",
    "joins",
)


@pytest.mark.parametrize("name", STATEMENTS)
def test_answers_or_says_that_it_is_too_much(local: Target, name: str) -> None:
    _answers_or_says_that_it_is_too_much(local, name)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_answers_or_says_that_it_is_too_much(spark_server: Target, name: str) -> None:
    _answers_or_says_that_it_is_too_much(spark_server, name)


def _answers_or_says_that_it_is_too_much(target: Target, name: str) -> None:
    [_, answer, _] = target.ask(
        "create table if not exists wide (a int, t text)", STATEMENTS[name], "drop table wide"
    )
    told = isinstance(answer, Rows | Done) or answer.sqlstate.startswith(
        (*LIMITS, "42601", "22003")
    )
    assert told, answer
    if isinstance(answer, Failed) and answer.sqlstate == "42601":
        assert name == "parentheses that do not match"
    target.lives()
