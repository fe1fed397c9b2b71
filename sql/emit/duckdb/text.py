"""Write text functions as DuckDB SQL: case, patterns, casts from and to text, lengths.

INVARIANTS
  S1  a backslash stands in no generated string literal: a text with one is bound as an argument.
  S2  some functions agree with PostgreSQL for some texts only (ASCII, plain digits, ISO dates). A
      test in the statement lets DuckDB compute those; the others go to the reference evaluator.
"""

from typing import Final

from sql.emit.duckdb.evaluator_calls import evaluator_call, evaluator_call_over
from sql.emit.duckdb.types import duckdb_type, error
from sql.emit.enums import enum_labels
from sql.emit.null_counts import null_count
from sql.emit.patterns import re2_regex
from sql.emit.regex_calls import DUCKDB_REGEX, native_regex
from sql.emit.state import Scope
from sql.emit.text_growth import may_grow_too_long
from sql.errors import SqlError
from sql.plan.nodes import Call, Expr
from sql.regex.like import like_ends_with_escape
from sql.regex.parser import parse_regex
from sql.regex.syntax import Flags
from sql.types.enums import is_enum
from sql.types.sql_type import DISPLAY_NAMES, SqlType

_HEX_PREFIX: Final = "\\x"
_ESCAPE: Final = "\\"


def _ascii(x: str) -> str:
    return f"strlen({x}) = length({x})"


# --- case, concatenation, lengths --------------------------------------------------------------


def _ascii_only(call: Call, scope: Scope) -> str:
    """DuckDB's function of the same name for ASCII, whose letters have one other case each."""
    args = [scope.emit(arg) for arg in call.args]
    native = f"{call.function.name}({', '.join(args)})"
    other = evaluator_call_over(call, args, scope)
    return f"case when {_ascii(args[0])} then {native} else {other} end"


def _plain_text(expr: Expr, scope: Scope) -> str | None:
    """The text that `expr::text` gives, where DuckDB writes it alike."""
    x, type_ = scope.emit(expr), expr.type
    match type_.name:
        case "text" | "varchar" | "bpchar" | "name" | "char" | "unknown" | "uuid":
            return x
        case name if is_enum(name):
            return x
        case "bool" | "int2" | "int4" | "int8" | "oid":
            return f"cast({x} as varchar)"
        case "numeric":
            if type_.precision == type_.scale:
                # DuckDB writes no zero before the point where the type has none.
                return None
            plain = f"cast({x} as varchar)"
            if not type_.trim or not type_.scale:
                return plain
            return f"rtrim(rtrim({plain}, '0'), '.')"
        case "bytea":
            return f"concat({scope.statement.string(_HEX_PREFIX)}, lower(hex({x})))"
        case _:
            return None


def _text_of(call: Call, scope: Scope) -> str:
    plain = _plain_text(call.args[0], scope)
    if plain is not None:
        # concat() takes NULL for an empty text.
        if call.args[0].type.name == "bytea":
            plain = f"case when {scope.emit(call.args[0])} is not null then {plain} end"
        return _cut(plain, call.type)
    x = scope.emit(call.args[0])
    if call.args[0].type.name == "float8":
        return _float_text(call, x, scope)
    if call.args[0].type.name not in ("date", "timestamp"):
        return evaluator_call(call, scope)
    text = _cut(f"cast({x} as varchar)", call.type)
    other = evaluator_call_over(call, [x], scope)
    return f"case when year({x}) between 1 and 9999 then {text} else {other} end"


def _float_text(call: Call, x: str, scope: Scope) -> str:
    """The shortest digits on both, not so for float4; DuckDB writes whole numbers with `.0`."""
    text = f"cast({x} as varchar)"
    plain = f"case when {text} like '%.0' then left({text}, length({text}) - 2) else {text} end"
    # From 1e15 on PostgreSQL writes an exponent.
    usual = f"abs({x}) >= cast('0.0001' as double) and abs({x}) < 1000000000000000"
    other = evaluator_call_over(call, [x], scope)
    return f"case when {usual} or {x} = 0 then {_cut(plain, call.type)} else {other} end"


def _text_to_text(call: Call, scope: Scope) -> str:
    return _cut(scope.emit(call.args[0]), call.type)


def _cut(x: str, type_: SqlType) -> str:
    """Apply the length; char(n) is kept without trailing blanks (sql/types/sql_type.py)."""
    if type_.length is not None:
        x = f"left({x}, {type_.length})"
    return f"rtrim({x}, ' ')" if type_.name == "bpchar" and not type_.has_blanks else x


def _assign(call: Call, scope: Scope) -> str:
    """Into a column: blanks beyond the length are cut, anything else there is an error."""
    x, length = scope.emit(call.args[0]), call.type.length
    if length is None:
        return _cut(x, call.type)
    failure = error("22001", f"value too long for type {DISPLAY_NAMES[call.type.name]}({length})")
    blank = f"length(rtrim({x}, ' ')) > {length}"
    return f"case when {blank} then {failure} else {_cut(x, call.type)} end"


# --- patterns ----------------------------------------------------------------------------------


def _padded(expr: Expr, scope: Scope) -> str:
    """Patterns see the blanks of char(n), if there is an n (sql/types/sql_type.py)."""
    x = scope.emit(expr)
    if expr.type.name != "bpchar" or expr.type.length is None:
        return x
    return f"case when {x} is not null then rpad({x}, {expr.type.length}, ' ') end"


