"""Which Python function computes each row of the function table; built once, on first use.

INVARIANTS
  W1  every function, operator and cast of `sql/data/` that a plan can call has an implementation
      here; `tests/postgres/functions/test_python_functions.py` says so. Aggregates:
      `reference/aggregates.py`, windows: `reference/windows.py`, sets:
      `reference/set_returning.py`.
"""

import hashlib
import math
import operator
import random
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from itertools import count
from typing import Final

from compute.reference.function_families import family_function
from compute.reference.functions import arrays, numbers, text
from compute.reference.functions import datetime as times
from compute.reference.functions import regexp as regex
from compute.reference.functions.date_trunc import TRUNCATIONS
from compute.reference.functions.generate_series import LISTED
from compute.reference.functions.json import JSON_FUNCTIONS
from compute.reference.functions.numbers import Function, Maker, plain
from compute.reference.functions.powers import make_power
from compute.reference.functions.sql_json import SQL_JSON
from compute.reference.functions.styled_text import STYLED
from compute.reference.functions.time import CLOCK_FUNCTIONS
from sql.emit.templates import failure
from sql.errors import SqlError, not_supported, out_of_range
from sql.functions import table
from sql.functions.table import ARRAY_FORM, FunctionKind
from sql.plan.array_calls import converted_element, element_type
from sql.plan.nodes import Call, Const
from sql.regex.characters import lower, upper
from sql.types.internal_char import byte_of, character_of, of_integer
from sql.types.sql_type import REGISTERED, Value

DIGITS_MAX: Final = 100_000
"""Of a number that is read from text. More: a longer stall. Fewer: numbers are refused before it is
known what is wrong with them."""

sys.set_int_max_str_digits(DIGITS_MAX)

_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name"})
_INTEGERS: Final = frozenset({"int2", "int4", "int8"})
_FLOATS: Final = frozenset({"float4", "float8"})
_RANDOM: Final = random.SystemRandom()

_COMPARISONS: Final[dict[str, Function]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _is_negative_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) < 0


@cache
def makers() -> dict[str, Maker]:
    """The implementation of every row that is no aggregate, by id."""
    found: dict[str, Maker] = {}
    for row in table.all_functions():
        if row.kind is FunctionKind.AGGREGATE:
            continue
        maker = _maker(row)
        if maker is not None:
            found[row.id] = maker
    return found


def _maker(row: table.Function) -> Maker | None:
    if row.id in _ARRAY_MAPS:
        return _map_array
    if row.id in _OWN:
        return _OWN[row.id]
    failing = failure(row.duckdb or "")
    if failing is not None:
        return _failing(*failing)
    if row.name.endswith(ARRAY_FORM):
        return None if row.rewrite is not None else _spread
    if row.kind is FunctionKind.CAST:
        return family_function(row) or _cast(row)
    by_id = _BY_ID.get(row.id)
    if by_id is not None:
        return by_id
    by_family = family_function(row)
    if by_family is not None:
        return by_family
    if row.kind is FunctionKind.OPERATOR:
        return _operator(row)
    named = _NAMED.get(row.name)
    if named is None:
        return None
    return numbers.numeric_result(named) if row.result == "numeric" else plain(named)


def _failing(sqlstate: str, message: str) -> Maker:
    def fail() -> Value:
        raise SqlError(sqlstate, message)

    return plain(fail)


_OWN: Final[dict[str, Maker]] = {
    **JSON_FUNCTIONS,
    **CLOCK_FUNCTIONS,
    **LISTED,
    **SQL_JSON,
    **STYLED,
}
"""Casts and others whose rule is a function each."""


_ARRAY_MAPS: Final = frozenset(
    {
        "anyarray::anyarray",
        "assign(anyarray)",
        "narrow(anyarray)",
        "char_padded(anyarray,int4)",
        "char_trimmed(anyarray)",
    }
)


