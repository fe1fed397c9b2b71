"""The table of session variables: PostgreSQL's 399 settings as Meridian has them, and its own.

    sql/data/settings.txt ──▶ check by type ──▶ what differs here ──▶ VARIABLES_BY_NAME

    context                  SET
    user, superuser          sets it; a value that would promise something undone is 0A000
    backend, sighup, ..      refused as in PostgreSQL (55P02)

INVARIANTS
  T1  a setting has its recorded default, unless `_DEFAULTS` names another one.
  T2  a setting that nobody sets here has one value, its default (`only`): the configuration of the
      server cannot set another one either.
  T3  a setting in `_PROMISES` has one value too, as another one would be a lie.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from coordinator.variables.date_style import date_style
from coordinator.variables.session_roles import check_role
from coordinator.variables.setting_values import (
    Check,
    check_boolean,
    choice,
    integer,
    parse_amount,
    real,
)
from coordinator.variables.special_checks import (
    SPECIAL,
    STRICT,
    all_but,
    any_value,
    check_consistency,
    only,
)
from coordinator.variables.time_zone import check_time_zone
from coordinator.version import PRODUCT_VERSION
from sql.catalog.view_reads import REFRESHES, VIEW_READS_CHOICES, ViewReads
from sql.errors import SqlError
from sql.functions.postgresql_settings import RecordedSetting, read_recorded_settings

OWN_CATEGORY: Final = "Meridian"


_NEVER_SET: Final = {
    "internal": "cannot be changed",
    "postmaster": "cannot be changed without restarting the server",
    "sighup": "cannot be changed now",
    "backend": "cannot be set after connection start",
    "superuser-backend": "cannot be set after connection start",
}
"""What PostgreSQL says of SET, by the setting's context (set_config_with_handle)."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `reported`: the client is told its changes. `hidden`: neither in SHOW ALL nor
    changed by RESET ALL.
    """

    setting: RecordedSetting
    check: Check = any_value
    reported: bool = False
    hidden: bool = False

    @property
    def name(self) -> str:
        """The name as PostgreSQL spells it."""
        return self.setting.name

    @property
    def default(self) -> str:
        """The value that nobody has set."""
        return self.setting.shown

    def check_changeable(self, *, is_superuser: bool) -> None:
        """55P02, 42501: SET does not change the variable, or not for this role."""
        context = self.setting.context
        if context in _NEVER_SET:
            raise SqlError("55P02", f'parameter "{self.name}" {_NEVER_SET[context]}')
        if context == "superuser" and not is_superuser:
            raise SqlError("42501", f'permission denied to set parameter "{self.name}"')

    def check_startable(self, *, is_superuser: bool) -> None:
        """The same for the start-up message, which is earlier."""
        context = self.setting.context
        if context == "superuser-backend" and not is_superuser:
            raise SqlError("42501", f'permission denied to set parameter "{self.name}"')
        if context not in ("backend", "superuser-backend"):
            self.check_changeable(is_superuser=is_superuser)

    def raw(self, shown: str) -> str:
        """What pg_settings has for what SHOW prints: a number without its unit."""
        if not self.setting.unit:
            return shown
        return f"{parse_amount(shown, self.setting.unit):.10g}"


def custom_variable(name: str) -> Variable:
    """A setting of the client's own, with a dot in its name."""
    return Variable(_described(name, "", "Customized Options", "Custom variable."), hidden=True)


def _described(
    name: str,
    shown: str,
    category: str,
    description: str,
    *,
    context: str = "user",
    vartype: str = "string",
    choices: tuple[str, ...] = (),
    unit: str = "",
) -> RecordedSetting:
    return RecordedSetting(
        name=name,
        shown=shown,
        unit=unit,
        context=context,
        vartype=vartype,
        least=None,
        greatest=None,
        choices=choices,
        superuser_only=False,
        aliases={},
        boot=shown,
        category=category,
        description=description,
        more=None,
    )


