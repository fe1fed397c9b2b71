"""Arithmetic and casts of integers and numeric, with PostgreSQL's results and errors."""

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from itertools import permutations, product
from typing import Final

from compute.reference.decimals import EXACT, fit_to_numeric_type
from compute.reference.registry import Function, Maker, implements, makes
from sql.emit.quotient_levels import without_widening_cast
from sql.errors import SqlError, division_by_zero, out_of_range
from sql.plan.nodes import Call
from sql.types.division_scale import quotient_decimals
from sql.types.internal_char import char_as_text, char_of_integer, integer_of_char
from sql.types.numeric import numeric_cast_type
from sql.types.sql_type import (
    DISPLAY_NAMES,
    NUMERIC,
    NUMERIC_PRECISION_MAX,
    REG_TYPES,
    SqlType,
    computed_numeric,
)

_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}


# --- numeric -----------------------------------------------------------------------------------


def narrow(value: Decimal, type_: SqlType) -> Decimal:
    """The same number in another type, or 22003."""
    fitted = fit_to_numeric_type(value, type_)
    if fitted != value:
        raise SqlError("22003", "numeric value has too many digits after the decimal point")
    return fitted


def divide(left: Decimal, right: Decimal, types: tuple[SqlType, SqlType]) -> Decimal:
    """The quotient at the scale of `sql/types/division_scale.py`, rounded once, half from zero."""
    if not right:
        raise division_by_zero()
    scale = quotient_decimals(left, right, types)
    a, b = int(left.scaleb(38, EXACT)), int(right.scaleb(38, EXACT))
    quotient, rest = divmod(abs(a) * 10**scale, abs(b))
    quotient += rest * 2 >= abs(b)
    return Decimal(quotient if (a < 0) == (b < 0) else -quotient).scaleb(-scale, EXACT)


@makes("numeric / numeric")
def make_divide(call: Call) -> Function:
    """`numeric / numeric`."""
    types = (without_widening_cast(call.args[0]).type, call.args[1].type)
    return lambda a, b: fit_to_numeric_type(divide(a, b, types), call.type)


@implements("numeric % numeric", "mod(numeric,numeric)")
def modulo(a: Decimal, b: Decimal) -> Decimal:
    """The remainder, with the sign of the dividend."""
    if not b:
        raise division_by_zero()
    return EXACT.remainder(a, b)


@implements("div(numeric,numeric)")
def numeric_div(a: Decimal, b: Decimal) -> Decimal:
    """div(a, b): the quotient toward zero."""
    if not b:
        raise division_by_zero()
    return EXACT.divide_int(a, b)


def _to_places(value: Decimal, places: int, rounding: str) -> Decimal:
    places = max(min(places, 38), -38)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= places:
        return value
    return value.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=EXACT)


@implements("round(numeric)", "round(numeric,int4)")
def round_numeric(value: Decimal, places: int = 0) -> Decimal:
    """Round to so many decimals, half away from zero."""
    return _to_places(value, places, ROUND_HALF_UP)


@implements("trunc(numeric)", "trunc(numeric,int4)")
def trunc_numeric(value: Decimal, places: int = 0) -> Decimal:
    """Truncate to so many decimals, toward zero."""
    return _to_places(value, places, ROUND_DOWN)


@implements("ceil(numeric)", "ceiling(numeric)")
def ceil_numeric(value: Decimal) -> Decimal:
    """Round up."""
    return _to_places(value, 0, ROUND_CEILING)


@implements("floor(numeric)")
def floor_numeric(value: Decimal) -> Decimal:
    """Round down."""
    return _to_places(value, 0, ROUND_FLOOR)


makes("narrow(numeric)")(lambda call: lambda x: narrow(x, call.type))
implements("numeric + numeric", "+ numeric")(lambda a, b=0: EXACT.add(a, b))
implements("numeric - numeric")(EXACT.subtract)
implements("numeric * numeric")(EXACT.multiply)
implements("@ numeric", "abs(numeric)")(EXACT.abs)
# The unary minus of a context would round; copying the sign cannot.
implements("- numeric")(lambda x: x.copy_negate())
implements("sign(numeric)")(lambda x: Decimal((x > 0) - (x < 0)))


# --- integers ----------------------------------------------------------------------------------


def in_range(value: int, name: str) -> int:
    """The value if the integer type holds it, else 22003."""
    limit = 1 << (_BITS[name] - 1)
    if not -limit <= value < limit:
        raise out_of_range(DISPLAY_NAMES.get(name, name))
    return value


def int_plus(x: int) -> int:
    """The prefix operator `+`."""
    return x


def int_minus(x: int) -> int:
    """The prefix operator `-`."""
    return -x