def _map_array(call: Call) -> Function:
    """A conversion of every element by the elements' own row."""
    element = Const(None, element_type(call.args[0].type))
    convert = element_function(converted_element(call, element))

    def run(array: tuple[Value, ...], *zone: Value) -> Value:
        return tuple([None if item is None else convert(item, *zone) for item in array])

    return run


def _spread(call: Call) -> Function:
    """f(.., VARIADIC array): f of the elements; a NULL in its place is no elements."""
    row = table.function_by_id(call.function.id.replace(ARRAY_FORM, ""))
    index = len(row.args) - 1
    before, array, after = call.args[:index], call.args[index], call.args[index + 1 :]
    element = Const(None, element_type(array.type))

    @cache
    def of(count: int) -> Function:
        return element_function(Call(row, (*before, *[element] * count, *after), call.type))

    def run(*args: Value) -> Value:
        items = args[index] or ()
        assert isinstance(items, tuple), "an array"
        return of(len(items))(*args[:index], *items, *args[index + 1 :])

    return run


def element_function(call: Call) -> Function:
    """What computes a call, its arguments given. Raises 0A000."""
    maker = makers().get(call.function.id)
    if maker is None:
        raise not_supported(f"{call.function.kind.value} {call.function.id}")
    return maker(call)


# --- operators ---------------------------------------------------------------------------------


def _operator(row: table.Function) -> Maker | None:
    if row.name in _COMPARISONS:
        return _comparison(row)
    kinds = frozenset(row.args)
    if kinds <= _INTEGERS:
        return _integer_operator(row)
    if kinds <= _FLOATS and row.name in _FLOAT_OPERATORS:
        return numbers.float_operator(row.name) if len(row.args) == 2 else None
    if "numeric" in kinds:
        return _NUMERIC_OPERATORS.get(row.name)
    if row.name in _PATTERNS and kinds <= _TEXTS:
        return text.make_pattern(_PATTERNS[row.name])
    if "interval" in kinds:
        return _interval_operator(row)
    return None


_FLOAT_OPERATORS: Final = frozenset("+-*/")


def _comparison(row: table.Function) -> Maker:
    compare = _COMPARISONS[row.name]
    kinds = frozenset(row.args)
    if "timestamptz" in kinds and len(kinds) == 2:
        return _zoned_comparison(compare)
    if kinds == frozenset({"date", "timestamp"}):
        return _date_comparison(compare)
    if kinds in (frozenset({"anyarray"}), frozenset({"jsonb"}), frozenset({"anyenum"})):
        return arrays.comparison(compare)
    if kinds == frozenset({"interval"}):
        return plain(lambda a, b: compare(times.length(a), times.length(b)))
    return plain(float_comparison(compare)) if kinds & _FLOATS else plain(compare)


def float_comparison(compare: Function) -> Function:
    """NaN equals itself and is greater than everything else."""

    def run(a: float, b: float) -> Value:
        if math.isnan(a) or math.isnan(b):
            return compare(math.isnan(a), math.isnan(b))
        return compare(a, b)

    return run


def _zoned_comparison(compare: Function) -> Maker:
    def make(call: Call) -> Function:
        left, right = call.args[0].type, call.args[1].type
        return lambda a, b, zone: compare(
            times.as_instant(a, left, zone), times.as_instant(b, right, zone)
        )

    return make


def _date_comparison(compare: Function) -> Maker:
    def make(call: Call) -> Function:
        if call.args[0].type.name == "date":
            return lambda a, b: compare(times.date_to_timestamp(a), b)
        return lambda a, b: compare(a, times.date_to_timestamp(b))

    return make


def _integer_operator(row: table.Function) -> Maker | None:
    if len(row.args) == 1:
        prefix = _INTEGER_PREFIXES.get(row.name)
        return None if prefix is None else numbers.ranged(prefix)
    if row.name == "<<":
        return numbers.shift_left
    if row.name == ">>":
        return numbers.shift_right
    binary = _INTEGER_OPERATORS.get(row.name)
    return None if binary is None else numbers.ranged(binary)


