"""Session variables: SET, SET LOCAL, RESET, SHOW, and what the client is told of them.

    defaults ◀── start-up packet ◀── SET (undone by ROLLBACK) ◀── SET LOCAL

INVARIANTS
  V1  a value that is stored is valid and in the spelling that SHOW prints.
  V2  what would change an answer is either obeyed or refused: what is accepted and ignored
      (work_mem, jit ..) never changes what a statement returns.
  V3  after COMMIT the values are those that SET left, after ROLLBACK those from before the
      transaction; SET LOCAL survives neither.
  V4  the client has been told the present value of every reported variable whenever it may send.

Not here: the table of variables (`variable_table.py`); what a setting means (who asks for it).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.variable_table import TABLE, Variable, split_search_path
from sql.errors import SqlError


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of SHOW ALL."""

    name: str
    value: str
    description: str


def unrecognized(name: str) -> SqlError:
    """42704: no such variable."""
    return SqlError("42704", f'unrecognized configuration parameter "{name}"')


class _Shown(Mapping[str, str]):
    """What `current_setting` reads: all variables by lower-case name, as SHOW prints them."""

    def __init__(self, variables: "Variables") -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> str:
        try:
            return self._variables.get(name)
        except SqlError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return (row.name.lower() for row in self._variables.all())

    def __len__(self) -> int:
        return len(self._variables.all())


class Variables:
    """One session's variables; see the module."""

    def __init__(self, *, user: str, defaults: Mapping[str, str]) -> None:
        self._user = user
        self._defaults = {name: item.default for name, item in TABLE.items()}
        self._defaults["session_authorization"] = user
        self._defaults["role"] = "none"
        for name, value in defaults.items():
            variable = self._variable(name)
            self._defaults[variable.name.lower()] = variable.check(variable.name, value)
        self._before = dict(self._defaults)
        self._values = dict(self._defaults)
        self._local: dict[str, str] = {}
        self._reported: dict[str, str] = {}
        self._dirty = False
        self._unreported = True
        self.shown: Mapping[str, str] = _Shown(self)
        self._refresh()

    @classmethod
    def started(
        cls, *, user: str, parameters: Mapping[str, str], defaults: Mapping[str, str]
    ) -> "Variables":
        """A session whose start-up packet said `parameters`: they are its defaults."""
        merged = {name.lower(): value for name, value in defaults.items()}
        merged.update({name.lower(): value for name, value in parameters.items()})
        return cls(user=user, defaults=merged)

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
    def binding_key(self) -> tuple[object, ...]:
        """Everything here that may change what a statement means: part of plan cache keys."""
        return self._binding_key

    def get(self, name: str) -> str:
        """The value as SHOW prints it. Raises 42704."""
        key = name.lower()
        local = self._local.get(key)
        if local is not None:
            return local
        value = self._values.get(key)
        if value is None:
            raise unrecognized(name)
        return value

    def flag(self, name: str) -> bool:
        """A Boolean variable."""
        return self.get(name) == "on"

    def milliseconds(self, name: str) -> int:
        """A time limit; 0 is none."""
        return self._limits[name]

    def canonical(self, name: str) -> str:
        """The name as PostgreSQL spells it, e.g. `TimeZone`."""
        return self._variable(name).name

    # --- changing -------------------------------------------------------------------------------

    def set(self, name: str, value: str | None, *, local: bool) -> None:
        """SET [LOCAL]; None is DEFAULT. Raises 22023, 42704, 55P02, 0A000."""
        variable = self._variable(name)
        key = variable.name.lower()
        if variable.internal:
            raise SqlError("55P02", f'parameter "{variable.name}" cannot be changed')
        if value is None:
            checked = self._defaults.get(key, "")
        else:
            checked = variable.check(variable.name, value)
        if local:
            self._local[key] = checked
        else:
            self._local.pop(key, None)
            self._values[key] = checked
        self._changed()

    def reset(self, name: str) -> None:
        """RESET name, RESET ALL."""
        if name != "all":
            self.set(name, None, local=False)
            return
        keep = {key: self._values[key] for key in _KEPT_BY_RESET}
        self._values = dict(self._defaults) | keep
        self._local.clear()
        self._changed()

    def committed(self) -> None:
        """The transaction ended well (V3)."""
        if self._dirty:
            self._before = dict(self._values)
            self._finish()

    def rolled_back(self) -> None:
        """The transaction failed or was rolled back (V3)."""
        if self._dirty:
            self._values = dict(self._before)
            self._finish()

    def _finish(self) -> None:
        self._local.clear()
        self._changed()
        self._dirty = False

    def _changed(self) -> None:
        self._dirty = True
        self._unreported = True
        self._refresh()

    # --- telling --------------------------------------------------------------------------------

    def unreported(self) -> Sequence[tuple[str, str]]:
        """Names and values that the client has not been told yet; they count as told (V4)."""
        if not self._unreported:
            return ()
        self._unreported = False
        news: list[tuple[str, str]] = []
        for key, variable in TABLE.items():
            if variable.reported:
                value = self.get(key)
                if self._reported.get(key) != value:
                    self._reported[key] = value
                    news.append((variable.name, value))
        return news

    def all(self) -> Sequence[Setting]:
        """SHOW ALL: by name, custom ones too."""
        names = sorted(self._values.keys() | self._local.keys())
        rows: list[Setting] = []
        for key in names:
            variable = self._variable(key)
            rows.append(Setting(variable.name, self.get(key), variable.description))
        return rows

    def _variable(self, name: str) -> Variable:
        key = name.lower()
        variable = TABLE.get(key)
        if variable is not None:
            return variable
        prefix, dot, rest = key.partition(".")
        if dot and prefix.isidentifier() and rest.replace(".", "_").isidentifier():
            return Variable(name, "", "Custom variable.")
        raise unrecognized(name)

    def _refresh(self) -> None:
        names = split_search_path(self.get("search_path"))
        path = [self._user if name == "$user" else name for name in names]
        self._search_path = tuple(path)
        self._timezone = self.get("timezone")
        self._limits = {
            key: item.amount(self.get(key)) for key, item in TABLE.items() if item.unit == "ms"
        }
        self._binding_key = (self._search_path, self._timezone, self._user)


_KEPT_BY_RESET = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
