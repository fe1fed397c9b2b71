"""Write text functions as Spark SQL: patterns, casts from and to text, lengths.

INVARIANTS
  S1  a backslash stands in no generated string literal: a text with one is bound as an argument.
  S2  a pattern reaches Spark only when it is known now (a constant or a parameter) and has been
      translated.
"""

from typing import Final

from sql.emit.enums import enum_labels
from sql.emit.error_tag import ERROR_TAG
from sql.emit.null_counts import null_count
from sql.emit.patterns import java_like, java_like_regex, java_regex
from sql.emit.regex_calls import SPARK_REGEX, native_regex
from sql.emit.spark.types import error, spark_type, unsupported
from sql.emit.state import Scope
from sql.emit.text_growth import may_grow_too_long
from sql.errors import SqlError
from sql.plan.nodes import Call, Expr
from sql.regex.backtracking import has_bounded_backtracking
from sql.regex.characters import case_mapping
from sql.regex.like import has_many_wildcards, like_ends_with_escape
from sql.regex.parser import parse_regex
from sql.regex.syntax import Flags
from sql.types.enums import is_enum
from sql.types.sql_type import DISPLAY_NAMES, SqlType, format_type

_HEX_PREFIX: Final = "\\x"
_BLANKS: Final = " \t\n\r\f\v"


def _failure(message: str, x: str, *, sqlstate: str) -> str:
    """An error whose message ends with the offending text in quotes."""
    return f"""raise_error(concat('{ERROR_TAG}{sqlstate}:{message}: "', {x}, '"'))"""


def _invalid(type_: SqlType, x: str) -> str:
    name = DISPLAY_NAMES.get(type_.name, type_.name)
    return _failure(f"invalid input syntax for type {name}", x, sqlstate="22P02")


# --- case, concatenation, padding --------------------------------------------------------------


def case_mapped_text(x: str, function: str, scope: Scope) -> str:
    """Upper or lower case, character by character by PostgreSQL's own table."""
    characters, others = (scope.statement.string(part) for part in case_mapping(function))
    return (
        f"case when octet_length({x}) <> length({x}) then translate({x}, {characters}, {others})"
        f" else {function}({x}) end"
    )


def _case_mapped(call: Call, scope: Scope) -> str:
    return case_mapped_text(scope.emit(call.args[0]), call.function.name, scope)


def text_of(expr: Expr, scope: Scope) -> str:
    """The text of `expr::text`."""
    x, type_ = scope.emit(expr), expr.type
    match type_.name:
        case "text" | "varchar" | "bpchar" | "name" | "char" | "unknown" | "uuid":
            return x
        case name if is_enum(name):
            return x
        case "bool" | "int2" | "int4" | "int8" | "oid":
            return f"cast({x} as string)"
        case "numeric":
            plain = f"cast({x} as string)"
            if not type_.trim or not type_.scale:
                return plain
            return f"rtrim('.', rtrim('0', {plain}))"
        case "date":
            return _dated(x, f"cast({x} as string)")
        case "timestamp":
            return _dated(x, f"cast({x} as string)")
        case "bytea":
            return f"concat({scope.statement.string(_HEX_PREFIX)}, lower(hex({x})))"
        case _:
            raise unsupported(f"cast of {DISPLAY_NAMES.get(type_.name, type_.name)} to text")


def _dated(x: str, text: str) -> str:
    failure = error("0A000", "text of dates outside of the years 1 to 9999 is not supported")
    return f"case when year({x}) not between 1 and 9999 then {failure} else {text} end"


def _text_of(call: Call, scope: Scope) -> str:
    source = call.args[0]
    if source.type.name == "timestamptz":
        text = _instant_text(call, scope)
    else:
        text = text_of(source, scope)
    return _cut(text, call.type, explicit=True)


def _instant_text(call: Call, scope: Scope) -> str:
    if scope.statement.known(call.args[1]) not in (("UTC",), ("GMT",), ("Etc/UTC",)):
        raise unsupported("cast of timestamp with time zone to text in this time zone")
    x = f"cast({scope.emit(call.args[0])} as timestamp_ntz)"
    return f"concat({_dated(x, f'cast({x} as string)')}, '+00')"


def _text_to_text(call: Call, scope: Scope) -> str:
    return _cut(scope.emit(call.args[0]), call.type, explicit=True)


