"""Settings: the only reader of the environment and of the configuration file.

    flags  ▶  MERIDIAN_* environment  ▶  --config FILE (TOML)  ▶  defaults      the first wins

INVARIANTS
  C1  an unknown name, a value of the wrong type and limits that contradict each other are refused
      with one line, before anything is opened.
  C2  `Settings` is frozen: its values at the start hold to the end.

Every field of `Settings` is an option: `--set inline_bytes_max=65536`, MERIDIAN_INLINE_BYTES_MAX,
or `inline_bytes_max = 65536` in the file. A name that is a session variable (`--set
TimeZone=Europe/Berlin`, `[variables]` in the file) becomes the default of every session.
"""

import ipaddress
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, TypeAlias

from coordinator.variables.variables import Variables
from sql.errors import SqlError

Scalar: TypeAlias = str | int | float | bool

PREFIX: Final = "MERIDIAN_"


class SettingsError(Exception):
    """One line that says what is wrong with the configuration."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See the module. Comments say what a larger value costs."""

    listen: str = "127.0.0.1:7432"
    data_dir: str = "./data"
    stash: str = ""
    """`sqlite:PATH`, or `postgresql://..` for several coordinators; empty: `stash.db` in the data
    directory."""
    warehouse: str = ""
    """`file:PATH` or a path; empty: `warehouse` in the data directory."""
    standby: bool = False
    """Wait until the coordinator that leads is gone, then take over from it."""
    spark_master: str = "local[*]"
    java_home: str = ""
    """Where a Java 17 or newer is; empty: JAVA_HOME, then the one that comes with Python."""
    spark_heap_mb: int = 2_048
    """Memory of the JVM. Larger: bigger joins without spilling."""
    local_memory_mb: int = 1_024
    """Memory of the local engine; above it it spills. Larger: bigger joins without spilling."""
    local_threads: int = os.cpu_count() or 1
    """Threads that one query of the local engine may use. More: less for the others."""
    local_spill_bytes_max: int = 16 << 30
    """Files of the local engine for what does not fit into its memory; above it 53200."""
    result_spool_bytes_max: int = 16 << 30
    """Files of one large result that wait for its client; above it 53400."""
    trust_remote: bool = False
    """Everybody who reaches the port may do everything: only loopback may, unless this is set."""
    log_level: str = "info"
    connections_max: int = 200
    """Sessions at once; each costs some 100 kB, and what it runs."""
    connections_unauthenticated_max: int = 200
    """Connections that have not said who they are; more are turned away."""
    startup_timeout_s: float = 30.0
    """Time for a connection to say who it is."""
    shutdown_grace_s: float = 10.0
    """Time for transactions in flight to end after SIGTERM."""
    shutdown_flush_s: float = 20.0
    """Time, after that, for what is committed to reach the tables; the next start does the rest."""
    message_bytes_max: int = 256 << 20
    """The longest message of a client: one statement, one row of COPY."""
    receive_bytes_max: int = 1 << 20
    """Bytes read from a client ahead of what its session has handled."""
    send_bytes_max: int = 1 << 20
    """Bytes waiting for a client that reads slowly; then its query waits."""
    slow_reader_timeout_s: float = 600.0
    """A client that reads nothing for so long, with bytes waiting for it, is dropped."""
    inline_bytes_max: int = 1 << 20
    """Rows of one write that go into the txns shard itself instead of staged files."""
    transaction_inline_bytes_max: int = 4 << 20
    """Rows that one transaction holds in memory until its commit; the rest is staged in files."""
    returning_bytes_max: int = 256 << 20
    """Rows of RETURNING held in memory until the commit."""
    plan_cache_entries: int = 2_000
    """Statements whose analysis is remembered."""
    attempts_max: int = 10
    """How often a statement that met a conflict starts again by itself."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def host(self) -> str:
        """The address to listen on."""
        return _split_listen(self.listen)[0]

    @property
    def port(self) -> int:
        """The port to listen on; 0: any free one."""
        return _split_listen(self.listen)[1]

    @property
    def shares_stash(self) -> bool:
        """Whether other coordinators, with other data directories, may use the same stash."""
        return self.stash.startswith(("postgresql://", "postgres://"))

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.data_dir)


def _split_listen(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise SettingsError(f'listen must be HOST:PORT, not "{listen}"')
    return host.removeprefix("[").removesuffix("]"), int(port)


_TYPES: Final[Mapping[str, type]] = {
    item.name: type(item.default) for item in fields(Settings) if item.name != "variables"
}


def load(
    *, flags: Mapping[str, str], sets: Sequence[str], environment: Mapping[str, str]
) -> Settings:
    """The settings of this process. `flags`: given options by field name, `config` among them."""
    from_environment = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }
    path = flags.get("config") or from_environment.pop("config", None)
    values, variables = _read_file(Path(path)) if path else ({}, {})
    for name, value in from_environment.items():
        if name not in _TYPES:
            raise SettingsError(f"unknown environment variable {PREFIX}{name.upper()}")
        values[name] = value
    values.update({name: value for name, value in flags.items() if name != "config"})
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f'--set takes name=value, not "{text}"')
        if name in _TYPES:
            values[name] = value
        else:
            variables[name] = value
    typed = {name: _typed(name, value) for name, value in values.items()}
    settings = Settings(**typed, variables=variables)  # type: ignore[arg-type]  # typed by _typed
    _check(settings)
    return settings


def _read_file(path: Path) -> tuple[dict[str, Scalar], dict[str, str]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    variables = content.pop("variables", {})
    if not isinstance(variables, dict):
        raise SettingsError(f"{path}: variables must be a table")
    for name in content:
        if name not in _TYPES:
            raise SettingsError(f'{path}: unknown setting "{name}"')
    return content, {str(name): str(value) for name, value in variables.items()}


def _typed(name: str, value: object) -> Scalar:
    wanted = _TYPES[name]
    try:
        if wanted is bool:
            return _boolean(value)
        if wanted is str and isinstance(value, str):
            return value
        if wanted is int and isinstance(value, str | int) and not isinstance(value, bool):
            return int(value)
        if wanted is float and isinstance(value, str | int | float):
            return float(value)
    except ValueError:
        pass
    raise SettingsError(f'setting "{name}" takes a value of type {wanted.__name__}, not "{value}"')


def _boolean(value: object) -> bool:
    words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError(value)
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(settings: Settings) -> None:
    if not is_loopback(settings.host) and not settings.trust_remote:
        raise SettingsError(
            f"refusing to listen on {settings.host}: there are no passwords yet, so everybody who"
            " reaches it could do everything; listen on 127.0.0.1, or set trust_remote=true if the"
            " network itself is trusted"
        )
    for name, wanted in _TYPES.items():
        value = getattr(settings, name)
        if wanted in (int, float) and not 0 < value < math.inf:
            raise SettingsError(f'setting "{name}" must be a number greater than 0')
    if settings.connections_unauthenticated_max > settings.connections_max:
        raise SettingsError("connections_unauthenticated_max must not exceed connections_max")
    if settings.inline_bytes_max > settings.message_bytes_max:
        raise SettingsError("inline_bytes_max must not exceed message_bytes_max")
    if not settings.data_dir:
        raise SettingsError("data_dir must not be empty")
    if settings.shares_stash and not settings.warehouse:
        raise SettingsError(
            "a PostgreSQL stash is for several coordinators: say with --warehouse which directory"
            " they share"
        )
    if settings.log_level not in ("debug", "info", "warning", "error"):
        raise SettingsError("log_level must be debug, info, warning or error")
    _check_variables(settings.variables)


def _check_variables(variables: Mapping[str, str]) -> None:
    try:
        Variables(user="meridian", defaults=variables)
    except SqlError as error:
        raise SettingsError(error.message) from error
