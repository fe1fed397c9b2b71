"""What decides who may connect: rules, maps of names, certificates, and what the stash keeps.

    hba_file, ident_file, ssl_* ──▶ Access ◀── AccessRecord (stash)
    SIGHUP ─▶ reload ───────────────┘ └─▶ rule, map, verifier, TLS for each new connection

    built-in rules     no password was set            once one was set (`first_password.py`)
    Unix socket        peer                           peer
    loopback           trust                          scram-sha-256
    other addresses    refused                        scram-sha-256

INVARIANTS
  B1  the built-in rules hold without `hba_file` only. A broken file refuses the start; later it is
      logged, and what was read before stays.
  B2  by the built-in map each user of the system is the role of the same name, and the one that
      runs the server is the first superuser, too, as in a PostgreSQL of its own.
  B3  what is read is read whole: a connection sees rules, maps and certificates of one reload.
"""

import asyncio
import logging
import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

from coordinator.authentication.file_rules import hba_file_rules, ident_file_mappings
from coordinator.authentication.hba import HbaFile, parse_hba, read_hba_file
from coordinator.authentication.hba_addresses import ClientAddress, IpInterface
from coordinator.authentication.hba_file import FileBroken
from coordinator.authentication.hba_rules import (
    ConnectionFacts,
    HbaMethod,
    HbaRule,
    HbaRules,
    rule_refusal,
)
from coordinator.authentication.hba_tokens import IsMember
from coordinator.authentication.ident_map import (
    IdentFile,
    IdentMap,
    identity_mismatch,
    parse_mappings,
    read_ident_file,
)
from coordinator.authentication.verifier import (
    ScramVerifier,
    mock_verifier,
)
from coordinator.config import Settings, SettingsError
from coordinator.server.certificates import load_tls
from coordinator.server.first_password import AccessRecord
from coordinator.server.host_names import SystemHostNames, own_interfaces
from coordinator.server.tls import ServerTls, TlsFacts
from coordinator.variables.variables import Variables
from sql.catalog.roles import FIRST_SUPERUSER_NAME
from sql.errors import SqlError
from sql.types.sql_type import Value
from storage.threads import Threads

log = logging.getLogger("meridian.access")

_P = ParamSpec("_P")
_R = TypeVar("_R")

PASSWORD_THREADS: Final = 2
"""Passwords checked at once by the method `password`. Larger: more CPU for who guesses."""

BUILT_IN: Final = "built-in"
"""In place of a file's name."""

LOOKUP_THREADS: Final = 4
"""Names of hosts looked up at once. Larger: more threads that a slow resolver holds."""

_OPEN_RULES: Final = """\
local all all peer map=own
host all all 127.0.0.0/8 trust
host all all ::1/128 trust
"""
_PASSWORD_RULES: Final = """\
local all all peer map=own
host all all all scram-sha-256
"""
_BUILT_IN_HINT: Final = (
    "Without the setting hba_file only this machine is let in, or who knows a password once one was"
    " set with MERIDIAN_PASSWORD or meridian passwd."
)


def _as_values(row: Mapping[str, object]) -> Mapping[str, Value]:
    """A row of a file's view; arrays are tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else cast("Value", value)
        for name, value in row.items()
    }


def _own_map() -> str:
    """B2, in the syntax of pg_ident.conf."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name.replace('"', '""')
    except KeyError:
        return "own /^(.*)$ \\1\n"
    return f'own "{name}" "{FIRST_SUPERUSER_NAME}"\nown /^(.*)$ \\1\n'


@dataclass(frozen=True, slots=True)
class Peer:
    """How a client is connected. `address` None: by the Unix socket, as the user `uid`."""

    address: str | None
    uid: int | None
    tls: TlsFacts | None


@dataclass(frozen=True, slots=True)
class _Files:
    """What one reload has read (B3)."""

    rules: HbaRules
    idents: IdentMap
    tls: ServerTls | None
    interfaces: Sequence[IpInterface]


@dataclass(frozen=True, slots=True)
class RuleOfConnection:
    """What decides about a connection, and the maps that were read with it (B3)."""

    rule: HbaRule
    idents: IdentMap

    def is_mapped(self, system_user: str, role: str, is_member: IsMember) -> bool:
        """Whether that user of the system, or of a certificate, may be the role."""
        name = self.rule.options.user_map
        if self.idents.allows(name, system_user=system_user, role=role, is_member=is_member):
            return True
        log.info("%s", identity_mismatch(name, system_user=system_user, role=role))
        return False


