"""The table of session variables: name, default, check, unit, whether changes are reported.

Names, spellings and error texts are PostgreSQL's. A check takes the client's text and returns the
text that SHOW prints, or raises. Where Meridian implements only one of PostgreSQL's values, it
refuses the others with 0A000 (V2 of `variables.py`).
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final, TypeAlias

from coordinator.variables.date_style import date_style
from coordinator.variables.session_roles import check_role
from coordinator.variables.time_zone import check_time_zone
from sql.errors import SqlError, not_supported

Check: TypeAlias = Callable[[str, str], str]


def _any(_name: str, value: str) -> str:
    return value


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `internal`: SHOW only. `unit`: of an integer, `ms` or `kB`. `hidden`: neither
    in SHOW ALL nor changed by RESET ALL.
    """

    name: str
    default: str
    description: str
    check: Check = _any
    reported: bool = False
    internal: bool = False
    unit: str = ""
    hidden: bool = False

    def amount(self, shown: str) -> int:
        """The number behind what SHOW prints, in `unit`."""
        return _parse_amount(shown, self.unit) or 0


def invalid_value(name: str, value: str, *, hint: str | None = None) -> SqlError:
    """22023, PostgreSQL's words."""
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)


def _boolean(name: str, value: str) -> str:
    word = value.strip().lower()
    if word:
        for spelling in ("true", "yes", "on", "1"):
            if spelling.startswith(word) and word != "o":
                return "on"
        for spelling in ("false", "no", "off", "0"):
            if spelling.startswith(word) and word != "o":
                return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def _choice(*allowed: str) -> Check:
    def check(name: str, value: str) -> str:
        word = value.lower()
        if word in allowed:
            return word
        raise invalid_value(name, value, hint=f"Available values: {', '.join(allowed)}.")

    return check


_MS: Final = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_KB: Final = {"B": 1 / 1024, "kB": 1, "MB": 1 << 10, "GB": 1 << 20, "TB": 1 << 30}
_UNITS: Final[dict[str, dict[str, float]]] = {"ms": _MS, "kB": _KB, "": {}}
_AMOUNT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*\Z")
_INT_MAX: Final = 2_147_483_647


def _parse_amount(value: str, unit: str) -> int | None:
    match = _AMOUNT.match(value)
    if match is None:
        return None
    factor = _UNITS[unit].get(match[2]) if match[2] else 1
    amount = float(match[1])
    return None if factor is None or math.isinf(amount) else round(amount * factor)


def _show_amount(amount: int, unit: str) -> str:
    if amount <= 0 or not unit:
        return str(amount)
    larger = [(name, factor) for name, factor in _UNITS[unit].items() if factor >= 1]
    name, factor = next((n, f) for n, f in reversed(larger) if amount % f == 0)
    return f"{int(amount // factor)}{name}"


def _integer(low: int, high: int = _INT_MAX, unit: str = "") -> Check:
    suffix = f" {unit}" if unit else ""

    def check(name: str, value: str) -> str:
        amount = _parse_amount(value, unit)
        if amount is None:
            named = list(_UNITS[unit])
            words = ", ".join(f'"{item}"' for item in named[:-1])
            hint = (
                f'Valid units for this parameter are {words}, and "{named[-1]}".' if unit else None
            )
            raise invalid_value(name, value, hint=hint)
        if not low <= amount <= high:
            raise SqlError(
                "22023",
                f'{amount}{suffix} is outside the valid range for parameter "{name}"'
                f" ({low}{suffix} .. {high}{suffix})",
            )
        return _show_amount(amount, unit)

    return check


def _encoding(name: str, value: str) -> str:
    word = re.sub(r"[^a-z0-9]", "", value.lower())
    if word in ("utf8", "unicode"):
        return "UTF8"
    if word in _OTHER_ENCODINGS or re.fullmatch(r"(latin|win|iso8859)\d{1,4}", word):
        raise not_supported(f'"{value}" for parameter "{name}"')
    error = invalid_value(name, value)
    error.detail = "Meridian speaks UTF8 only."
    raise error


_OTHER_ENCODINGS: Final = frozenset({
    "sqlascii", "eucjp", "euccn", "euckr", "euctw", "eucjis2004", "koi8r", "koi8u", "sjis", "big5",
    "mskanji", "shiftjis", "gbk", "uhc", "gb18030", "johab", "shiftjis2004",
})  # fmt: skip
"""What else PostgreSQL knows as a client's encoding."""


def _search_path(name: str, value: str) -> str:
    try:
        split_search_path(value)
    except ValueError:
        error = invalid_value(name, value)
        error.detail = "List syntax is invalid."
        raise error from None
    return value


