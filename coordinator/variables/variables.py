"""Session variables: SET, SET LOCAL, RESET, SHOW, and the changes that are reported to the client.

    defaults ◀── start-up packet ◀── SET (undone by ROLLBACK) ◀── SET LOCAL

INVARIANTS
  V1  a stored value is valid and in the spelling that SHOW prints.
  V2  a setting that would change an answer is either obeyed or refused: an accepted and ignored one
      (work_mem, jit ..) never changes the result of a statement.
  V3  after COMMIT the values are those that SET left, after ROLLBACK those from before the
      transaction, after ROLLBACK TO those from before the savepoint; SET LOCAL survives none.
  V4  the present value of every reported variable has been sent to the client whenever it may send.
  V5  a transaction keeps the modes that it began with, whatever becomes of their defaults since.
      `consistency` is such a mode under the name of its default: SET changes both, SET LOCAL and
      AND CHAIN the mode alone.

Not here: the table of variables (`variables/table.py`); the meaning of a setting (its readers).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from coordinator.core.messages.identities import Isolation
from coordinator.variables.date_style import merge_date_style
from coordinator.variables.isolation import determine_level
from coordinator.variables.session_logging import session_logging
from coordinator.variables.session_roles import NO_ROLE, ROLE, SESSION_AUTHORIZATION, RoleName
from coordinator.variables.special_checks import BINDING, milliseconds, split_search_path
from coordinator.variables.table import (
    DEFAULTS,
    SHOWN_OTHERWISE,
    TIME_LIMITS,
    VARIABLES_BY_NAME,
    Variable,
    custom_variable,
)
from coordinator.variables.time_zone import check_time_zone
from sql.catalog.acl import OWNER
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported
from sql.functions.postgresql_settings import SessionSettings, SettingRow
from sql.types.encodings import client_encoding
from sql.types.styles import Styles, styles_from_settings


@dataclass(frozen=True, slots=True)
class ShownVariable:
    """A row of SHOW ALL."""

    name: str
    value: str
    description: str


def unrecognized_variable(name: str) -> SqlError:
    """42704: no such variable; 0A000: only PostgreSQL has it."""
    if name.lower() == "seed":
        return not_supported(f'parameter "{name}"')
    return SqlError("42704", f'unrecognized configuration parameter "{name}"')


_RESERVED: Final = frozenset({"spark", "duckdb", "meridian"})
"""First parts of no custom variable: nobody shall believe that he set something of an engine."""

TRANSACTION_MODES: Final[Mapping[str, str]] = {
    "transaction_isolation": "default_transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
    "transaction_deferrable": "default_transaction_deferrable",
    "consistency": "consistency",
}
"""What belongs to one transaction, and the variable that it begins with."""

_STALE_MODES: Final = {"transaction_isolation": "repeatable read", "transaction_read_only": "on"}
"""What bounded staleness makes of other modes (I2 of `isolation.py`)."""

_HIDDEN: Final = frozenset(key for key, item in VARIABLES_BY_NAME.items() if item.hidden)
_REPORTED: Final = {key: item for key, item in VARIABLES_BY_NAME.items() if item.reported}
_ORDER: Final = sorted(VARIABLES_BY_NAME.keys() - _HIDDEN)
Modes: TypeAlias = Mapping[str, str]
"""The modes of one transaction, by variable."""


@dataclass(frozen=True, slots=True)
class VariablesMark:
    """The variables at a savepoint."""

    values: Mapping[str, str]
    local: Mapping[str, str]
    modes: Modes


def _only_hidden(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if key in _HIDDEN}


class _Shown(SessionSettings):
    """What `current_setting` and pg_settings read."""

    def __init__(self, variables: "Variables") -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> str:
        try:
            return self._variables.show(name)
        except SqlError as error:
            if error.sqlstate == "42501":
                raise
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (row.name.lower() for row in self._variables.all())

    def __len__(self) -> int:
        return len(self._variables.all())

    def rows(self) -> Iterator[SettingRow]:
        return self._variables.rows()


class Variables:
    """One session's variables; see the module. `connected`: the role that the client has."""

    def __init__(
        self,
        *,
        user: str,
        defaults: Mapping[str, str],
        connected: RoleName | None = None,
        stored: Sequence[tuple[str, Mapping[str, str]]] = (),
        given: Mapping[str, str] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self.connected = connected or RoleName(user, OWNER, is_superuser=True)
        self._defaults = {**(facts or {}), SESSION_AUTHORIZATION: self.connected}
        self._sources = dict.fromkeys(facts or {}, "override")
        for name, value in defaults.items():
            variable = self._variable(name)
            if variable.setting.context == "internal":
                variable.check_changeable(is_superuser=True)
            self._take_default(variable, value, "configuration file")
        self.problems = list[SqlError]()
        for source, values in stored:
            for name, value in values.items():
                self._take_stored(name, value, source)
        for name, value in (given or {}).items():
            variable = self._variable(name)
            variable.check_startable(is_superuser=self.connected.is_superuser)
            self._take_default(variable, value, "client")
        self._before: Mapping[str, str] = {}
        self._values: Mapping[str, str] = {}
        self._local: Mapping[str, str] = {}
        self._custom: set[str] = set()
        self._modes: Modes = {}
        self._present_modes: Modes = {}
        self._shown_modes: Modes = {}
        self._derived: Mapping[str, str] = {}
        self._first_modes: Modes = {}
        self._reported: dict[str, str] = {}
        self._dirty = False
        self.has_unreported = True
        self.shown: SessionSettings = _Shown(self)
        self._refresh()

    @classmethod
    def started(
        cls,
        *,
        user: str,
        parameters: Mapping[str, str],
        defaults: Mapping[str, str],
        connected: RoleName | None = None,
        stored: Sequence[tuple[str, Mapping[str, str]]] = (),
        facts: Mapping[str, str] | None = None,
    ) -> "Variables":
        """A session whose start-up packet said `parameters`: they are its defaults. `stored`: what
        is kept for its role and database, by source. `facts`: what settings of the server say.
        """
        return cls(
            user=user, defaults=defaults, connected=connected, stored=stored, given=parameters,
            facts=facts,
        )  # fmt: skip

    def _take_default(self, variable: Variable, value: str, source: str) -> None:
        key = variable.name.lower()
        self._defaults[key] = variable.check(variable.name, value)
        self._sources[key] = source

    def _take_stored(self, name: str, value: str, source: str) -> None:
        """A stored value that is no longer right is left out: it is a problem, and no error."""
        try:
            self._take_default(self._variable(name), value, source)
        except SqlError as error:
            self.problems.append(error)

    def _default(self, key: str) -> str:
        """What RESET makes of it."""
        own = self._defaults.get(key)
        return DEFAULTS.get(key, "") if own is None else own

    # --- what the session needs often -----------------------------------------------------------

    @property
    def search_path(self) -> tuple[str, ...]:
        """Schemas in the order of search, `$user` replaced."""
        return self._search_path

    @property
    def timezone(self) -> str:
        """A name that zoneinfo knows."""
        return self._timezone

    @property
    def styles(self) -> Styles:
        """How values are written and read."""
        return self._styles

    @property
    def binding_key(self) -> tuple[object, ...]:
        """Everything here that may change what a statement means: part of plan cache keys."""
        return self._binding_key

    @property
    def evaluation_key(self) -> tuple[object, ...]:
        """Everything here that may change what a statement means once its names are resolved."""
        return self._binding_key[:-1]

    def get(self, name: str) -> str:
        """The value as SHOW prints it. Raises 42704."""
        key = name.lower()
        mode = self._shown_modes.get(key)
        return self._outside(name, key) if mode is None else mode

    def _outside(self, name: str, key: str) -> str:
        """The value, whatever the transaction's modes are."""
        local = self._local.get(key)
        if local is not None:
            return local
        value = self._values.get(key)
        if value is not None:
            return value
        # A custom one, once named, is there whatever became of its value.
        if key in DEFAULTS or key in self._defaults or key in self._custom:
            return self._default(key)
        raise unrecognized_variable(name)

    @property
    def custom_names(self) -> Sequence[str]:
        """The custom variables that were named so far."""
        return sorted(self._custom)

    def show(self, name: str) -> str:
        """The value, if the role may look at it. Raises 42501, 42704."""
        variable = VARIABLES_BY_NAME.get(name.lower())
        if variable is not None and not self._may_see(variable):
            raise SqlError(
                "42501",
                f'permission denied to examine "{variable.name}"',
                detail='Only roles with privileges of the "pg_read_all_settings" role'
                " may examine this parameter.",
            )
        return self.get(name)

    def _may_see(self, variable: Variable) -> bool:
        return not variable.setting.superuser_only or self.current_user.is_superuser

    def flag(self, name: str) -> bool:
        """A Boolean variable."""
        return self.get(name) == "on"

    def milliseconds(self, name: str) -> int:
        """A time limit; 0 is none."""
        return self._limits[name]

    def canonical(self, name: str) -> str:
        """The name as PostgreSQL spells it, e.g. `TimeZone`."""
        return self._variable(name).name

    @property
    def modes(self) -> Modes:
        """The modes of the present transaction, as they were set (V5)."""
        return self._present_modes

    @modes.setter
    def modes(self, modes: Modes) -> None:
        self._modes = modes
        self._present_modes = present = {
            key: self._outside(default, default) if key not in modes else modes[key]
            for key, default in TRANSACTION_MODES.items()
        }
        self.level = determine_level(present["transaction_isolation"], present["consistency"])
        is_stale = self.level[0] is Isolation.BOUNDED_STALENESS
        self._shown_modes = {**present, **(_STALE_MODES if is_stale else {}), **self._derived}

    @property
    def owner_alias(self) -> str:
        """What the session calls the first superuser (U2 of `catalog/roles.py`); may be empty."""
        return str(self.connected) if self.connected.oid == OWNER else ""

    @property
    def session_user(self) -> RoleName:
        """The role that SET SESSION AUTHORIZATION has set, or the one that has connected."""
        found = self._outside(SESSION_AUTHORIZATION, SESSION_AUTHORIZATION)
        assert isinstance(found, RoleName), "O1: no other value is set"
        return found

    @property
    def current_user(self) -> RoleName:
        """The role that SET ROLE has set, or the session's."""
        found = self._outside(ROLE, ROLE)
        return found if isinstance(found, RoleName) else self.session_user

    # --- changing -------------------------------------------------------------------------------

    def checked(self, name: str, value: str | None) -> str:
        """The value as SHOW would print it; None is DEFAULT. Raises 22023, 42704, 0A000."""
        variable = self._variable(name)
        key = variable.name.lower()
        if value is not None:
            if key == "datestyle":
                variable.check(variable.name, value)  # its errors tell what was written
                value = merge_date_style(value, self.get(key), self._default(key))
            if key == "timezone":
                return check_time_zone(variable.name, value, self._styles)
            return variable.check(variable.name, value)
        if TRANSACTION_MODES.get(key, key) != key:
            raise SqlError("0A000", f'parameter "{variable.name}" cannot be reset')
        return self._default(key)

    def check_changeable(self, name: str) -> None:
        """42501, 42704, 55P02 if the session's role may not set it."""
        self._variable(name).check_changeable(is_superuser=self.current_user.is_superuser)

    def set(self, name: str, value: str | None, *, local: bool) -> None:
        """SET [LOCAL]; None is DEFAULT. Raises 22023, 42704, 55P02, 0A000."""
        variable = self._variable(name)
        key = variable.name.lower()
        variable.check_changeable(is_superuser=self.current_user.is_superuser)
        checked = self.checked(name, value)
        if key in TRANSACTION_MODES:
            self.modes = {**self._modes, key: checked}
            if local or TRANSACTION_MODES[key] != key:
                return
        if key not in VARIABLES_BY_NAME:
            self._custom.add(key)
        if value is None and not local:
            self._drop(key)
        else:
            self._put(key, checked, local=local)
        if key == SESSION_AUTHORIZATION:
            role = self._default(ROLE) if value is None else NO_ROLE
            self._put(ROLE, role, local=local)  # O2 of `session_roles.py`
        self._changed()

    def _put(self, key: str, checked: str, *, local: bool) -> None:
        if local:
            self._local = {**self._local, key: checked}
        else:
            self._local = {known: kept for known, kept in self._local.items() if known != key}
            self._values = {**self._values, key: checked}

    def _drop(self, key: str) -> None:
        self._local = {known: kept for known, kept in self._local.items() if known != key}
        self._values = {known: kept for known, kept in self._values.items() if known != key}

    def reset_all(self) -> None:
        """RESET ALL."""
        self._values = _only_hidden(self._values)
        self._local = _only_hidden(self._local)
        self._changed()

    def mark(self) -> VariablesMark:
        """The values at a savepoint."""
        return VariablesMark(self._values, self._local, self._modes)

    def rewind(self, mark: VariablesMark) -> None:
        """ROLLBACK TO (V3)."""
        self.modes = mark.modes
        if mark.values is not self._values or mark.local is not self._local:
            self._values = mark.values
            self._local = mark.local
            self._changed()

    def begin(self, modes: Modes) -> None:
        """A block begins, with these modes."""
        self.modes = self._first_modes = modes

    def failed(self) -> None:
        """The block failed: AND CHAIN hands on the modes it began with, not those set in it."""
        self.rolled_back()
        self.modes = self._first_modes

    def committed(self) -> None:
        """The transaction committed (V3)."""
        self._forget_modes()
        if self._dirty:
            self._before = self._values
            self._finish()

    def rolled_back(self) -> None:
        """The transaction failed or was rolled back (V3)."""
        self._forget_modes()
        if self._dirty:
            self._values = self._before
            self._finish()

    def _forget_modes(self) -> None:
        if self._modes:
            self.modes = {}

    def _finish(self) -> None:
        self._local = {}
        self._changed()
        self._dirty = False

    def _changed(self) -> None:
        self._dirty = True
        self.has_unreported = True
        self._refresh()

    # --- telling --------------------------------------------------------------------------------

    def unreported(self) -> Sequence[tuple[str, str]]:
        """Names and values that the client has not been sent yet; they count as sent (V4)."""
        if not self.has_unreported:
            return ()
        self.has_unreported = False
        news: list[tuple[str, str]] = []
        for key, variable in _REPORTED.items():
            value = self.get(key)
            if self._reported.get(key) != value:
                self._reported[key] = value
                news.append((variable.name, value))
        return news

    def all(self) -> Sequence[ShownVariable]:
        """SHOW ALL: by name, those that the role may look at."""
        return [
            ShownVariable(variable.name, self.get(key), variable.setting.description)
            for key, variable in self._visible()
        ]

    def _visible(self) -> Iterator[tuple[str, Variable]]:
        for key in _ORDER:
            variable = VARIABLES_BY_NAME[key]
            if self._may_see(variable):
                yield key, variable

    def rows(self) -> Iterator[SettingRow]:
        """The rows of pg_settings."""
        for key, variable in self._visible():
            setting = variable.setting
            yield SettingRow(
                setting,
                value=variable.raw(self.get(key)),
                source=self._source(key),
                reset=setting.boot if key in SHOWN_OTHERWISE else variable.raw(self._default(key)),
            )

    def _source(self, key: str) -> str:
        if TRANSACTION_MODES.get(key, key) != key:
            return "override"
        if key in self._local or key in self._values:
            return "session"
        return self._sources.get(key, "default")

    def _variable(self, name: str) -> Variable:
        key = name.lower()
        variable = VARIABLES_BY_NAME.get(key)
        if variable is not None:
            return variable
        prefix, dot, rest = key.partition(".")
        if dot and prefix in _RESERVED:
            detail = f'"{prefix}" is a reserved prefix.'
            message = f'invalid configuration parameter name "{name}"'
            raise SqlError("42602", message, detail=detail)
        if dot and prefix.isidentifier() and rest.replace(".", "_").isidentifier():
            return custom_variable(name)
        raise unrecognized_variable(name)

    def _refresh(self) -> None:
        names = split_search_path(self.get("search_path"))
        # Our own schema is called like the user of the server's DSN: a user's own schema is never
        # one of the system, whose `transactions` would then be there before he makes his.
        user = self.current_user
        own = () if user in SYSTEM_SCHEMAS else (user,)
        self._search_path = tuple(
            found for name in names for found in (own if name == "$user" else (name,))
        )
        self._timezone = self.get("timezone")
        self.encoding = client_encoding(self.get("client_encoding"))
        settings = ("datestyle", "intervalstyle", "extra_float_digits", "bytea_output")
        self._styles = styles_from_settings(*map(self.get, settings))
        self._limits = {key: milliseconds(self.get(key)) for key in TIME_LIMITS}
        self.has_limits = any(self._limits.values()) or self.flag("real_time_recency")
        self.logging = session_logging(self.get)
        self._derived = {"is_superuser": "on" if user.is_superuser else "off"}
        self.modes = self._modes
        roles = tuple((str(role), role.oid) for role in (user, self.session_user))
        others = tuple(map(self.get, BINDING))
        self._binding_key = (self._search_path, self._timezone, roles, self._styles, others)