_INTEGER_PREFIXES: Final[dict[str, Callable[..., int]]] = {
    "+": numbers.int_plus, "-": numbers.int_minus, "@": numbers.int_abs, "~": numbers.int_invert,
}  # fmt: skip
_INTEGER_OPERATORS: Final[dict[str, Callable[..., int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": numbers.whole_division, "%": numbers.remainder,
    "&": operator.and_, "|": operator.or_, "#": operator.xor,
}  # fmt: skip
_NUMERIC_OPERATORS: Final[dict[str, Maker]] = {
    "+": numbers.numeric_result(lambda a, b=0: numbers.EXACT.add(a, b)),
    "*": numbers.numeric_result(numbers.EXACT.multiply),
    "/": numbers.make_divide,
    "%": numbers.numeric_result(numbers.modulo),
    "^": make_power,
    "@": numbers.numeric_result(numbers.EXACT.abs),
}
_PATTERNS: Final[dict[str, Function]] = {
    "~~": text.like,
    "!~~": text.negated(text.like),
    "~~*": text.ilike,
    "!~~*": text.negated(text.ilike),
    "~": regex.search(ignore_case=False),
    "!~": text.negated(regex.search(ignore_case=False)),
    "~*": regex.search(ignore_case=True),
    "!~*": text.negated(regex.search(ignore_case=True)),
}


def _interval_operator(row: table.Function) -> Maker | None:
    if row.args == ("interval",):
        return plain(times.negative)
    if row.args == ("interval", "interval"):
        return plain(times.plus if row.name == "+" else times.minus)
    swapped = row.args[0] == "interval"
    time = row.args[1] if swapped else row.args[0]
    minus = row.name == "-"

    def run(a: Value, b: Value, zone: str = "UTC") -> Value:
        moment, span = (b, a) if swapped else (a, b)
        span = times.negative(span) if minus else span  # type: ignore[arg-type]
        if time == "date":
            moment = times.date_to_timestamp(moment)  # type: ignore[arg-type]
        if time == "timestamptz":
            return times.plus_interval_zoned(moment, span, zone)  # type: ignore[arg-type]
        return times.plus_interval(moment, span)  # type: ignore[arg-type]

    return plain(run)


# --- casts -------------------------------------------------------------------------------------


def _cast(row: table.Function) -> Maker | None:
    source, target = row.args[0], row.result
    by_id = _CASTS.get(row.id)
    if by_id is not None:
        return by_id
    if target in _TEXTS:
        return text.make_text_to_text if source in _TEXTS else text.make_to_text
    if source in _TEXTS:
        return text.make_parse
    if source in _INTEGERS and target in _INTEGERS:
        return numbers.ranged(numbers.int_plus)
    if target in _INTEGERS and source in _FLOATS:
        return numbers.float_to_integer
    if target in _INTEGERS and source == "numeric":
        return numbers.numeric_to_integer
    if target == "numeric" and source in _FLOATS:
        return numbers.float_to_numeric
    if target == "numeric":
        return numbers.numeric_result(numbers.EXACT.create_decimal)
    if target == "float4" and source != "float8":
        return plain(numbers.to_float4)
    return plain(float) if target == "float8" else None


def _unsigned(value: int) -> int:
    return value & 0xFFFF_FFFF


def _to_oid(value: int) -> int:
    if not 0 <= value < 1 << 32:
        raise out_of_range("OID")
    return value


_CASTS: Final[dict[str, Maker]] = {
    "float8::float4": plain(numbers.float8_to_float4),
    "bool::int4": plain(int),
    "int4::bool": plain(bool),
    "int4::char": plain(of_integer),
    "char::int4": plain(byte_of),
    "char::bpchar": plain(character_of),
    # PostgreSQL reads a negative smallint or integer as the oid with the same bits.
    "int2::oid": plain(_unsigned),
    "int4::oid": plain(_unsigned),
    "int8::oid": plain(_to_oid),
    "oid::int8": plain(int),
    **{f"oid::{name}": plain(int) for name in REGISTERED},
    **{f"{name}::{to}": plain(int) for name in REGISTERED for to in ("oid", "int8")},
    **{f"{small}::{name}": plain(_unsigned) for name in REGISTERED for small in ("int2", "int4")},
    **{f"int8::{name}": plain(_to_oid) for name in REGISTERED},
    "regproc::regprocedure": plain(int),
    "regprocedure::regproc": plain(int),
    "oid::int4": plain(lambda x: numbers.wrapped(x, 32)),
    "date::timestamp": plain(times.date_to_timestamp),
    "date::timestamptz": plain(lambda x, zone: times.to_instant(times.date_to_timestamp(x), zone)),
    "timestamp::timestamptz": plain(times.to_instant),
    "timestamp::date": plain(times.timestamp_to_date),
    "timestamptz::timestamp": plain(times.to_local),
    "timestamptz::date": plain(lambda x, zone: times.timestamp_to_date(times.to_local(x, zone))),
}


# --- functions ---------------------------------------------------------------------------------


def _time_functions() -> dict[str, Maker]:
    return {
        "date + int4": plain(times.date_plus),
        "int4 + date": plain(lambda n, d: times.date_plus(d, n)),
        "date - int4": plain(lambda d, n: times.date_plus(d, -n)),
        "date - date": plain(operator.sub),
        "timestamp - timestamp": plain(times.difference),
        "timestamptz - timestamptz": plain(times.difference),
        **TRUNCATIONS,
        "timezone(text,timestamp)": plain(
            lambda zone, x, session: times.instant_in(x, times.named_zone(zone, session))
        ),
        "timezone(text,timestamptz)": plain(
            lambda zone, x, session: times.local_in(x, times.named_zone(zone, session))
        ),
        **{
            f"{name}(text,{type_})": times.make_extract
            for name in ("extract", "date_part")
            for type_ in ("date", "timestamp", "timestamptz", "interval")
        },
    }


def _float_functions() -> dict[str, Maker]:
    names: Sequence[tuple[str, Function]] = (
        ("sqrt", numbers.sqrt), ("exp", numbers.exp), ("ln", numbers.ln),
        ("log", numbers.log10), ("log10", numbers.log10), ("cbrt", numbers.cbrt),
        ("ceil", numbers.toward(math.ceil)), ("ceiling", numbers.toward(math.ceil)),
        ("floor", numbers.toward(math.floor)), ("trunc", numbers.toward(math.trunc)),
        ("round", numbers.toward(round)), ("sign", numbers.sign), ("abs", numbers.float_abs),
        ("degrees", numbers.degrees), ("radians", numbers.radians),
        ("sin", numbers.circular(math.sin)), ("cos", numbers.circular(math.cos)),
        ("tan", numbers.circular(math.tan)), ("asin", numbers.circular(math.asin)),
        ("acos", numbers.circular(math.acos)), ("atan", math.atan),
    )  # fmt: skip
    return {f"{name}(float8)": plain(function) for name, function in names}


def _integer_functions() -> dict[str, Maker]:
    found: dict[str, Maker] = {}
    for type_ in ("int2", "int4", "int8"):
        found[f"abs({type_})"] = numbers.ranged(numbers.int_abs)
        found[f"mod({type_},{type_})"] = plain(numbers.remainder)
        found[f"gcd({type_},{type_})"] = numbers.ranged(math.gcd)
        found[f"lcm({type_},{type_})"] = numbers.ranged(math.lcm)
    return found


_BY_ID: Final[dict[str, Maker]] = {
    **arrays.ARRAY_FUNCTIONS,
    **_time_functions(),
    **_float_functions(),
    **_integer_functions(),
    "abs(float4)": plain(numbers.float_abs),
    "+ float4": plain(float),
    "+ float8": plain(float),
    "- float4": plain(numbers.float_minus),
    "- float8": plain(numbers.float_minus),
    "@ float4": plain(numbers.float_abs),
    "@ float8": plain(numbers.float_abs),
    "float8 ^ float8": plain(numbers.power),
    "|/ float8": plain(numbers.sqrt),
    "||/ float8": plain(numbers.cbrt),
    "numeric - numeric": numbers.numeric_result(numbers.EXACT.subtract),
    # The unary minus of a context would round; copying the sign cannot.
    "- numeric": numbers.numeric_result(lambda x: x.copy_negate()),
    "text || text": plain(operator.add),
    "bytea || bytea": plain(operator.add),
    "text || anynonarray": text.make_concatenate,
    "anynonarray || text": text.make_concatenate,
    "bytea ~~ bytea": plain(text.bytes_like),
    "bytea !~~ bytea": plain(text.negated(text.bytes_like)),
    "text ^@ text": plain(str.startswith),
    "concat(any)": text.make_concat,
    "concat_ws(text,any)": text.make_concat_ws,
    "octet_length(text)": plain(lambda x: len(x.encode())),
    "bit_length(text)": plain(lambda x: len(x.encode()) * 8),
    "bit_length(bytea)": plain(lambda x: len(x) * 8),
    "octet_length(bpchar)": text.make_octet_length,
    "btrim(text)": plain(lambda x: x.strip(" ")),
    "ltrim(text)": plain(lambda x: x.lstrip(" ")),
    "rtrim(text)": plain(lambda x: x.rstrip(" ")),
    "btrim(text,text)": plain(lambda x, c: x.strip(c) if c else x),
    "ltrim(text,text)": plain(lambda x, c: x.lstrip(c) if c else x),
    "rtrim(text,text)": plain(lambda x, c: x.rstrip(c) if c else x),
    "to_hex(int4)": plain(text.to_hex(32)),
    "to_hex(int8)": plain(text.to_hex(64)),
    "power(float8,float8)": plain(numbers.power),
    "pow(float8,float8)": plain(numbers.power),
    "atan2(float8,float8)": plain(math.atan2),
    "narrow(numeric)": lambda call: lambda x: numbers.narrow(x, call.type),
    "assign(varchar)": text.make_assign,
    "assign(bpchar)": text.make_assign,
    "char_padded(bpchar,int4)": plain(str.ljust),
    "unique_id()": plain(count(1).__next__),
    "kept(any)": plain(lambda value: value),
    "is_negative_zero(float4)": plain(_is_negative_zero),
    "is_negative_zero(float8)": plain(_is_negative_zero),
    "char_trimmed(bpchar)": plain(lambda x: x.rstrip(" ")),
}

_NAMED: Final[dict[str, Function]] = {
    "length": len, "char_length": len, "character_length": len, "octet_length": len,
    "lower": lower, "upper": upper, "initcap": text.initcap,
    "substr": text.substr, "substring": text.substr, "left": text.left, "right": text.right,
    "lpad": text.lpad, "rpad": text.rpad, "repeat": text.repeat, "replace": text.replace,
    "strpos": lambda x, part: x.find(part) + 1, "position": lambda x, part: x.find(part) + 1,
    "reverse": lambda x: x[::-1], "split_part": text.split_part,
    "starts_with": str.startswith, "translate": text.translate, "overlay": text.overlay,
    "ascii": text.ascii_, "chr": text.chr_, "md5": text.md5,
    "sha256": lambda x: hashlib.sha256(x).digest(),
    "quote_literal": text.quote_literal,
    "abs": numbers.EXACT.abs, "ceil": numbers.ceil_numeric, "ceiling": numbers.ceil_numeric,
    "floor": numbers.floor_numeric, "round": numbers.round_numeric,
    "trunc": numbers.trunc_numeric,
    "sign": lambda x: Decimal((x > 0) - (x < 0)),
    "mod": numbers.modulo, "div": numbers.whole_quotient,
    "pi": lambda: math.pi, "random": _RANDOM.random,
    "make_date": times.make_date, "make_timestamp": times.make_timestamp,
    "to_timestamp": times.to_timestamp, "isfinite": lambda _value: True,
}  # fmt: skip