_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*(,|\Z)')


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


STRICT: Final = "strict"
"""The consistency that orders transactions by real time."""
BOUNDED_STALENESS: Final = "bounded staleness "
"""The bound stands behind it, as a time in SHOW's spelling."""


def milliseconds(shown: str) -> int:
    """The amount behind a time as SHOW prints it."""
    return _parse_amount(shown, "ms") or 0


_ISOLATION_LEVELS: Final = _choice(
    "serializable", "repeatable read", "read committed", "read uncommitted"
)
_CONSISTENCIES: Final = _choice(STRICT, "serializable", BOUNDED_STALENESS + "<time>")


def _isolation(name: str, value: str) -> str:
    """PostgreSQL's names. Older versions had further ones, which `consistency` has now."""
    word = " ".join(value.lower().split())
    if word == "strict serializable":
        raise invalid_value(name, value, hint="Write serializable, which is strict.")
    if word.startswith(BOUNDED_STALENESS):
        raise invalid_value(name, value, hint="It is a value of the setting consistency.")
    return _ISOLATION_LEVELS(name, value)


def _consistency(name: str, value: str) -> str:
    word = " ".join(value.lower().split())
    if word.startswith(BOUNDED_STALENESS):
        bound = _parse_amount(_SHORT.sub(_shortened, word.split(" ", 2)[2].strip("'")), "ms")
        if bound is None or not 0 < bound <= _INT_MAX:
            raise invalid_value(name, value, hint="Write, for instance, bounded staleness 5s.")
        return BOUNDED_STALENESS + _show_amount(bound, "ms")
    return _CONSISTENCIES(name, word)


_SHORT: Final = re.compile(r"\b(milliseconds?|seconds?|minutes?|hours?|days?)\b")


def _shortened(found: re.Match[str]) -> str:
    """The unit of an interval as settings write it."""
    return {"mil": "ms", "sec": "s", "min": "min", "hou": "h", "day": "d"}[found[0][:3]]


def _application_name(_name: str, value: str) -> str:
    return "".join(
        char if " " <= char <= "~" else "".join(f"\\x{byte:02x}" for byte in char.encode())
        for char in value
    )


def _only_on(name: str, value: str) -> str:
    if _boolean(name, value) == "off":
        raise not_supported(f'"off" for parameter "{name}"')
    return "on"


def product_version() -> str:
    """Meridian's own version."""
    try:
        return version("meridian")
    except PackageNotFoundError:
        return "0"


def _lc(name: str, value: str) -> str:
    if value in ("C", "POSIX", "C.UTF-8"):
        return value
    raise invalid_value(name, value)


_MESSAGES = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
)  # fmt: skip


def _limit(name: str, description: str) -> Variable:
    return Variable(name, "0", description, _integer(0, unit="ms"), unit="ms")


def _flag(name: str, default: str, description: str) -> Variable:
    return Variable(name, default, description, _boolean)