def _cut(x: str, type_: SqlType, *, explicit: bool) -> str:
    """Apply the length; char(n) is kept without trailing blanks (sql/types/sql_type.py)."""
    assert explicit, "assignment has a row of its own (F4 of `sql/functions/table.py`)"
    if type_.length is not None:
        x = f"left({x}, {type_.length})"
    return f"rtrim({x})" if type_.name == "bpchar" and not type_.has_blanks else x


def _assign(call: Call, scope: Scope) -> str:
    """Into a column: blanks beyond the length are cut, anything else there is an error."""
    x, length = scope.emit(call.args[0]), call.type.length
    if length is None:
        return _cut(x, call.type, explicit=True)
    name = DISPLAY_NAMES[call.type.name]
    failure = error("22001", f"value too long for type {name}[{length}]")
    failure = failure.replace("[", "(").replace("]", ")")
    cut = _cut(x, call.type, explicit=True)
    return f"case when length(rtrim({x})) > {length} then {failure} else {cut} end"


def _output(expr: Expr, scope: Scope) -> str:
    """What the type's output function prints: concat() prints booleans and char(n) unlike a
    cast.
    """
    x = scope.emit(expr)
    if expr.type.name == "bool":
        return f"if({x}, 't', if({x} is null, null, 'f'))"
    if expr.type.name == "bpchar" and expr.type.length is not None:
        return f"rpad({x}, {expr.type.length}, ' ')"
    return text_of(expr, scope)


def _concat(call: Call, scope: Scope) -> str:
    return f"concat_ws('', {', '.join(_output(arg, scope) for arg in call.args)})"


def _concat_ws(call: Call, scope: Scope) -> str:
    separator, *rest = call.args
    parts = "".join(f", {_output(arg, scope)}" for arg in rest)
    return f"concat_ws({scope.emit(separator)}{parts})"


def _concatenate(call: Call, scope: Scope) -> str:
    return "concat(" + ", ".join(text_of(arg, scope) for arg in call.args) + ")"


# --- patterns ----------------------------------------------------------------------------------


def _pattern(call: Call, scope: Scope) -> str | None:
    known = scope.statement.known(call.args[1])
    if known is None:
        raise unsupported(f"operator {call.function.id} with a computed pattern")
    assert known[0] is None or isinstance(known[0], str), "a pattern is text"
    return known[0]


_BACKSLASH: Final = "\\"


def _padded(expr: Expr, scope: Scope) -> str:
    """Patterns see the blanks of char(n), if there is an n (sql/types/sql_type.py)."""
    x = scope.emit(expr)
    if expr.type.name != "bpchar" or expr.type.length is None:
        return x
    return f"rpad({x}, {expr.type.length}, ' ')"


def _like(call: Call, scope: Scope) -> str:
    pattern, operator = _pattern(call, scope), call.function.name
    if pattern is None:
        return "cast(null as boolean)"
    if like_ends_with_escape(pattern):
        # That fails only where a character meets it.
        raise unsupported("LIKE with an escape at the end of its pattern")
    x = _padded(call.args[0], scope)
    if operator.endswith("*"):
        x = case_mapped_text(x, "lower", scope)
        pattern = pattern.translate(str.maketrans(*case_mapping("lower")))
    negation = "not " if operator.startswith("!") else ""
    if has_many_wildcards(pattern):
        return f"{x} {negation}rlike {scope.statement.string(java_like_regex(pattern))}"
    return f"{x} {negation}like {scope.statement.string(java_like(pattern))}"


def _regex(call: Call, scope: Scope) -> str:
    pattern, operator = _pattern(call, scope), call.function.name
    if pattern is None:
        return "cast(null as boolean)"
    x = _padded(call.args[0], scope)
    try:
        regex = parse_regex(pattern, Flags(ignore_case=operator.endswith("*")))
    except SqlError as failure:
        if failure.sqlstate == "0A000":
            raise
        # An error for those rows only that it is searched in.
        message = failure.message.replace(_BACKSLASH, "")
        return f"if({x} is null, null, cast({error(failure.sqlstate, message)} as boolean))"
    # Nothing ends a search of Java's.
    java = java_regex(regex) if has_bounded_backtracking(regex.node) else None
    if java is None:
        raise unsupported("this regular expression")
    negation = "not " if operator.startswith("!") else ""
    return f"{negation}({x} rlike {scope.statement.string(java)})"


def _replace(call: Call, scope: Scope) -> str:
    if may_grow_too_long(call, scope):
        raise unsupported("replace() by a longer text")
    return f"replace({', '.join(scope.emit(arg) for arg in call.args)})"