def int_abs(x: int) -> int:
    """The absolute value."""
    return abs(x)


def int_invert(x: int) -> int:
    """The bitwise complement."""
    return ~x


def wrap_signed(value: int, bits: int) -> int:
    """The value modulo 2^bits, signed."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def integer_divide(a: int, b: int) -> int:
    """Integer division toward zero, as in C."""
    if b == 0:
        raise division_by_zero()
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@implements("mod(int2,int2)", "mod(int4,int4)", "mod(int8,int8)")
def remainder(a: int, b: int) -> int:
    """The remainder, with the sign of the dividend."""
    if b == 0:
        raise division_by_zero()
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def checked_integer(function: Callable[..., int]) -> Maker:
    """Wrap an integer function whose result must fit its type."""
    return lambda call: lambda *args: in_range(function(*args), call.type.name)


@makes("int2 << int4", "int4 << int4", "int8 << int4")
def shift_left(call: Call) -> Function:
    """Wraps; the count is taken modulo the width of the machine's word."""
    name = call.type.name
    mask = 63 if name == "int8" else 31
    return lambda a, n: wrap_signed(a << (n & mask), _BITS[name])


@makes("int2 >> int4", "int4 >> int4", "int8 >> int4")
def shift_right(call: Call) -> Function:
    """Arithmetic, the count modulo the width."""
    mask = 63 if call.type.name == "int8" else 31
    return lambda a, n: a >> (n & mask)


_INTEGERS: Final = ("int2", "int4", "int8")
_ONE: Final[dict[str, Callable[..., int]]] = {
    "+ {0}": int_plus, "- {0}": int_minus, "@ {0}": int_abs, "abs({0})": int_abs,
    "~ {0}": int_invert,
}  # fmt: skip
_TWO_OF_A_TYPE: Final[dict[str, Callable[..., int]]] = {
    "{0} % {0}": remainder, "{0} & {0}": operator.and_, "{0} | {0}": operator.or_,
    "{0} # {0}": operator.xor,
}  # fmt: skip
_TWO: Final[dict[str, Callable[..., int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": integer_divide,
}  # fmt: skip
for _id, _function in {**_ONE, **_TWO_OF_A_TYPE}.items():
    makes(*map(_id.format, _INTEGERS))(checked_integer(_function))
for _sign, _function in _TWO.items():
    _pairs = product(_INTEGERS, repeat=2)
    makes(*[f"{left} {_sign} {right}" for left, right in _pairs])(checked_integer(_function))
makes("gcd(int4,int4)", "gcd(int8,int8)")(checked_integer(math.gcd))
makes("lcm(int4,int4)", "lcm(int8,int8)")(checked_integer(math.lcm))


# --- casts between numbers ---------------------------------------------------------------------


@makes("numeric::int2", "numeric::int4", "numeric::int8")
def numeric_to_integer(call: Call) -> Function:
    """Half away from zero."""
    return lambda x: in_range(int(round_numeric(x)), call.type.name)


def _unsigned(value: int) -> int:
    return value & 0xFFFF_FFFF


def _to_oid(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise out_of_range("OID")
    return value


makes(*[f"{source}::{target}" for source, target in permutations(_INTEGERS, 2)])(
    checked_integer(int_plus)
)
implements("int2::numeric", "int4::numeric", "int8::numeric", "numeric::numeric")(
    EXACT.create_decimal
)
implements("bool::int4")(int)
implements("int4::bool")(bool)
implements("int4::char")(char_of_integer)
implements("char::int4")(integer_of_char)
implements("char::bpchar")(char_as_text)

_OIDS: Final = ("oid", *REG_TYPES)
# PostgreSQL reads a negative smallint or integer as the oid with the same bits.
implements(*[f"{small}::{oid}" for small in ("int2", "int4") for oid in _OIDS])(_unsigned)
implements(*[f"int8::{oid}" for oid in _OIDS])(_to_oid)
implements(
    *[f"{oid}::int8" for oid in _OIDS],
    *[f"oid::{name}" for name in REG_TYPES],
    *[f"{name}::oid" for name in REG_TYPES],
    "regproc::regprocedure",
    "regprocedure::regproc",
)(int)
implements("oid::int4")(lambda x: wrap_signed(x, 32))


# --- averages ----------------------------------------------------------------------------------


def average(values: list[Decimal], type_: SqlType) -> Decimal:
    """The exact sum of values of a type, divided once."""
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    count = computed_numeric(19, 0, trim=False)
    source = replace(numeric_cast_type(type_), precision=NUMERIC_PRECISION_MAX)
    return fit_to_numeric_type(divide(total, Decimal(len(values)), (source, count)), NUMERIC)
