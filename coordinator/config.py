"""Settings: the only reader of the environment and of the configuration file.

    flags  ▶  MERIDIAN_* environment  ▶  --config FILE (TOML)  ▶  defaults      the first wins

INVARIANTS
  C1  an unknown name, a value of the wrong type and limits that contradict each other are refused
      with one line, before anything is opened.
  C2  `Settings` is frozen: its values at the start hold to the end. Files that it names may change
      (SIGHUP reads them again).
  C3  passwords are read from the environment or from files. A stash's on the command line is taken,
      and warned of.

Every field of `Settings` is an option: `--set inline_bytes_max=65536`, MERIDIAN_INLINE_BYTES_MAX,
or `inline_bytes_max = 65536` in the file. A name that is a session variable (`--set
TimeZone=Europe/Berlin`, `[variables]` in the file) becomes the default of every session.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import SplitResult, parse_qs, urlsplit

from coordinator.machine_memory import (
    LOCAL_MEMORY_MB,
    MEMORY_BESIDE_ENGINE_MB,
    default_memory_mb,
)

Scalar: TypeAlias = str | int | float | bool

PREFIX: Final = "MERIDIAN_"


class SettingsError(Exception):
    """One line that says what is wrong with the configuration."""


@dataclass(frozen=True, slots=True)
class Settings:
    """See the module. Comments say what a larger value costs."""

    listen: str = "127.0.0.1:7432"
    """HOST:PORT, or several of them behind commas."""
    data_dir: str = "./data"
    stash: str = field(default="", repr=False)
    """`sqlite:PATH`, or `postgresql://..` for several coordinators; empty: one in `data_dir`."""
    warehouse: str = ""
    """`file:PATH` or a path; empty: `warehouse` in the data directory."""
    standby: bool = False
    """Wait until the coordinator that leads is gone, then take over from it."""
    spark_master: str = "local[*]"
    spark_start: str = "lazy"
    """When the JVM starts: `eager`, in the background after `ready`; `lazy`, when a statement needs
    it; `off`, never. Eager: an idle server has a JVM of half a GiB. Lazy: the first who needs it
    waits for it."""
    memory_max_mb: int = default_memory_mb()
    """Memory of the process, with `local_memory_mb`; beyond: 53200. Larger: it may be killed."""
    java_home: str = ""
    """Where a Java 17 or newer is; empty: JAVA_HOME, then the one that comes with Python."""
    spark_heap_mb: int = 2_048
    """Memory of the JVM. Larger: bigger joins without spilling."""
    spark_driver_host: str = ""
    """Under which name or address executors on other hosts reach this one."""
    spark_driver_bind: str = ""
    """The address that the driver listens on; empty: `spark_driver_host`."""
    spark_driver_port: int = 0
    """The port that executors connect to; 0: any free one."""
    spark_executor_memory_mb: int = 0
    """Memory of each executor of a cluster; 0: Spark's default, 1 GiB."""
    spark_cores_max: int = 0
    """Cores that the server takes of a cluster; 0: all that are free."""
    spark_wait_s: float = 60.0
    """How long a query waits for a cluster that has no executors; then it is 57P03."""
    local_memory_mb: int = LOCAL_MEMORY_MB
    """Memory of the local engine; above it it spills. Larger: bigger joins without spilling."""
    local_threads: int = os.cpu_count() or 1
    """Threads that one query of the local engine may use. More: less for the others."""
    local_spill_bytes_max: int = 16 << 30
    """Files of the local engine for what does not fit into its memory; above it 53200."""
    result_spool_bytes_max: int = 16 << 30
    """Files of one large result that wait for its client; above it 53400."""
    hba_file: str = ""
    """Who may connect, in the syntax of pg_hba.conf; empty: the built-in rules (`access.py`)."""
    ident_file: str = ""
    """Maps of names for `peer` and `cert`, in the syntax of pg_ident.conf."""
    unix_socket_directory: str = ""
    """Where the Unix socket is; empty: in the data directory; `none`: there is none."""
    unix_socket_permissions: str = "0700"
    """Octal: who may connect to the Unix socket."""
    ssl_cert_file: str = ""
    """The certificate, and those above it, in PEM; empty: there is no TLS."""
    ssl_key_file: str = ""
    """Its key, readable by the server's user only."""
    ssl_ca_file: str = ""
    """Whom certificates of clients must come from."""
    ssl_crl_file: str = ""
    """Certificates of clients that were revoked."""
    ssl_min_protocol_version: str = "TLSv1.2"
    auth_delay_ms: int = 250
    """How long a failed log-in waits for its answer. Larger: passwords are tried more slowly."""
    audit: str = ""
    """`login`: one JSON line in the log for each log-in."""
    http_listen: str = ""
    """HOST:PORT, or several of them with commas, for health, metrics, the page; empty: none."""
    http_token_file: str = ""
    """The file with the token that `/metrics` wants; without one it is for loopback only."""
    http_hosts: str = ""
    """Names, with commas between, that browsers may call the HTTP listener, beside its own."""
    stash_password_file: str = ""
    """The file with the password of a stash in PostgreSQL."""
    secret_names: str = "MERIDIAN_SECRET_*"
    """Variables that connections may read passwords from, with commas between; one may end in `*`.
    Larger: who may create a connection learns more of the environment."""
    secret_files_dir: str = ""
    """The folder with the files that connections may read passwords from; empty: none."""
    source_hosts: str = "loopback"
    """Where connections may go: `loopback`, addresses, networks, names of hosts, or `*`."""
    log_level: str = "info"
    log_format: str = "text"
    """`text`, or `json`: one object a record, with the names of PostgreSQL's jsonlog."""
    connections_max: int = 200
    """Sessions at once; each costs some 100 kB, and what it runs."""
    superuser_reserved_connections: int = 3
    """Of these, the last ones are for superusers."""
    reserved_connections: int = 0
    """Those before them are for roles with pg_use_reserved_connections, too."""
    connections_unauthenticated_max: int = 200
    """Connections that have not logged in, beside the sessions; for more, the oldest silent one
    goes. Larger: more half-open connections are kept, with a file descriptor each."""
    startup_timeout_s: float = 30.0
    """Time for a connection to say who it is."""
    shutdown_grace_s: float = 10.0
    """Time for transactions in flight to end after SIGTERM."""
    shutdown_flush_s: float = 20.0
    """Time, after that, for what is committed to reach the tables; the next start does the rest."""
    clock_jump_max_s: float = 60.0
    """How far the wall clock may jump ahead and be believed. Larger: a wrong one costs more."""
    view_budget_ms: int = 50
    """How long a commit waits for views over its tables. Larger: dearer views stay exact."""
    statements_max: int = 10_000
    """Prepared statements of one session; above it 53400."""
    portals_max: int = 1_000
    """Portals, cursors among them, of one session; above it 53400."""
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
    statement_statistics: bool = True
    """Whether statements, and what they do to tables, are counted (pg_stat_statements)."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    spark_conf: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """More settings of Spark, by its own names: those of `spark/allowed_conf.py`."""
    is_password_shown: bool = False
    """Whether the stash's password stood on the command line, where everybody can read it."""
    first_password: str = field(default="", repr=False)
    """Of the first superuser, at the first start. Only the environment tells it (C3)."""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where to listen: hosts and ports; port 0: any free one."""
        return _split_addresses("listen", self.listen)

    @property
    def http_addresses(self) -> tuple[tuple[str, int], ...]:
        """Where to listen for HTTP; empty: nowhere."""
        return _split_addresses("http_listen", self.http_listen) if self.http_listen else ()

    @property
    def port(self) -> int:
        """The first port, by which the Unix socket is named."""
        return self.addresses[0][1]

    @property
    def shares_stash(self) -> bool:
        """Whether other coordinators, with other data directories, may use the same stash."""
        return self.stash.startswith(("postgresql://", "postgres://"))

    @property
    def has_spark(self) -> bool:
        """Whether there may ever be a JVM. A master `none` says `spark_start = off`, too."""
        return self.spark_start != "off" and self.spark_master not in ("none", "reference")

    @property
    def has_spark_cluster(self) -> bool:
        """Whether Spark has more machines than this one."""
        return self.has_spark and not self.spark_master.startswith("local")

    @property
    def starts_spark_early(self) -> bool:
        """Whether the JVM starts before a statement needs it."""
        return self.has_spark and self.spark_start == "eager"

    @property
    def data_path(self) -> Path:
        """The data directory."""
        return Path(self.data_dir)


def _split_addresses(name: str, addresses: str) -> tuple[tuple[str, int], ...]:
    """The hosts and ports of a setting. Raises SettingsError."""
    return tuple(dict.fromkeys(_split_address(name, one.strip()) for one in addresses.split(",")))


def _split_address(name: str, listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host.strip("[]") or not port.isdigit() or int(port) > 65_535:
        raise SettingsError(f'{name} must be HOST:PORT, not "{listen}"')
    return host.removeprefix("[").removesuffix("]"), int(port)


_NOT_OPTIONS: Final = ("variables", "spark_conf", "first_password", "is_password_shown")
_TYPES: Final[Mapping[str, type]] = {
    item.name: type(item.default) for item in fields(Settings) if item.name not in _NOT_OPTIONS
}
_MAY_BE_ZERO: Final = frozenset(
    {
        "auth_delay_ms", "superuser_reserved_connections", "reserved_connections",
        *("spark_driver_port", "spark_executor_memory_mb", "spark_cores_max"),
    }
)  # fmt: skip
_SPARK_CONF: Final = "spark_conf."
_SECRETS: Final = "secret_"
"""So begin variables with passwords of connections, which are read when connecting."""

_GONE: Final = {
    "trust_remote": 'the setting "trust_remote" is gone: write "host all all ADDRESS trust" into a'
    " file, and name it with hba_file"
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
    first_password = _first_password(from_environment)
    path = flags.get("config") or from_environment.pop("config", None)
    values, variables, spark_conf = _read_file(Path(path)) if path else ({}, {}, {})
    for name, value in from_environment.items():
        if name not in _TYPES and name.startswith(_SECRETS):
            continue
        if name not in _TYPES:
            unknown = f"unknown environment variable {PREFIX}{name.upper()}"
            raise SettingsError(_GONE.get(name, unknown))
        values[name] = value
    values.update({name: value for name, value in flags.items() if name != "config"})
    for text in sets:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f'--set takes name=value, not "{text}"')
        if name in _TYPES:
            values[name] = value
        elif name.startswith(_SPARK_CONF):
            spark_conf[name.removeprefix(_SPARK_CONF)] = value
        elif name in _GONE:
            raise SettingsError(_GONE[name])
        else:
            variables[name] = value
    if values.get("hba_file") == "":
        raise SettingsError("hba_file names no file; leave it out for the built-in rules")
    typed = {name: _typed(name, value) for name, value in values.items()}
    settings = Settings(
        **typed,  # type: ignore[arg-type]  # typed by _typed
        variables=variables,
        spark_conf=spark_conf,
        first_password=first_password,
        is_password_shown=_has_password(flags.get("stash", ""), *sets),
    )
    _check(settings)
    return settings


def _has_password(*shown: str) -> bool:
    """Whether one of the texts of the command line is a stash with its password."""
    urls = (text.removeprefix("stash=") for text in shown)
    return any("postgres" in url[:10] and _names_password(url) for url in urls)


def _names_password(url: str) -> bool:
    parts = _split_url(url)
    return parts.password is not None or "password" in parse_qs(parts.query)


def _split_url(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise SettingsError(f"the stash's URL is broken: {error}") from error


def _first_password(environment: dict[str, str]) -> str:
    """The first superuser's password, as users of PostgreSQL's image give it (C3)."""
    password = environment.pop("password", "")
    file = environment.pop("password_file", "")
    if password and file:
        raise SettingsError(f"only one of {PREFIX}PASSWORD and {PREFIX}PASSWORD_FILE may be set")
    if not file:
        try:
            password.encode()
        except UnicodeError:
            raise SettingsError(f"{PREFIX}PASSWORD is not UTF-8") from None
        return password
    password = read_secret(Path(file))
    if not password:
        raise SettingsError(f"the file {file} has no password")
    return password


def read_secret(path: Path) -> str:
    """A file's one line. Raises SettingsError."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"cannot read {path}: it is not UTF-8") from error