_DEFAULTS: Final = {
    "default_transaction_isolation": "serializable",
    "jit": "off",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "log_timezone": "UTC",
    "max_logical_replication_workers": "0",
    "max_replication_slots": "0",
    "max_wal_senders": "0",
    "server_version": f"18.0 (Meridian {PRODUCT_VERSION})",
    "server_version_num": "180000",
    "tcp_keepalives_count": "0",
    "tcp_keepalives_idle": "0",
    "tcp_keepalives_interval": "0",
    "timezone": "UTC",
    "transaction_isolation": "serializable",
    "unix_socket_directories": "",
    "wal_level": "minimal",
}
"""Where Meridian differs: it has no replication, prints in the C locale, and is serializable."""

_BOUNDS: Final = {"scram_iterations": ("1024", "100000")}
"""Fewer protect nobody; with more the server would compute for seconds."""

_OCTAL: Final = frozenset({"data_directory_mode", "log_file_mode", "unix_socket_permissions"})
"""Shown as the modes of files are."""

SHOWN_OTHERWISE: Final = _OCTAL | {"archive_command", "external_pid_file"}
"""Settings whose RESET value pg_settings shows as it is built in, and not as SHOW does."""

_UNCHECKED: Final = frozenset({*_OCTAL, "server_version_num"})
"""Settings that nobody sets, and whose default the check of their type does not take."""

_PROMISES: Final = frozenset({
    "allow_in_place_tablespaces", "allow_system_table_mods", "array_nulls", "exit_on_error",
    "ignore_checksum_failure", "log_min_duration_sample",
    "log_replication_commands", "log_temp_files", "log_transaction_sample_rate",
    "password_encryption", "quote_all_identifiers", "standard_conforming_strings",
    "temp_file_limit", "track_activities", "track_counts", "transform_null_equals",
    "zero_damaged_pages",
})  # fmt: skip
"""Settings that PostgreSQL lets a session change; here a change would do nothing, but must."""

_WITHOUT: Final = {"backslash_quote": ("off",), "session_replication_role": ("replica",)}
"""Values that would do nothing, but must; the others mean what Meridian does."""

_REPORTED: Final = frozenset({
    "application_name", "client_encoding", "datestyle", "default_transaction_read_only",
    "in_hot_standby", "integer_datetimes", "intervalstyle", "scram_iterations", "search_path",
    "server_encoding", "server_version", "standard_conforming_strings", "timezone",
})  # fmt: skip

_SETTABLE: Final = frozenset({"user", "superuser"})

_CONFIGURED: Final = frozenset({"log_connections", "log_disconnections"})
"""Settings that no session changes, and the configuration does."""


def _type_check(setting: RecordedSetting) -> Check:
    """The check of the setting's type."""
    if setting.name in _UNCHECKED:
        return any_value
    match setting.vartype:
        case "bool":
            return check_boolean
        case "enum":
            return choice(*setting.choices, aliases=setting.aliases)
        case "integer":
            low, high = int(setting.least or 0), int(setting.greatest or 0)
            return integer(low, high, setting.unit)
        case "real":
            low_real, high_real = float(setting.least or 0), float(setting.greatest or 0)
            # PostgreSQL prints the greatest double with six digits.
            unbounded = setting.greatest == "1.79769e+308"
            greatest = sys.float_info.max if unbounded else high_real
            return real(low_real, greatest, setting.unit)
        case _:
            return any_value


def _of_postgresql() -> Iterator[Variable]:
    for recorded in read_recorded_settings():
        key = recorded.name.lower()
        setting = recorded
        if key in _DEFAULTS:
            setting = replace(recorded, shown=_DEFAULTS[key], boot=_DEFAULTS[key])
        if key in _BOUNDS:
            setting = replace(setting, least=_BOUNDS[key][0], greatest=_BOUNDS[key][1])
        check = _SPECIAL.get(key) or _type_check(setting)
        if key in _WITHOUT:
            check = all_but(check, _WITHOUT[key])
        elif key in _CONFIGURED:
            pass
        elif key in _PROMISES or setting.context not in _SETTABLE:
            check = only(check, setting.shown)
        yield Variable(setting, check, reported=key in _REPORTED)