class Access:
    """See the module. Raises SettingsError for files that are broken (B1)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._record: AccessRecord | None = None
        self._threads = Threads(PASSWORD_THREADS, thread_name_prefix="password")
        self._lookups = Threads(LOOKUP_THREADS, thread_name_prefix="names")
        variables = Variables(user=FIRST_SUPERUSER_NAME, defaults=settings.variables)
        self._iterations = int(variables.get("scram_iterations"))
        self._files = self._read()

    def begin(self, record: AccessRecord) -> None:
        """Connections are about to come; the stash keeps this."""
        self._record = record
        if not self._settings.hba_file:
            # What the files say was read at the start; who takes over reads nothing again.
            rules = parse_hba(self._built_in(), BUILT_IN, has_tls=self.tls is not None).rules()
            self._files = replace(self._files, rules=rules)
        if self.is_open:
            log.warning(
                "no password is set: everybody on this machine is superuser, and nobody else can"
                " connect; see docs/security.md"
            )

    @property
    def is_open(self) -> bool:
        """Whether the built-in rules trust this machine."""
        asked = self._record is not None and self._record.password_asked
        return not self._settings.hba_file and not asked

    @property
    def tls(self) -> ServerTls | None:
        """What new connections are offered."""
        return self._files.tls

    def reload(self) -> bool:
        """Read all files again; False if one is broken: then nothing has changed (B1)."""
        try:
            self._files = self._read()
        except SettingsError as error:
            log.error("access is not reloaded: %s", error)  # noqa: TRY400 - a line, no traceback
            return False
        log.info("access is reloaded")
        return True

    def _read(self) -> _Files:
        tls = load_tls(self._settings)
        try:
            rules = self.hba_file(has_tls=tls is not None).rules()
            idents = self.ident_file().mappings()
        except FileBroken as error:
            raise SettingsError(str(error)) from error
        for rule in rules.rules:
            if rule.remark is not None:
                log.warning("line %s of %s: %s", rule.line, rule.file, rule.remark)
        own = own_interfaces() if rules.asks_for_interfaces else ()
        return _Files(rules, idents, tls, own)

    def hba_file(self, *, has_tls: bool | None = None) -> HbaFile:
        """The rules as the file says at this moment, or as they are built in. Raises FileBroken."""
        has_tls = self.tls is not None if has_tls is None else has_tls
        if self._settings.hba_file:
            return read_hba_file(Path(self._settings.hba_file), has_tls=has_tls)
        return parse_hba(self._built_in(), BUILT_IN, has_tls=has_tls)

    def _built_in(self) -> str:
        return _OPEN_RULES if self.is_open else _PASSWORD_RULES

    def ident_file(self) -> IdentFile:
        """The maps as the file says at this moment, or as they are built in. Raises FileBroken."""
        if self._settings.ident_file:
            return read_ident_file(Path(self._settings.ident_file))
        return parse_mappings("" if self._settings.hba_file else _own_map(), BUILT_IN)

    def file_rows(self, relation: str) -> Sequence[Mapping[str, Value]] | None:
        """See Sessions."""
        try:
            match relation:
                case "pg_hba_file_rules":
                    return [_as_values(row) for row in hba_file_rules(self.hba_file())]
                case "pg_ident_file_mappings":
                    return [_as_values(row) for row in ident_file_mappings(self.ident_file())]
                case _:
                    return None
        except FileBroken as error:
            raise SqlError("58P01", str(error)) from error

    async def rule(
        self, peer: Peer, user: str, database: str, is_member: IsMember
    ) -> RuleOfConnection:
        """The rule that decides about a connection. Raises 28000 if none, or one rejects it."""
        files, client = self._files, None
        if peer.address is not None:
            address = ip_address(peer.address.partition("%")[0])
            client = ClientAddress(address, SystemHostNames(), files.interfaces)
        facts = ConnectionFacts(user, database, client, peer.tls is not None, is_member)
        if files.rules.asks_for_host_names:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._lookups, files.rules.match, facts)
        else:
            found = files.rules.match(facts)
        if found is not None and found.method is not HbaMethod.REJECT:
            return RuleOfConnection(found, files.idents)
        refusal = rule_refusal(found, facts)
        if not self._settings.hba_file:
            refusal = SqlError(refusal.sqlstate, refusal.message, hint=_BUILT_IN_HINT)
        raise refusal

    def mock_verifier(self, user: str) -> ScramVerifier:
        """A verifier that no password fits, always the same for a name."""
        assert self._record is not None, "log-ins come after begin()"
        return mock_verifier(user, secret=self._record.mock_secret, iterations=self._iterations)

    async def in_thread(self, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Do what takes milliseconds beside the loop; few at once."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *args, **kwargs))

    def shown(self) -> dict[str, str]:
        """Settings under PostgreSQL's names, as SHOW tells them."""
        return {
            "hba_file": self._settings.hba_file,
            "ident_file": self._settings.ident_file,
            "ssl": "on" if self.tls is not None else "off",
            "ssl_ca_file": self._settings.ssl_ca_file,
            "ssl_cert_file": self._settings.ssl_cert_file,
            "ssl_crl_file": self._settings.ssl_crl_file,
            "ssl_key_file": self._settings.ssl_key_file,
            "ssl_min_protocol_version": self._settings.ssl_min_protocol_version,
            "unix_socket_permissions": self._settings.unix_socket_permissions,
        }
