"""Numbers whose arithmetic the local engine does itself, where DuckDB's own would differ."""

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from compute.reference.executor import execute_plan
from sql.errors import SqlError
from tests.engines.duckdb.local_engine import Engine
from tests.postgres.functions.test_reference import plan_of

SCALE = 18


def number(rng: random.Random) -> tuple[str, Decimal, int]:
    """A numeric literal of any type, its value, and its type's digits before the point."""
    precision = rng.randrange(1, 39)
    scale = rng.randrange(min(precision, 25) + 1)
    digits = min(rng.choice([1, 2, precision // 2 or 1, precision]), precision)
    value = rng.choice([rng.randrange(10**digits), 10 ** rng.randrange(digits), 10**digits - 1])
    decimal = Decimal((rng.randrange(2), tuple(map(int, str(value))), -scale))
    return f"'{decimal:f}'::numeric({precision},{scale})", decimal, precision - scale


def groups(value: Decimal) -> tuple[int, int]:
    """The first group of four digits that is not 0, and how many groups from the point it is."""
    units, _, decimals = f"{abs(value):f}".partition(".")
    units = units.zfill(-(-len(units) // 4) * 4)
    digits = units + decimals.ljust(-(-len(decimals) // 4) * 4, "0")
    first = next((at for at in range(0, len(digits), 4) if int(digits[at : at + 4])), None)
    return (0, 0) if first is None else (int(digits[first : first + 4]), (len(units) - first) // 4)


def rounded(x: Decimal, y: Decimal) -> Decimal:
    """select_div_scale's decimals, 18 at most, half away from zero."""
    (first_x, weight_x), (first_y, weight_y) = groups(x), groups(y)
    weight = weight_x - weight_y - (first_x <= first_y)
    decimals = min(max(16 - 4 * weight, _scale(x), _scale(y), 0), SCALE)
    quotient = Fraction(x) / Fraction(y)
    scaled = abs(quotient) * 10**decimals
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal((quotient < 0, tuple(map(int, str(whole))), -decimals))


@pytest.mark.parametrize("seed", range(4))
def test_quotients(engine: Engine, seed: int) -> None:
    rng = random.Random(seed)
    answered = 0
    refused: list[tuple[str, str, Decimal, Decimal, int]] = []
    for _ in range(100):
        (left, x, x_digits), (right, y, y_digits) = number(rng), number(rng)
        # Over columns: the binder divides constants itself.
        text = f"(select x / y from (values ({left}, {right})) v(x, y))"
        try:
            [(found,)] = engine.answer(plan_of(text))
        except SqlError as error:
            found = error.sqlstate
        if isinstance(found, str):
            refused.append((text, found, x, y, max(x_digits, y_digits)))
            continue
        answered += 1
        with localcontext(prec=100):
            assert found == rounded(x, y), text
    assert answered > 40
    for text, sqlstate, x, y, digits in refused:
        if not y:
            assert sqlstate in ("22012", "22003"), text
            continue
        assert sqlstate == "22003", text
        large = abs(Fraction(x) / Fraction(y)) >= 10**20
        assert large or digits > 20 or max(_scale(x), _scale(y)) > SCALE, text


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


@pytest.mark.parametrize("type_", ["float4", "float8"])
def test_text_of_floats(engine: Engine, type_: str) -> None:
    """The digits are DuckDB's where PostgreSQL writes no exponent, the reference's elsewhere."""
    rng = random.Random(type_)
    values = [
        "0", "-0", "1", "-1", "0.1", "1e-4", "9.9999e-5", "999999", "1e6", "1000000.5", "123456.7",
        "999999999999999", "1e15", "1e16", "123456789012345.6", "NaN", "-Infinity",
        *(repr(rng.uniform(-1, 1) * 10 ** rng.randrange(-8, 20)) for _ in range(300)),
    ]  # fmt: skip
    for value in values:
        plan = plan_of(f"(select x::text from (values ('{value}'::{type_})) v(x))")
        [(expected,)] = execute_plan(plan, {})
        assert engine.answer(plan) == [(expected,)], value
