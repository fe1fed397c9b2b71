"""Checks of settings whose values have a form of their own: encodings, lists of names, levels.

A check takes the setting's name and the client's text and returns the text that SHOW prints, or
raises. Where Meridian has only one of PostgreSQL's values, it refuses the others with 0A000 (V2 of
`variables.py`).
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from coordinator.variables.setting_values import (
    INT_MAX,
    Check,
    choice,
    invalid_value,
    parse_amount,
    show_amount,
)
from sql.errors import SqlError, not_supported
from sql.types.encodings import find_encoding, normalized

_OTHER_ENCODINGS: Final = frozenset({
    "eucjp", "euccn", "euckr", "euctw", "eucjis2004", "sjis", "big5", "mskanji", "shiftjis", "gbk",
    "uhc", "gb18030", "johab", "shiftjis2004", "win932", "win936", "win949", "win950",
    "windows932", "windows936", "windows949", "windows950", "muleinternal",
})  # fmt: skip
"""What else PostgreSQL knows as a client's encoding."""

_TABLESPACES: Final = ("pg_default", "pg_global")
_TEXT_SEARCH: Final = frozenset({
    "simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian",
    "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian", "serbian", "spanish",
    "swedish", "tamil", "turkish", "yiddish",
})  # fmt: skip
_ZONE_LISTS: Final = ("Default", "Australia", "India")
_NAME: Final = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*(,|\Z)')

STRICT: Final = "strict"
"""The consistency that orders transactions by real time."""
BOUNDED_STALENESS: Final = "bounded staleness "
"""The bound stands behind it, as a time in SHOW's spelling."""

BINDING: Final = ("restrict_nonsystem_relation_kind", "default_view_refresh", "view_reads")
"""Settings that decide what a name of a relation means, or what CREATE makes."""


def milliseconds(shown: str) -> int:
    """The amount behind a time as SHOW prints it."""
    return round(parse_amount(shown, "ms"))


def any_value(_name: str, value: str) -> str:
    """Every text."""
    return value


def only(check: Check, shown: str) -> Check:
    """The one value that Meridian has, in any spelling. Others are refused with 0A000."""

    def restricted(name: str, value: str) -> str:
        found = check(name, value)
        if found != shown:
            raise not_supported(f'"{found}" for parameter "{name}"')
        return found

    return restricted


def all_but(check: Check, refused: Sequence[str]) -> Check:
    """The check's values without those that would promise something that is not done."""

    def restricted(name: str, value: str) -> str:
        found = check(name, value)
        if found in refused:
            raise not_supported(f'"{found}" for parameter "{name}"')
        return found

    return restricted


def check_client_encoding(name: str, value: str) -> str:
    """The server's encoding, or one of one byte a character, in any of its spellings."""
    found = find_encoding(value)
    if found is not None:
        return found.name
    if normalized(value) in _OTHER_ENCODINGS:
        raise not_supported(f'"{value}" for parameter "{name}"')
    raise invalid_value(name, value)


def check_search_path(name: str, value: str) -> str:
    """A list of schemas."""
    _split(name, value)
    return value


def _split(name: str, value: str) -> list[str]:
    try:
        return split_search_path(value)
    except ValueError:
        raise invalid_value(name, value, detail="List syntax is invalid.") from None


def split_search_path(value: str) -> list[str]:
    """The names of a list of identifiers; unquoted ones are folded. Raises ValueError."""
    names: list[str] = []
    position, more = 0, bool(value.strip())
    while more:
        match = _NAME.match(value, position)
        if match is None:
            raise ValueError(value)
        names.append(match[2].lower() if match[1] is None else match[1].replace('""', '"'))
        position, more = match.end(), match[3] == ","
    return names


def words(*allowed: str) -> Check:
    """A list of key words."""

    def check(name: str, value: str) -> str:
        for word in _split(name, value):
            if word.lower() not in allowed:
                raise invalid_value(name, value, detail=f'Unrecognized key word: "{word}".')
        return value

    return check


def check_tablespace(name: str, value: str) -> str:
    """The default tablespace: one of those that every database has, or none."""
    if value and value not in _TABLESPACES:
        raise invalid_value(name, value, detail=f'Tablespace "{value}" does not exist.')
    return value


def check_tablespaces(name: str, value: str) -> str:
    """A list of tablespaces."""
    for tablespace in _split(name, value):
        if tablespace and tablespace not in _TABLESPACES:
            raise SqlError("42704", f'tablespace "{tablespace}" does not exist')
    return value


def check_access_method(name: str, value: str) -> str:
    """`heap`, which is what a table of PostgreSQL says of itself."""
    if not value:
        raise invalid_value(name, value, detail=f'"{name}" cannot be empty.')
    if value != "heap":
        detail = f'Table access method "{value}" does not exist.'
        raise invalid_value(name, value, detail=detail)
    return value


