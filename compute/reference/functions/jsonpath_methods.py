"""Methods of jsonpath items: `.size()`, `.integer()`, `.decimal(10, 2)` (jsonpath_exec.c).

Not here: `.keyvalue()`, whose ids are offsets in PostgreSQL's storage, and methods for dates and
times (J1 of `sql/types/json/path_parser.py`).
"""

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Final

from compute.reference.decimals import EXACT
from compute.reference.functions.json import json_typeof
from sql.errors import SqlError
from sql.types.json.parser import JsonTree
from sql.types.json.path_parser import PathStep
from sql.types.json.to_json import is_json_array
from sql.types.text_input import parse_text

_INT4_MAX: Final = 2**31 - 1
_PRECISION_MAX: Final = 1000
_SPECIAL: Final = re.compile(r"\s*(?i:nan|[+-]?inf(?:inity)?)\s*", re.ASCII)
_INTEGERS: Final = {"bigint": ("int8", 64), "integer": ("int4", 32)}


class PathFailure(Exception):
    """An error of the data, which `silent` and predicates swallow."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.error = SqlError(sqlstate, message)


def apply_item_method(step: PathStep, value: JsonTree, *, strict: bool) -> JsonTree:
    """The result of a method of an item. `strict`: an array is refused, not unwrapped."""
    name = str(step.value)
    if name == "type":
        return json_typeof(value)
    if name == "size":
        if not is_json_array(value) and strict:
            message = "jsonpath item method .size() can only be applied to an array"
            raise PathFailure("22039", message)
        return Decimal(len(value) if is_json_array(value) else 1)
    if name in _CONVERTED:
        return _CONVERTED[name](step, value)
    if not isinstance(value, Decimal):
        raise _misapplied(name, "a numeric")
    if name == "abs":
        return value.copy_abs()  # abs() rounds to the context's 28 digits
    return value.to_integral_value(ROUND_CEILING if name == "ceiling" else ROUND_FLOOR)


def _misapplied(name: str, kinds: str) -> PathFailure:
    return PathFailure(
        "22036", f"jsonpath item method .{name}() can only be applied to {kinds} value"
    )


def _invalid(name: str, value: str | Decimal, type_: str) -> PathFailure:
    shown = value if isinstance(value, str) else f"{value:f}"
    message = f'argument "{shown}" of jsonpath item method .{name}() is invalid for type {type_}'
    return PathFailure("22036", message)


def _double(_step: PathStep, value: JsonTree) -> JsonTree:
    if isinstance(value, bool) or not isinstance(value, str | Decimal):
        raise _misapplied("double", "a string or numeric")
    try:
        number = parse_text("float8", value if isinstance(value, str) else f"{value:f}")
    except SqlError:
        raise _invalid("double", value, "double precision") from None
    assert isinstance(number, float), "float8 is a float"
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise _special("double")
    return value if isinstance(value, Decimal) else Decimal(f"{Decimal(f'{number:.15g}'):f}")


def _special(name: str) -> PathFailure:
    return PathFailure(
        "22036", f"NaN or Infinity is not allowed for jsonpath item method .{name}()"
    )


def _integer(step: PathStep, value: JsonTree) -> JsonTree:
    name = str(step.value)
    type_, bits = _INTEGERS[name]
    match value:
        case str():
            try:
                found = parse_text(type_, value)
            except SqlError:
                raise _invalid(name, value, name) from None
            assert isinstance(found, int), "an integer's input is one"
            return Decimal(found)
        case Decimal():
            rounded = value.to_integral_value(ROUND_HALF_UP)
            if not -(1 << bits - 1) <= rounded < 1 << bits - 1:
                raise _invalid(name, value, name)
            return rounded
        case _:
            raise _misapplied(name, "a string or numeric")


def _boolean(_step: PathStep, value: JsonTree) -> JsonTree:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str | Decimal):
        raise _misapplied("boolean", "a boolean, string, or numeric")
    try:
        if isinstance(value, Decimal):
            return parse_text("int4", f"{value:f}") != 0
        # Its own words, without the blanks that a boolean's input takes.
        return parse_text("bool", value if value == value.strip() else "") is True
    except SqlError:
        raise _invalid("boolean", value, "boolean") from None


def _string(_step: PathStep, value: JsonTree) -> JsonTree:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if not isinstance(value, str):
        raise _misapplied("string", "a boolean, string, numeric, or datetime")
    return value


def _number(step: PathStep, value: JsonTree) -> JsonTree:
    name = str(step.value)
    if isinstance(value, bool) or not isinstance(value, str | Decimal):
        raise _misapplied(name, "a string or numeric")
    if isinstance(value, str) and _SPECIAL.fullmatch(value):
        raise _special(name)
    try:
        number = parse_text("numeric", value) if isinstance(value, str) else value
    except SqlError:
        raise _invalid(name, value, "numeric") from None
    assert isinstance(number, Decimal), "numeric is a Decimal"
    return _fitted(step, value, number) if step.args else number


def _fitted(step: PathStep, value: str | Decimal, number: Decimal) -> Decimal:
    """The number with a precision and a scale."""
    precision, scale = (_modifier(step, place) for place in (0, 1))
    if not 1 <= precision <= _PRECISION_MAX:
        message = f"NUMERIC precision {precision} must be between 1 and {_PRECISION_MAX}"
        raise PathFailure("22023", message)
    if not -_PRECISION_MAX <= scale <= _PRECISION_MAX:
        message = f"NUMERIC scale {scale} must be between -{_PRECISION_MAX} and {_PRECISION_MAX}"
        raise PathFailure("22023", message)
    if not number or number.adjusted() < precision - scale:
        rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
        if abs(rounded) < Decimal(1).scaleb(precision - scale):
            return Decimal(f"{rounded:f}")
    raise _invalid("decimal", value, "numeric")


def _modifier(step: PathStep, place: int) -> int:
    given = step.args[place] if place < len(step.args) else None
    if given is None:
        return 0
    assert isinstance(given.value, Decimal), "the grammar takes integers only"
    if not -_INT4_MAX - 1 <= given.value <= _INT4_MAX:
        word = ("precision", "scale")[place]
        message = f"{word} of jsonpath item method .decimal() is out of range for type integer"
        raise PathFailure("22036", message)
    return int(given.value)


_CONVERTED: Final[Mapping[str, Callable[[PathStep, JsonTree], JsonTree]]] = {
    "double": _double,
    "bigint": _integer,
    "integer": _integer,
    "boolean": _boolean,
    "string": _string,
    "number": _number,
    "decimal": _number,
}
