"""System functions: sizes (dbsize.c), privileges and role membership, input validation."""

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from itertools import count
from typing import Final

from compute.reference.decimals import EXACT
from compute.reference.registry import (
    FUNCTIONS,
    Function,
    Maker,
    implements,
    makes,
    type_independent,
)
from sql.emit.templates import template_failure
from sql.errors import OutOfEngineRange, SqlError
from sql.functions.table import Function as Row
from sql.plan.nodes import Call
from sql.types.sql_type import Value
from sql.types.text_input import apply_typmod, parse_text

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_SIZES: Final = {
    "": 1, "b": 1, "bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40,
    "pb": 1 << 50,
}  # fmt: skip
_SIZE: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")
_WHOLE_MAX: Final = 10 * 1024
_INT8_MAX: Final = 2**63 - 1


@implements("pg_size_pretty(int8)")
def size_pretty(value: int) -> str:
    """pg_size_pretty(): the largest unit that leaves two digits, rounded half up."""
    size = value
    for unit in _UNITS[:-1]:
        # Beyond bytes there is one bit more than the unit, to round by.
        rounded = unit != "bytes"
        if abs(size) < (2 * _WHOLE_MAX - 1 if rounded else _WHOLE_MAX):
            return f"{_half(size) if rounded else size} {unit}"
        size = _shifted(size, 10 if rounded else 9)
    return f"{_half(size)} {_UNITS[-1]}"


def _half(value: int) -> int:
    return (abs(value) + 1) // 2 * (-1 if value < 0 else 1)


def _shifted(value: int, bits: int) -> int:
    """Toward zero."""
    return (abs(value) >> bits) * (-1 if value < 0 else 1)


@implements("pg_size_pretty(numeric)")
def size_pretty_numeric(value: Decimal) -> str:
    """The same for numeric; bytes keep their fraction."""
    if abs(value) < _WHOLE_MAX:
        return f"{value.normalize(EXACT):f} bytes"
    whole = int(value.to_integral_value(ROUND_DOWN))
    return size_pretty(whole)


@implements("pg_size_bytes(text)")
def size_bytes(text: str) -> int:
    """pg_size_bytes(): the bytes of a size like `1.5 GB`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise SqlError("22023", f'invalid size: "{text}"')
    unit = _SIZES.get(match[2].lower())
    if unit is None:
        hint = 'Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".'
        detail = f'Invalid size unit: "{match[2]}".'
        raise SqlError("22023", f'invalid size: "{text}"', detail=detail, hint=hint)
    value = EXACT.multiply(Decimal(match[1]), Decimal(unit))
    whole = int(value.to_integral_value(ROUND_HALF_UP))
    if not -_INT8_MAX - 1 <= whole <= _INT8_MAX:
        raise SqlError("22003", "bigint out of range")
    return whole


_PRIVILEGES: Final = {
    "table": "select insert update delete truncate references trigger maintain",
    "column": "select insert update references",
    "sequence": "usage select update",
    "function": "execute",
    "schema": "create usage",
    "database": "create connect temporary temp",
    "type": "usage",
    "role": "usage member set",
}
_OPTIONS: Final = (" with grant option", " with admin option")


@implements("meridian_privilege(text,text)")
def check_privilege_names(kind: str, text: str) -> bool:
    """Check a list of privilege names: an unknown one is 22023 (convert_any_priv_string)."""
    known = _PRIVILEGES[kind].split()
    for part in text.split(","):
        word = part.strip()
        plain = word.lower()
        for option in _OPTIONS:
            plain = plain.removesuffix(option)
        if plain not in known:
            raise SqlError("22023", f'unrecognized privilege type: "{word}"')
    return True


_LETTERS: Final = {
    "select": "r", "insert": "a", "update": "w", "delete": "d", "truncate": "D", "references": "x",
    "trigger": "t", "maintain": "m", "usage": "U", "create": "C", "connect": "c", "temporary": "T",
    "temp": "T", "execute": "X",
}  # fmt: skip


@implements("meridian_may(text,text,text)")
def has_privilege(grants: str, roles: str, wanted: str) -> bool:
    """Whether one of `roles` has one of the privileges. `grants`: ACL items as `oid=letters/letters
    WITH GRANT OPTION`. `roles`: oids, first those whose privileges are inherited; `*` for a
    superuser.
    """
    usage = set(roles.split("|", maxsplit=1)[0].split(","))
    if "*" in usage:
        return True
    have: set[str] = set()
    for item in grants.split():
        grantee, _, letters = item.partition("=")
        if grantee in usage:
            plain, _, options = letters.partition("/")
            have |= {*plain, *(f"{letter}*" for letter in options)}
    for part in wanted.split(","):
        word = part.strip().lower()
        bare = word.removesuffix(_OPTIONS[0])
        if _LETTERS[bare] + ("*" if bare != word else "") in have:
            return True
    return False


_KINDS: Final[tuple[str, ...]] = ("usage", "member", "set", "admin")


@implements("meridian_member(text,oid,text)")
def has_role(roles: str, target: int, wanted: str) -> bool:
    """pg_has_role(). `roles`: usage|member|set|admin, each a list of oids that begins with the
    role's own; `*`: every role.
    """
    if not roles:
        return False
    kinds: dict[str, str] = dict(zip(_KINDS, roles.split("|"), strict=True))
    for part in wanted.split(","):
        word = part.strip().lower()
        kind = "admin" if any(word.endswith(option) for option in _OPTIONS) else word
        oids = kinds[kind].split(",")
        if "*" in oids or str(target) in oids:
            return True
    return False


@makes("input_is_valid(text,any)")
def _valid_input(call: Call) -> Function:
    """Whether a text is one of a value of the second argument's type."""
    type_ = call.args[1].type

    def run(text: str | None, _type: Value, zone: str) -> bool | None:
        if text is None:
            return None
        try:
            apply_typmod(parse_text(type_.name, text, timezone=zone), type_, explicit=False)
        except SqlError as error:
            if isinstance(error, OutOfEngineRange) or error.sqlstate in ("0A000", "54001"):
                raise
            return False
        return True

    return run


def _failing(row: Row) -> Maker:
    """The error that the row's template raises on engines."""
    found = template_failure(row.duckdb or "")
    assert found is not None, f"{row.id} is an error"
    sqlstate, message = found

    def fail() -> Value:
        raise SqlError(sqlstate, message)

    return type_independent(fail)


FUNCTIONS.register(
    _failing,
    "meridian_no_column()",
    "meridian_no_database()",
    "meridian_no_sequence()",
    "meridian_no_fork()",
    "meridian_no_object_class()",
    "meridian_no_such_database()",
    "meridian_no_tablespace()",
)
implements("unique_id()")(count(1).__next__)
implements("kept(any)")(lambda value: value)
implements("unicode_version()")(lambda: "16.0")
implements("pg_trigger_depth()")(lambda: 0)


@makes("setting_of(_text,text,bool)")
def _setting_of(_call: Call) -> Function:
    def setting(settings: tuple[str, ...], name: str, missing_ok: bool) -> Value:
        known = dict(zip(settings[::2], settings[1::2], strict=True))
        found = known.get(name.lower())
        if found is None and not missing_ok:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        return found

    return setting