def check_text_search_config(name: str, value: str) -> str:
    """A configuration of PostgreSQL, shown with its schema."""
    schema, dot, config = value.rpartition(".")
    if config not in _TEXT_SEARCH or (dot and schema != "pg_catalog"):
        raise invalid_value(name, value)
    return f"pg_catalog.{config}"


def check_zone_abbreviations(name: str, value: str) -> str:
    """A file of abbreviations that PostgreSQL comes with."""
    for known in _ZONE_LISTS:
        if value.lower() == known.lower():
            return value
    raise invalid_value(name, value)


_ISOLATION_LEVELS: Final = choice(
    "serializable", "repeatable read", "read committed", "read uncommitted"
)
_CONSISTENCIES: Final = choice(STRICT, "serializable", BOUNDED_STALENESS + "<time>")


def check_isolation(name: str, value: str) -> str:
    """PostgreSQL's names. Older versions had further ones, which `consistency` has now."""
    word = " ".join(value.lower().split())
    if word == "strict serializable":
        raise invalid_value(name, value, hint="Write serializable, which is strict.")
    if word.startswith(BOUNDED_STALENESS):
        raise invalid_value(name, value, hint="It is a value of the setting consistency.")
    return _ISOLATION_LEVELS(name, value)


def check_consistency(name: str, value: str) -> str:
    """`strict`, `serializable`, or `bounded staleness` with a time."""
    word = " ".join(value.lower().split())
    if word.startswith(BOUNDED_STALENESS):
        bound = _bound(_SHORT.sub(_shortened, word.split(" ", 2)[2].strip("'")))
        if not 0 < bound <= INT_MAX:
            raise invalid_value(name, value, hint="Write, for instance, bounded staleness 5s.")
        return BOUNDED_STALENESS + show_amount(bound, "ms")
    return _CONSISTENCIES(name, word)


def _bound(text: str) -> int:
    try:
        return round(parse_amount(text, "ms"))
    except (SqlError, OverflowError):
        return 0


_SHORT: Final = re.compile(r"\b(milliseconds?|seconds?|minutes?|hours?|days?)\b")


def _shortened(found: re.Match[str]) -> str:
    """The unit of an interval as settings write it."""
    return {"mil": "ms", "sec": "s", "min": "min", "hou": "h", "day": "d"}[found[0][:3]]


def check_application_name(_name: str, value: str) -> str:
    """The text; bytes beyond ASCII are shown as hexadecimal."""
    return "".join(
        char if " " <= char <= "~" else "".join(f"\\x{byte:02x}" for byte in char.encode())
        for char in value
    )


def check_locale(name: str, value: str) -> str:
    """A locale in which Meridian prints."""
    if value in ("C", "POSIX", "C.UTF-8"):
        return value
    raise invalid_value(name, value)


def check_connection_aspects(name: str, value: str) -> str:
    """A Boolean, or a list of what is logged of connections (check_log_connections)."""
    try:
        connection_aspects(value)
    except ValueError as error:
        wrong = f'Invalid option "{error}".'
        raise invalid_value(name, value, detail=wrong) from None
    return value


CONNECTION_ASPECTS: Final = ("receipt", "authentication", "authorization", "setup_durations")


def connection_aspects(value: str) -> frozenset[str]:
    """What a value of `log_connections` asks for. Raises ValueError with the wrong word."""
    names = [name.lower() for name in split_search_path(value)]
    if len(names) <= 1:
        word = names[0] if names else "off"
        if word in ("on", "true", "yes", "1"):
            return frozenset(CONNECTION_ASPECTS[:3])
        if word in ("off", "false", "no", "0"):
            return frozenset()
        if word == "all":
            return frozenset(CONNECTION_ASPECTS)
    for name in names:
        if name not in CONNECTION_ASPECTS:
            raise ValueError(name)
    return frozenset(names)


SPECIAL: Final[dict[str, Callable[[str, str], str]]] = {
    "application_name": check_application_name,
    "client_encoding": check_client_encoding,
    "createrole_self_grant": only(words("set", "inherit"), ""),
    "default_table_access_method": check_access_method,
    "default_tablespace": check_tablespace,
    "default_text_search_config": check_text_search_config,
    "default_transaction_isolation": check_isolation,
    "log_connections": check_connection_aspects,
    "lc_messages": check_locale,
    "lc_monetary": check_locale,
    "lc_numeric": check_locale,
    "lc_time": check_locale,
    "restrict_nonsystem_relation_kind": words("view", "foreign-table"),
    "search_path": check_search_path,
    "temp_tablespaces": check_tablespaces,
    "timezone_abbreviations": only(check_zone_abbreviations, "Default"),
    "transaction_isolation": check_isolation,
    "wal_consistency_checking": only(words("all", "heap", "btree"), ""),
}
"""Checks of PostgreSQL's settings that no type describes."""