_VARIABLES: Final = (
    Variable(
        "application_name",
        "",
        "Sets the application name to be reported in statistics and logs.",
        _application_name,
        reported=True,
    ),
    Variable(
        "bytea_output",
        "hex",
        "Sets the output format for bytea.",
        _choice("hex", "escape"),
    ),
    _flag("check_function_bodies", "on", "Check routine bodies during CREATE FUNCTION."),
    Variable(
        "client_encoding",
        "UTF8",
        "Sets the client's character set encoding.",
        _encoding,
        reported=True,
    ),
    Variable(
        "client_min_messages",
        "notice",
        "Sets the message levels that are sent to the client.",
        _choice(*_MESSAGES),
    ),
    Variable(
        "consistency",
        STRICT,
        "Sets whether transactions follow real time, and how old their answers may be.",
        _consistency,
    ),
    Variable(
        "DateStyle",
        "ISO, MDY",
        "Sets the display format for date and time values.",
        date_style,
        reported=True,
    ),
    Variable(
        "default_table_access_method",
        "heap",
        "Sets the default table access method for new tables.",
        _choice("heap"),
    ),
    Variable(
        "default_tablespace", "", "Sets the default tablespace to create tables in.", _choice("")
    ),
    _flag("default_transaction_deferrable", "off", "Sets the default deferrable status."),
    Variable(
        "default_transaction_isolation",
        "serializable",
        "Sets the transaction isolation level of each new transaction.",
        _isolation,
    ),
    Variable(
        "default_transaction_read_only",
        "off",
        "Sets the default read-only status of new transactions.",
        _boolean,
        reported=True,
    ),
    Variable(
        "engine",
        "spark",
        "Chooses the engine: spark, local, or auto for the one that fits the query.",
        _choice("spark", "local", "auto"),
    ),
    _flag(
        "escape_string_warning", "on", "Warn about backslash escapes in ordinary string literals."
    ),
    Variable(
        "extra_float_digits",
        "1",
        "Sets the number of digits displayed for floating-point values.",
        _integer(-15, 3),
    ),
    _limit("idle_in_transaction_session_timeout", "Ends sessions idle in a transaction."),
    _limit("idle_session_timeout", "Ends sessions idle outside of transactions."),
    Variable(
        "in_hot_standby",
        "off",
        "Shows whether hot standby is active.",
        internal=True,
        reported=True,
    ),
    Variable(
        "integer_datetimes",
        "on",
        "Shows whether datetimes are integer based.",
        internal=True,
        reported=True,
    ),
    Variable(
        "IntervalStyle",
        "postgres",
        "Sets the display format for interval values.",
        _choice("postgres", "postgres_verbose", "sql_standard", "iso_8601"),
        reported=True,
    ),
    Variable(
        "is_superuser",
        "on",
        "Shows whether the current user is a superuser.",
        internal=True,
        reported=True,
        hidden=True,
    ),
    _flag("jit", "off", "Allow JIT compilation."),
    _limit("lock_timeout", "Sets the maximum allowed duration of any wait for a lock."),
    Variable("max_identifier_length", "63", "Shows the maximum identifier length.", internal=True),
    Variable("role", "none", "Sets the current role.", check_role, hidden=True),
    _flag("row_security", "on", "Enables row security."),
    Variable(
        "scram_iterations",
        "4096",
        "Sets the iteration count for SCRAM secret generation.",
        _integer(1),
        reported=True,
    ),
    Variable(
        "search_path",
        '"$user", public',
        "Sets the schema search order for names that are not schema-qualified.",
        _search_path,
        reported=True,
    ),
    Variable(
        "server_encoding",
        "UTF8",
        "Shows the server (database) character set encoding.",
        internal=True,
        reported=True,
    ),
    Variable(
        "server_version",
        f"18.0 (Meridian {product_version()})",
        "Shows the server version.",
        internal=True,
        reported=True,
    ),
    Variable(
        "server_version_num", "180000", "Shows the server version as an integer.", internal=True
    ),
    Variable(
        "session_authorization",
        "",
        "Sets the session user name.",
        check_role,
        reported=True,
        hidden=True,
    ),
    Variable(
        "standard_conforming_strings",
        "on",
        "Causes '...' strings to treat backslashes literally.",
        _only_on,
        reported=True,
    ),
    _limit("statement_timeout", "Sets the maximum allowed duration of any statement."),
    Variable(
        "synchronous_commit",
        "on",
        "Commits are always durable before they are acknowledged.",
        _choice("on", "off", "local", "remote_write", "remote_apply"),
    ),
    Variable(
        "TimeZone",
        "UTC",
        "Sets the time zone for displaying and interpreting time stamps.",
        check_time_zone,
        reported=True,
    ),
    _flag("transaction_deferrable", "off", "Shows the deferrable status of the transaction."),
    Variable(
        "transaction_isolation",
        "serializable",
        "Sets the current transaction's isolation level.",
        _isolation,
    ),
    _flag("transaction_read_only", "off", "Sets the current transaction's read-only status."),
    _limit("transaction_timeout", "Sets the maximum allowed duration of any transaction."),
    _flag("validate_catalog_reads", "off", "Lets reads of the system catalogs conflict with DDL."),
    Variable("work_mem", "4MB", "Accepted for compatibility.", _integer(64, unit="kB"), unit="kB"),
    Variable(
        "maintenance_work_mem",
        "64MB",
        "Accepted for compatibility.",
        _integer(64, unit="kB"),
        unit="kB",
    ),
    Variable("lc_messages", "C", "Sets the language in which messages are displayed.", _lc),
    Variable("lc_monetary", "C", "Sets the locale for formatting monetary amounts.", _lc),
    Variable("lc_numeric", "C", "Sets the locale for formatting numbers.", _lc),
    Variable("lc_time", "C", "Sets the locale for formatting date and time values.", _lc),
    Variable(
        "xmloption",
        "content",
        "Sets whether XML data is documents or fragments.",
        _choice("content", "document"),
    ),
)


VARIABLES_BY_NAME: Final[dict[str, Variable]] = {item.name.lower(): item for item in _VARIABLES}
