"""Rules of pg_hba.conf as values, and the one that a connection meets.

    ConnectionFacts ──▶ HbaRules.match ──▶ HbaRule, or None ──▶ refusal: 28000 in PostgreSQL's words

INVARIANTS
  D1 of the package: the first rule that matches decides, and it is not looked for another one if
      its method fails.
  R1  `replication` matches nobody: nobody connects for replication.
  R2  a rule of type hostgssenc matches nobody, hostnogssenc everybody: there is no GSSAPI.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from coordinator.authentication.hba_addresses import (
    AddressKind,
    ClientAddress,
    HbaAddress,
    shown_address,
)
from coordinator.authentication.hba_tokens import HbaToken, IsMember
from sql.errors import SqlError


class ConnectionType(StrEnum):
    """The first field of a rule."""

    LOCAL = "local"
    HOST = "host"
    HOST_SSL = "hostssl"
    HOST_NO_SSL = "hostnossl"
    HOST_GSS_ENC = "hostgssenc"
    HOST_NO_GSS_ENC = "hostnogssenc"


class HbaMethod(StrEnum):
    """The methods that we have."""

    TRUST = "trust"
    REJECT = "reject"
    SCRAM = "scram-sha-256"
    MD5 = "md5"
    PASSWORD = "password"
    CERT = "cert"
    PEER = "peer"

    @property
    def is_scram(self) -> bool:
        """It asks for a password by SCRAM."""
        return self in (HbaMethod.SCRAM, HbaMethod.MD5)


class ClientCertificate(StrEnum):
    """What `clientcert=` demands beside the method."""

    NONE = "no-verify"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


class ClientName(StrEnum):
    """What of a certificate is the client's name."""

    COMMON_NAME = "CN"
    DISTINGUISHED_NAME = "DN"


@dataclass(frozen=True, slots=True)
class HbaOptions:
    """What stands behind the method. `user_map`: of `ident_map`; None, the names are the same."""

    user_map: str | None = None
    certificate: ClientCertificate = ClientCertificate.NONE
    client_name: ClientName = ClientName.COMMON_NAME


@dataclass(frozen=True, slots=True)
class HbaRule:
    """One line. `address`: None for `local`. `remark`: why it can never match, if so."""

    file: str
    line: int
    text: str
    type: ConnectionType
    databases: tuple[HbaToken, ...]
    users: tuple[HbaToken, ...]
    address: HbaAddress | None
    method: HbaMethod
    options: HbaOptions
    remark: str | None = None

    def meets(self, facts: "ConnectionFacts") -> bool:
        """Whether the rule is about this connection."""
        return (
            self._has_type_of(facts)
            and any(_is_database(token, facts) for token in self.databases)
            and any(token.matches_role(facts.user, facts.is_member) for token in self.users)
        )

    def _has_type_of(self, facts: "ConnectionFacts") -> bool:
        if facts.client is None or self.address is None:
            return facts.client is None and self.type is ConnectionType.LOCAL
        match self.type:
            case ConnectionType.LOCAL | ConnectionType.HOST_GSS_ENC:  # R2
                return False
            case ConnectionType.HOST_SSL if not facts.is_tls:
                return False
            case ConnectionType.HOST_NO_SSL if facts.is_tls:
                return False
            case _:
                return facts.client.is_in(self.address)


def _nobodys_member(_role: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """A connection before it is authenticated. `client`: None on a Unix socket."""

    user: str
    database: str
    client: ClientAddress | None = None
    is_tls: bool = False
    is_member: IsMember = field(default=_nobodys_member, repr=False)

    @property
    def host(self) -> str:
        """Where it comes from, as errors show it."""
        return "[local]" if self.client is None else shown_address(self.client.address)


def _is_database(token: HbaToken, facts: ConnectionFacts) -> bool:
    if token.is_keyword("all"):
        return True
    if token.is_keyword("sameuser"):
        return facts.database == facts.user
    if token.is_keyword("samerole") or token.is_keyword("samegroup"):
        return facts.is_member(facts.database)
    return not token.is_keyword("replication") and token.matches_name(facts.database)  # R1


class HbaRules:
    """The rules of a server, in order."""

    def __init__(self, rules: Sequence[HbaRule]) -> None:
        self.rules: Final = tuple(rules)

    def match(self, facts: ConnectionFacts) -> HbaRule | None:
        """The first rule that the connection meets (D1). It looks up host names if a rule before
        has one: see `asks_for_host_names`.
        """
        return next((rule for rule in self.rules if rule.meets(facts)), None)

    @property
    def asks_for_host_names(self) -> bool:
        """Whether `match` may wait for the network, so that it belongs in a thread."""
        return any(self._has_address(AddressKind.HOST_NAME))

    @property
    def asks_for_interfaces(self) -> bool:
        """Whether a rule says samehost or samenet."""
        kinds = AddressKind.SAME_HOST, AddressKind.SAME_NETWORK
        return any(any(self._has_address(kind)) for kind in kinds)

    def _has_address(self, kind: AddressKind) -> list[bool]:
        return [rule.address is not None and rule.address.kind is kind for rule in self.rules]


def rule_refusal(rule: HbaRule | None, facts: ConnectionFacts) -> SqlError:
    """28000 for a connection that no rule is about (None), or that one rejects."""
    encryption = "SSL encryption" if facts.is_tls else "no encryption"
    who = f'host "{facts.host}", user "{facts.user}", database "{facts.database}", {encryption}'
    if rule is None:
        return SqlError("28000", f"no pg_hba.conf entry for {who}")
    assert rule.method is HbaMethod.REJECT, "the other methods ask the client"
    return SqlError("28000", f"pg_hba.conf rejects connection for {who}")