def _read_file(path: Path) -> tuple[dict[str, Scalar], dict[str, str], dict[str, str]]:
    """The settings, the variables, and the settings of Spark."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    variables, spark_conf = content.pop("variables", {}), content.pop("spark_conf", {})
    if not isinstance(variables, dict) or not isinstance(spark_conf, dict):
        raise SettingsError(f"{path}: variables and spark_conf must be tables")
    for name in content:
        if name not in _TYPES:
            unknown = f'{path}: unknown setting "{name}"'
            raise SettingsError(_GONE.get(name, unknown))
    tables = [
        {str(name): str(value) for name, value in one.items()} for one in (variables, spark_conf)
    ]
    return content, tables[0], tables[1]


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


def _check(settings: Settings) -> None:
    _ = settings.addresses, settings.http_addresses
    _check_access(settings)
    for name, wanted in _TYPES.items():
        value = getattr(settings, name)
        least = ", 0 or more" if name in _MAY_BE_ZERO else " greater than 0"
        if name in _MAY_BE_ZERO and value == 0:
            continue
        if wanted in (int, float) and not 0 < value < math.inf:
            raise SettingsError(f'setting "{name}" must be a number{least}')
    reserved = settings.superuser_reserved_connections + settings.reserved_connections
    if reserved >= settings.connections_max:
        raise SettingsError(
            f"superuser_reserved_connections ({settings.superuser_reserved_connections}) plus"
            f" reserved_connections ({settings.reserved_connections}) must be less than"
            f" connections_max ({settings.connections_max})"
        )
    if settings.memory_max_mb < settings.local_memory_mb + MEMORY_BESIDE_ENGINE_MB:
        raise SettingsError(
            f"memory_max_mb ({settings.memory_max_mb}) must be at least local_memory_mb"
            f" ({settings.local_memory_mb}) plus {MEMORY_BESIDE_ENGINE_MB}"
        )
    if settings.inline_bytes_max > settings.message_bytes_max:
        raise SettingsError("inline_bytes_max must not exceed message_bytes_max")
    if not settings.data_dir:
        raise SettingsError("data_dir must not be empty")
    if settings.stash_password_file and not _takes_password(settings):
        raise SettingsError(
            "stash_password_file is for a stash in PostgreSQL whose URL has a user, no password"
        )
    if settings.shares_stash and not settings.warehouse:
        raise SettingsError(
            "a PostgreSQL stash is for several coordinators: say with --warehouse which directory"
            " they share"
        )
    if settings.spark_start not in ("eager", "lazy", "off"):
        raise SettingsError("spark_start must be eager, lazy or off")
    if settings.log_level not in ("debug", "info", "warning", "error"):
        raise SettingsError("log_level must be debug, info, warning or error")
    if settings.log_format not in ("text", "json"):
        raise SettingsError("log_format must be text or json")
    _check_cluster(settings)
    _check_variables(settings.variables)


def _check_cluster(settings: Settings) -> None:
    """What is for a cluster needs one; of Spark's own settings only some may be given."""
    for name in (
        "spark_driver_host", "spark_driver_bind", "spark_driver_port", "spark_executor_memory_mb",
        "spark_cores_max",
    ):  # fmt: skip
        if getattr(settings, name) and not settings.has_spark_cluster:
            raise SettingsError(f"{name} is for a cluster: name one with spark_master")
    if settings.spark_driver_bind and not settings.spark_driver_host:
        raise SettingsError("spark_driver_bind needs spark_driver_host")
    if settings.spark_driver_port > 65_535:
        raise SettingsError("spark_driver_port must be at most 65535")
    if not settings.spark_conf:
        return  # a start without Spark imports nothing of it
    from compute.spark.allowed_conf import refused_conf

    refused = refused_conf(settings.spark_conf)
    if refused is not None:
        raise SettingsError(
            f'spark_conf takes no "{refused}": docs/operations.md lists what it takes'
        )