def _regex_call(call: Call, scope: Scope) -> str:
    if call.function.name == "regexp_replace" and may_grow_too_long(call, scope):
        raise unsupported("regexp_replace() by a longer text")
    native = native_regex(call, scope, SPARK_REGEX)
    if native is None:
        raise unsupported(f"{call.function.name}() with this pattern")
    return native


# --- from text ---------------------------------------------------------------------------------


def _checked(x: str, pattern: str, scope: Scope, *, found: str, failure: str) -> str:
    """`found` where the text matches, the error where it does not, NULL for NULL."""
    matches = f"{x} rlike {scope.statement.string(pattern)}"
    return f"case when {x} is null then null when {matches} then {found} else {failure} end"


def _parse_bool(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    word = f"lower(trim(both {scope.statement.string(_BLANKS)} from {x}))"
    true = "'t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1'"
    false = "'f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0'"
    return (
        f"case when {x} is null then null when {word} in ({true}) then true"
        f" when {word} in ({false}) then false else {_invalid(call.type, x)} end"
    )


def _parse_integer(call: Call, scope: Scope) -> str:
    """Decimal digits; other notations of PostgreSQL (0x1f, 1_000) are refused as not supported."""
    x = scope.emit(call.args[0])
    name = DISPLAY_NAMES[call.type.name]
    other = scope.statement.string(
        r"\A[ \t\n\r\f\x0B]*[+-]?(0[xXoObB]|[0-9]+_)[0-9a-fA-F_]+[ \t\n\r\f\x0B]*\z"
    )
    failure = (
        f"if({x} rlike {other}, {error('0A000', f'this notation of {name} is not supported')},"
        f" {_invalid(call.type, x)})"
    )
    digits = f"trim(both {scope.statement.string(_BLANKS)} from {x})"
    wide = f"try_cast({digits} as decimal(38,0))"
    low, high = _INTEGERS[call.type.name]
    outside = f'" is out of range for type {name}'
    range_failure = f"""raise_error(concat('{ERROR_TAG}22003:value "', {x}, '{outside}'))"""
    fitting = (
        f"case when {wide} between {low}BD and {high}BD"
        f" then cast({wide} as {spark_type(call.type)})"
        f" else {range_failure} end"
    )
    pattern = r"\A[ \t\n\r\f\x0B]*[+-]?[0-9]+[ \t\n\r\f\x0B]*\z"
    return _checked(x, pattern, scope, found=fitting, failure=failure)


_INTEGERS: Final = {
    "int2": ("-32768", "32767"),
    "int4": ("-2147483648", "2147483647"),
    "int8": ("-9223372036854775808", "9223372036854775807"),
}


_SPECIAL: Final = r"(?i)\A([+-]?inf(inity)?|nan)\z"
_NO_NUMERIC: Final = '" is out of range for type numeric'


def _parse_float(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    trimmed = f"trim(both {scope.statement.string(_BLANKS)} from {x})"
    name = DISPLAY_NAMES[call.type.name]
    value = f"cast({trimmed} as {spark_type(call.type)})"
    zero = scope.statement.string(r"\A[+-]?[0.]+([eE].*)?\z")
    out = f"""raise_error(concat('{ERROR_TAG}22003:"', {x}, '" is out of range for type {name}'))"""
    found = (
        f"case when {trimmed} rlike {scope.statement.string(_SPECIAL)} then {value}"
        f" when abs({value}) = double('Infinity') or ({value} = 0D and not {trimmed} rlike {zero})"
        f" then {out} else {value} end"
    )
    other = scope.statement.string(r"(?i)\A[ \t\n\r\f\x0B]*([+-]?(nan|0x).*)[ \t\n\r\f\x0B]*\z")
    failure = (
        f"if({x} rlike {other}, {error('0A000', f'this notation of {name} is not supported')},"
        f" {_invalid(call.type, x)})"
    )
    pattern = (
        r"\A[ \t\n\r\f\x0B]*(?:[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
        r"|(?i:[+-]?inf(inity)?|nan))[ \t\n\r\f\x0B]*\z"
    )
    return _checked(x, pattern, scope, found=found, failure=failure)


def _parse_numeric(call: Call, scope: Scope) -> str:
    """Plain decimals; a constrained type rounds, an unconstrained one refuses digits it cannot
    keep.
    """
    x = scope.emit(call.args[0])
    trimmed = f"trim(both {scope.statement.string(_BLANKS)} from {x})"
    value = f"cast({trimmed} as {spark_type(call.type)})"
    found = value
    if call.type.typmod < 0:
        # A decimal of all the text's digits, cut to the type, must still be the same number.
        long = scope.statement.string(rf"\.[0-9]{{{call.type.scale}}}[0-9]*[1-9]")
        failure = error("22003", "numeric value has too many digits after the decimal point")
        found = f"case when {trimmed} rlike {long} then {failure} else {value} end"
    other = scope.statement.string(
        r"(?i)\A[ \t\n\r\f\x0B]*[+-]?([0-9._]+(e[+-]?[0-9_]+)?|0[xob][0-9a-f_]+)"
        r"[ \t\n\r\f\x0B]*\z"
    )
    special = scope.statement.string(_SPECIAL)
    outside = f"""raise_error(concat('{ERROR_TAG}22003:value "', {trimmed}, '{_NO_NUMERIC}'))"""
    failure = (
        f"if({x} rlike {other}, {error('0A000', 'this notation of numeric is not supported')},"
        f" if({trimmed} rlike {special}, {outside}, {_invalid(call.type, x)}))"
    )
    pattern = r"\A[ \t\n\r\f\x0B]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[ \t\n\r\f\x0B]*\z"
    return _checked(x, pattern, scope, found=found, failure=failure)


def _iso(call: Call, scope: Scope, pattern: str, target: str, name: str) -> str:
    x = scope.emit(call.args[0])
    trimmed = f"trim(both {scope.statement.string(_BLANKS)} from {x})"
    value = f"try_cast({trimmed} as {target})"
    failure = _failure("date/time field value out of range", x, sqlstate="22008")
    found = f"coalesce({value}, cast({failure} as {target}))"
    refusal = _failure(
        f"this notation of {name} is not supported on the spark engine", x, sqlstate="0A000"
    )
    return _checked(x, pattern, scope, found=found, failure=refusal)


_DAY: Final = r"\A[ \t\n\r\f\x0B]*(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"


def _parse_date(call: Call, scope: Scope) -> str:
    return _iso(call, scope, _DAY + r"[ \t\n\r\f\x0B]*\z", "date", "date")


def _parse_timestamp(call: Call, scope: Scope) -> str:
    time = r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?[ \t\n\r\f\x0B]*\z"
    return _iso(call, scope, _DAY + time, "timestamp_ntz", "timestamp")


def _parse_uuid(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    hexadecimal = f"lower(regexp_replace({x}, '[^0-9a-fA-F]', ''))"
    parts = ", '-', ".join(
        f"substr({hexadecimal}, {start}, {length})"
        for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    )
    group = "([0-9a-fA-F]{4}-?)"
    pattern = rf"\A(\{{{group}{{7}}[0-9a-fA-F]{{4}}\}}|{group}{{7}}[0-9a-fA-F]{{4}})\z"
    return _checked(x, pattern, scope, found=f"concat({parts})", failure=_invalid(call.type, x))


def _parse_enum(call: Call, scope: Scope) -> str:
    x, name = scope.emit(call.args[0]), format_type(call.type)
    known = f"array_contains({enum_labels(call.type, scope)}, {x})"
    message = scope.statement.string(f'{ERROR_TAG}22P02:invalid input value for enum {name}: "')
    failure = f"""raise_error(concat({message}, {x}, '"'))"""
    return f"case when {x} is null then null when {known} then {x} else {failure} end"


def _encode(call: Call, scope: Scope) -> str:
    known = scope.statement.known(call.args[1])
    if known is None or known[0] != "hex":
        raise unsupported("encode() to other formats than hex")
    return f"lower(hex({scope.emit(call.args[0])}))"


SPECIALS: Final = {
    "case_mapped": _case_mapped,
    "text_of": _text_of,
    "text_to_text": _text_to_text,
    "assign": _assign,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "concatenate": _concatenate,
    "like": _like,
    "regex": _regex,
    "regex_call": _regex_call,
    "replace": _replace,
    "null_count": null_count,
    "parse_bool": _parse_bool,
    "parse_integer": _parse_integer,
    "parse_float": _parse_float,
    "parse_numeric": _parse_numeric,
    "parse_date": _parse_date,
    "parse_timestamp": _parse_timestamp,
    "parse_uuid": _parse_uuid,
    "parse_enum": _parse_enum,
    "encode": _encode,
}
