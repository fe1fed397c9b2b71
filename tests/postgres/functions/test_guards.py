"""What may fail for a row is guarded; what cannot is not: a guard hides joins from engines."""

import pytest

from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Column, Table
from sql.parser.parse import parse
from sql.plan.nodes import Expr, Project
from sql.rewrite.guard_expressions import may_fail
from sql.statements.bound import BoundQuery
from sql.types.sql_type import FLOAT4, INT4, INT8, TEXT, numeric, varchar

COLUMNS = (
    Column("i", INT4),
    Column("b", INT8),
    Column("r", FLOAT4),
    Column("n", numeric(10, 2)),
    Column("s", TEXT),
    Column("v", varchar(9)),
)
TABLE = Table(16_384, "public", "t", "t", COLUMNS)
CATALOG = Catalog(
    1,
    frozenset({"public"}),
    {("public", "t"): TABLE},
    {SYSTEM_TIMELINE.name: SYSTEM_TIMELINE},
    {},
)
CONTEXT = BindContext(CATALOG, ("public",), 0, user="u", database="d")


@pytest.mark.parametrize(
    "text",
    [
        "i::bigint = b",
        "i::float8 < r",
        "n::float4 > r",
        "i > n",
        "b::numeric = n",
        "n::numeric(12,2) = n",
        "n::numeric(12,4) = n",
        "v = s",
        "s like 'a%'",
        "i::bigint + 1 > 2 or n > 1",
    ],
)
def test_never_fails(text: str) -> None:
    assert not may_fail(_bound(text), by_overflow=False)


@pytest.mark.parametrize(
    "text",
    [
        "b::int = i",
        "n::int = i",
        "n::numeric(10,4) = n",
        "i::numeric(9) = 1",
        "b::numeric(18) = 1",
        "r::numeric = 1",
        "r::float8::float4 = r",
        "s::int = 1",
        "10 / i > 1",
        "s like v",
    ],
)
def test_may_fail(text: str) -> None:
    assert may_fail(_bound(text), by_overflow=False)


def test_overflow_is_a_failure_if_asked_for() -> None:
    assert may_fail(_bound("i + 1 = 2"))
    assert not may_fail(_bound("i + 1 = 2"), by_overflow=False)


def _bound(text: str) -> Expr:
    [statement] = parse(f"select {text} from t")
    query = bind(statement, CONTEXT, ()).bound
    assert isinstance(query, BoundQuery)
    assert isinstance(query.plan, Project)
    return query.plan.exprs[0]
