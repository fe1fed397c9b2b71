"""The same question again: written and parsed once, few rows fetched as they are, same answers."""

import math
from collections.abc import Sequence
from decimal import Decimal

import pytest

from compute.duckdb.statements import FEW_ROWS
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.plan.nodes import Plan
from sql.statements.bound import BoundQuery
from sql.types.sql_type import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    Value,
)
from tests.engines.duckdb.local_engine import Engine


def plan_of(text: str, *types: SqlType) -> Plan:
    """The plan of a query without tables."""
    prepared = bind(parse(text)[0], BindContext(Catalog(), ["public"], 0), types)
    assert isinstance(prepared.bound, BoundQuery)
    return prepared.bound.plan


def few(engine: Engine, plan: Plan) -> bool:
    """Whether the next run of the plan fetches rows as they are."""
    return engine.executor.statements.gives_few(plan)


@pytest.mark.parametrize(
    "shown",
    [
        "true, null::bool, 7::int2, -7::int4, 9223372036854775807::int8",
        "1.5::float4, 'nan'::float8, '-0'::float8, 1e300::float8, 'infinity'::float8",
        "1.50::numeric(9,2), 12345678901234567890.123456789012345678::numeric, null::numeric",
        "'x'::text, 'a' || chr(128512), null::text, ''::text, '\\x00ff'::bytea, null::bytea",
        "date '2020-02-29', date '0001-01-01', date '9999-12-31', date '12020-01-01', null::date",
        "timestamp '2020-02-29 01:02:03.000004', timestamp '0001-01-01 00:00:00'",
        "timestamptz '1969-12-31 23:59:59.999999+00', timestamptz '9999-12-31 23:59:59.999999+00'",
        "timestamptz '20000-01-01 00:00:00+00', timestamp '20000-01-01 00:00:00'",
        "array[1, null, 3], array['a', null], array[1.5, null]::float8[], array[]::int[]",
        "array[date '2020-01-01', null], array[timestamptz '2020-01-01 00:00:00+00']",
        "'1 mon 2 days 03:04:05.000006'::interval, null::interval, time '01:02:03'",
        "'c0ffee00-0000-0000-0000-000000000001'::uuid, '{\"a\": 1}'::json, '[1]'::jsonb",
    ],
)
def test_rows_are_those_of_the_stream(engine: Engine, shown: str) -> None:
    plan = plan_of(f"select {shown} from generate_series(1, 2)")
    assert not few(engine, plan)
    first = engine.values(plan)
    assert few(engine, plan)
    assert repr(engine.values(plan)) == repr(first)
    assert len(first) == 2


def test_more_rows_than_the_last_time(engine: Engine) -> None:
    plan = plan_of("select x, x::text from generate_series(1, $1) x", INT4)
    for count in (3, FEW_ROWS, FEW_ROWS + 1, 70_000, 2, 0):
        found = engine.answer(plan, None, (count,))
        assert found == [(x, str(x)) for x in range(1, count + 1)], count
    assert not few(engine, plan), "it may be many again"


def test_functions_in_python_among_few_rows(engine: Engine) -> None:
    plan = plan_of("select max(x::text::name) from generate_series(1, $1) x", INT4)
    for count in (9, 30_000):
        assert engine.answer(plan, None, (count,)) == [(str(9 if count == 9 else 9999),)]


def test_no_rows(engine: Engine) -> None:
    plan = plan_of("select x, 'a' from generate_series(1, $1) x", INT4)
    for _ in range(3):
        assert engine.answer(plan, None, (0,)) == []


def test_an_aggregate_is_one_row(engine: Engine) -> None:
    assert few(engine, plan_of("select sum(x) from generate_series(1, 9) x"))
    assert few(engine, plan_of("select x from generate_series(1, 9) x order by 1 limit 5"))
    assert not few(engine, plan_of("select sum(x) from generate_series(1, 9) x group by x"))
    assert not few(engine, plan_of("select x from generate_series(1, 900) x limit 500"))


def test_errors_of_few_rows(engine: Engine) -> None:
    plan = plan_of("select sum(1 / (x - $1)) from generate_series(1, 9) x", INT4)
    assert engine.answer(plan, None, (10,)) == engine.answer(plan, None, (10,))
    with pytest.raises(SqlError) as raised:
        engine.answer(plan, None, (5,))
    assert raised.value.sqlstate == "22012"


PARAMETERS: tuple[tuple[SqlType, Sequence[Value]], ...] = (
    (BOOL, (True, False, None, True)),
    (INT4, (1, -5, None, 2147483647)),
    (INT8, (1, -(1 << 63), None, (1 << 63) - 1)),
    (FLOAT8, (0.1, -0.0, math.inf, 5e-324, math.nan, None)),
    (TEXT, ("", "it's", "$q1 ' \\ %", None, "é\U0001f600")),
    (DATE, (0, -719162, 2932896, None)),
    (TIMESTAMP, (0, -1, 253402300799999999, None)),
    (TIMESTAMPTZ, (0, -1, 253402300799999999, None)),
)


@pytest.mark.parametrize(("type_", "values"), PARAMETERS, ids=lambda value: str(value)[:20])
def test_parameters_are_bound(engine: Engine, type_: SqlType, values: Sequence[Value]) -> None:
    plan = plan_of("select x, $1 is null, $1 from generate_series(1, 1) x", type_)
    texts: set[str] = set()
    for value in (*values, *values):
        ((x, is_null, found),) = engine.values(plan, None, (value,))
        assert (x, is_null) == (1, value is None)
        assert repr(found) == repr(value)
        texts.add(engine.executor.statements.emitted(plan, {}, (value,)).text)
    assert len(texts) == 1 + (None in values), "only NULL is written"


def test_numbers_of_one_value_are_not_mixed_up(engine: Engine) -> None:
    numeric = SqlType("numeric", precision=38, scale=18)
    plan = plan_of("select $1 || '', x from generate_series(1, 1) x", TEXT)
    for text in ("1", "1.0", "1.00"):
        assert engine.answer(plan, None, (text,)) == [(text, 1)]
    plan = plan_of("select $1 + 0.5, x from generate_series(1, 1) x", numeric)
    for value in (Decimal(1), Decimal("1.0"), Decimal("-0.000000000000000001")):
        ((found, _),) = engine.values(plan, None, (value,))
        assert found == value + Decimal("0.5")


def test_what_shapes_the_text_is_no_argument(engine: Engine) -> None:
    plan = plan_of(
        "select x from generate_series(1, 9) x order by x limit $1 offset $2", INT8, INT8
    )
    for limit, offset in ((2, 0), (3, 1), (None, 7), (0, None), (2, 0)):
        end = 9 if limit is None else (offset or 0) + limit
        rows = [(x,) for x in range(1 + (offset or 0), min(end, 9) + 1)]
        assert engine.answer(plan, None, (limit, offset)) == rows
    with pytest.raises(SqlError) as raised:
        engine.answer(plan, None, (-1, 0))
    assert raised.value.sqlstate == "2201W"
    plan = plan_of(
        "select x from unnest(array['ab', 'b', 'c%']) x where x like $1 order by 1", TEXT
    )
    for pattern, rows in (("%b", [("ab",), ("b",)]), ("c\\%", [("c%",)]), ("b", [("b",)])):
        assert engine.answer(plan, None, (pattern,)) == rows