def _like(call: Call, scope: Scope) -> str:
    x, pattern = _padded(call.args[0], scope), scope.emit(call.args[1])
    operator, known = call.function.name, scope.statement.known(call.args[1])
    word = "not like" if operator.startswith("!") else "like"
    escape = True
    if known is not None and isinstance(known[0], str):
        if like_ends_with_escape(known[0]):
            return evaluator_call_over(call, [scope.emit(arg) for arg in call.args], scope)
        escape = _ESCAPE in known[0]
    ending = f" escape {scope.statement.string(_ESCAPE)}" if escape else ""
    # DuckDB refuses a pattern that ends in an escape, whether or not a character meets that.
    tests = [] if known else [f"not suffix({pattern}, {scope.statement.string(_ESCAPE)})"]
    native = f"({x} {word} {pattern}{ending})"
    if operator.endswith("*"):
        tests += [_ascii(x), _ascii(pattern)]
        native = f"(lower({x}) {word} lower({pattern}){ending})"
    if not tests:
        return native
    other = evaluator_call_over(call, [scope.emit(arg) for arg in call.args], scope)
    return f"case when {' and '.join(tests)} then {native} else {other} end"


def _regex(call: Call, scope: Scope) -> str:
    known, operator = scope.statement.known(call.args[1]), call.function.name
    if known is None or not isinstance(known[0], str):
        return evaluator_call(call, scope)
    try:
        pattern = re2_regex(parse_regex(known[0], Flags(ignore_case=operator.endswith("*"))))
    except SqlError:
        # An error for those rows only that it is searched in.
        pattern = None
    if pattern is None:
        return evaluator_call(call, scope)
    x = _padded(call.args[0], scope)
    negation = "not " if operator.startswith("!") else ""
    return f"{negation}regexp_matches({x}, {scope.statement.string(pattern)})"


def _replace(call: Call, scope: Scope) -> str:
    if may_grow_too_long(call, scope):
        return evaluator_call(call, scope)
    return f"replace({', '.join(scope.emit(arg) for arg in call.args)})"


def _regex_call(call: Call, scope: Scope) -> str:
    if call.function.name == "regexp_replace" and may_grow_too_long(call, scope):
        return evaluator_call(call, scope)
    native = native_regex(call, scope, DUCKDB_REGEX)
    return evaluator_call(call, scope) if native is None else native


# --- from text ---------------------------------------------------------------------------------


def _usual(call: Call, scope: Scope, pattern: str, *, complete: bool) -> str:
    """DuckDB's cast for texts of the usual form; unless `complete`, it may still refuse some."""
    x, type_ = scope.emit(call.args[0]), duckdb_type(call.type)
    usual = f"regexp_full_match({x}, {scope.statement.string(pattern)})"
    if not complete:
        usual += f" and try_cast({x} as {type_}) is not null"
    other = evaluator_call_over(call, [x], scope)
    return f"case when {usual} then try_cast({x} as {type_}) else {other} end"


_INTEGER_DIGITS: Final = {"int2": 4, "int4": 9, "int8": 18}


def _parse_integer(call: Call, scope: Scope) -> str:
    digits = _INTEGER_DIGITS[call.type.name]
    return _usual(call, scope, f"-?[0-9]{{1,{digits}}}", complete=True)


def _parse_float(call: Call, scope: Scope) -> str:
    return _usual(call, scope, r"-?[0-9]{1,15}(\.[0-9]{1,15})?", complete=True)


def _parse_numeric(call: Call, scope: Scope) -> str:
    scale = call.type.scale or 0
    whole = (call.type.precision or 0) - scale
    if not whole:
        return evaluator_call(call, scope)
    fraction = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    return _usual(call, scope, f"-?[0-9]{{1,{whole}}}{fraction}", complete=True)


_DAY: Final = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"( [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?"


def _parse_date(call: Call, scope: Scope) -> str:
    return _usual(call, scope, _DAY, complete=False)


def _parse_timestamp(call: Call, scope: Scope) -> str:
    return _usual(call, scope, _DAY + _TIME, complete=False)


def _parse_uuid(call: Call, scope: Scope) -> str:
    hexadecimal = "[0-9a-f]"
    groups = "-".join(f"{hexadecimal}{{{count}}}" for count in (8, 4, 4, 4, 12))
    return _usual(call, scope, groups, complete=True)


def _parse_bool(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    other = evaluator_call_over(call, [x], scope)
    return (
        f"case when {x} in ('true', 't') then true when {x} in ('false', 'f') then false"
        f" else {other} end"
    )


def _parse_enum(call: Call, scope: Scope) -> str:
    x = scope.emit(call.args[0])
    other = evaluator_call_over(call, [x], scope)
    return (
        f"case when list_contains({enum_labels(call.type, scope)}, {x}) then {x} else {other} end"
    )


def _encode(call: Call, scope: Scope) -> str:
    if scope.statement.known(call.args[1]) == ("hex",):
        return f"lower(hex({scope.emit(call.args[0])}))"
    return evaluator_call(call, scope)


_OF_ONE_TEXT: Final = frozenset({"text", "varchar", "bool", "int2", "int4", "int8", "oid", "uuid"})
"""Types whose text is the same under all settings, and DuckDB's."""


def _concatenate(call: Call, scope: Scope) -> str:
    """`text || value`."""
    if not all(arg.type.name in _OF_ONE_TEXT for arg in call.args):
        return evaluator_call(call, scope)
    return "(" + " || ".join(f"cast({scope.emit(arg)} as varchar)" for arg in call.args) + ")"


SPECIALS: Final = {
    "concatenate": _concatenate,
    "ascii_only": _ascii_only,
    "text_of": _text_of,
    "text_to_text": _text_to_text,
    "assign": _assign,
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