def _check_access(settings: Settings) -> None:
    """Doors that contradict each other, or that nobody could open."""
    if bool(settings.ssl_cert_file) != bool(settings.ssl_key_file):
        raise SettingsError("ssl_cert_file and ssl_key_file belong together")
    if settings.ssl_ca_file and not settings.ssl_cert_file:
        raise SettingsError("ssl_ca_file needs ssl_cert_file")
    if settings.ssl_crl_file and not settings.ssl_ca_file:
        raise SettingsError("ssl_crl_file needs ssl_ca_file")
    if settings.ssl_min_protocol_version not in ("TLSv1.2", "TLSv1.3"):
        raise SettingsError("ssl_min_protocol_version must be TLSv1.2 or TLSv1.3")
    if settings.ident_file and not settings.hba_file:
        raise SettingsError("ident_file needs hba_file: the built-in rules name no map")
    if settings.auth_delay_ms >= 1000 * settings.startup_timeout_s:
        raise SettingsError("auth_delay_ms must be shorter than startup_timeout_s")
    if not settings.http_listen and (settings.http_token_file or settings.http_hosts):
        raise SettingsError("http_token_file and http_hosts need http_listen")
    if settings.audit not in ("", "login"):
        raise SettingsError("audit must be login, or empty")
    permissions = settings.unix_socket_permissions
    if not re.fullmatch("0?[0-7]{3}", permissions):
        raise SettingsError(f'unix_socket_permissions must be octal, not "{permissions}"')


def _takes_password(settings: Settings) -> bool:
    is_named = _split_url(settings.stash).username is not None
    return settings.shares_stash and is_named and not _names_password(settings.stash)


def _check_variables(variables: Mapping[str, str]) -> None:
    if not variables:
        return
    # They know much of SQL, and a server listens before that is imported (E3 of `main.py`).
    from coordinator.variables.variables import Variables
    from sql.errors import SqlError

    try:
        Variables(user="meridian", defaults=variables)
    except SqlError as error:
        raise SettingsError(error.message) from error