_SPECIAL: Final[dict[str, Check]] = {
    **SPECIAL,
    "datestyle": date_style,
    "timezone": check_time_zone,
}

_HIDDEN: Final = (
    Variable(
        _described(
            "is_superuser",
            "on",
            "Preset Options",
            "Shows whether the current user is a superuser.",
            context="internal",
            vartype="bool",
        ),
        reported=True,
        hidden=True,
    ),
    Variable(
        _described("role", "none", "Ungrouped", "Sets the current role."),
        check_role,
        hidden=True,
    ),
    Variable(
        _described("session_authorization", "", "Ungrouped", "Sets the session user name."),
        check_role,
        reported=True,
        hidden=True,
    ),
)

_ENGINES: Final = ("spark", "local", "auto")
DEFAULT_ENGINE: Final = "auto"

_OWN: Final = (
    Variable(
        _described(
            "consistency",
            STRICT,
            OWN_CATEGORY,
            "Sets whether transactions follow real time, and how old their answers may be.",
        ),
        check_consistency,
    ),
    Variable(
        _described(
            "engine",
            DEFAULT_ENGINE,
            OWN_CATEGORY,
            "Chooses the engine: spark, local, or auto for the one that fits the query.",
            vartype="enum",
            choices=_ENGINES,
        ),
        choice(*_ENGINES),
    ),
    Variable(
        _described(
            "default_view_refresh",
            REFRESHES[0],
            OWN_CATEGORY,
            "Sets how materialized views are refreshed that are created without saying so.",
            vartype="enum",
            choices=REFRESHES,
        ),
        choice(*REFRESHES),
    ),
    Variable(
        _described(
            "view_reads",
            ViewReads.AUTO.value,
            OWN_CATEGORY,
            "Chooses what answers for a materialized view: stored rows, its definition, or auto.",
            vartype="enum",
            choices=VIEW_READS_CHOICES,
        ),
        choice(*VIEW_READS_CHOICES),
    ),
    Variable(
        _described(
            "real_time_recency",
            "off",
            OWN_CATEGORY,
            "Lets queries of fed tables wait for all that upstream has committed.",
            vartype="bool",
        ),
        check_boolean,
    ),
    Variable(
        _described(
            "real_time_recency_timeout",
            "10s",
            OWN_CATEGORY,
            "Sets how long a query waits for upstream.",
            vartype="integer",
        ),
        integer(1, 86_400_000, "ms"),
    ),
    Variable(
        _described(
            "progress_notices_s",
            "0",
            OWN_CATEGORY,
            "Sends a notice so often while a statement runs, in seconds; 0 sends none.",
            vartype="integer",
        ),
        integer(0, 86_400, "s"),
    ),
    Variable(
        _described(
            "validate_catalog_reads",
            "off",
            OWN_CATEGORY,
            "Lets reads of the system catalogs conflict with DDL.",
            vartype="bool",
        ),
        check_boolean,
    ),
)

VARIABLES_BY_NAME: Final[dict[str, Variable]] = {
    item.name.lower(): item for item in (*_of_postgresql(), *_HIDDEN, *_OWN)
}

DEFAULTS: Final = {name: item.default for name, item in VARIABLES_BY_NAME.items()}

TIME_LIMITS: Final = (
    "idle_in_transaction_session_timeout", "idle_session_timeout", "lock_timeout",
    "progress_notices_s", "statement_timeout", "transaction_timeout",
)  # fmt: skip
"""Settings that end a statement or a session, or tell of it, after a time; 0 is none."""
