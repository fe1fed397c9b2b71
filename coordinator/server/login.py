"""A client proves who it is, and what is then asked of its role: one conversation before a session.

    start-up ─▶ rule (`access.py`) ─▶ method ─▶ role may log in ─▶ limits ─▶ database ─▶ Login

INVARIANTS
  A1  the rule does not depend on whether the role exists, and every method but `trust` is finished
      before the client learns it.
  A2  a name that no role has is the first superuser (U2 of `sql/catalog/roles.py`) under the
      built-in trust only.
  A3  while privileges are not enforced, who is no superuser logs in under `trust` only: a password
      must not promise what the server does not keep.
  A4  PBKDF2 runs in a thread, of which few are busy with it at once.
"""

import pwd
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from coordinator import session_errors as wrong
from coordinator.authentication.hba_rules import (
    ClientCertificate,
    ClientName,
    HbaMethod,
)
from coordinator.authentication.scram import NONCE_BYTES, ScramExchange, offered_mechanisms
from coordinator.authentication.verifier import (
    ScramVerifier,
    is_password_of,
    parse_verifier,
)
from coordinator.execution.context import Services
from coordinator.pgwire.messages import (
    AuthenticationCleartextPassword,
    AuthenticationSasl,
    AuthenticationSaslContinue,
    AuthenticationSaslFinal,
    BackendMessage,
)
from coordinator.server.access import Access, Peer, RuleOfConnection
from coordinator.server.certificates import client_names
from sql.binder.resolve.role_names import session_roles
from sql.catalog.acl import PUBLIC, ObjectPrivileges
from sql.catalog.catalog import Catalog
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.ownership import DATABASE_SUBJECT, effective_acl
from sql.catalog.roles import Role, Roles
from sql.errors import SqlError


class Channel(Protocol):
    """The client's side of the conversation."""

    def send(self, message: BackendMessage) -> None:
        """Queue a message."""
        ...

    async def password(self) -> bytes:
        """Send what is queued; the payload of the client's answer. Raises EOFError."""
        ...


@dataclass(frozen=True, slots=True)
class Login:
    """Who has come in, and how. `oid`: the role's."""

    user: str
    database: str
    oid: int
    parameters: Mapping[str, str]
    """The settings of the start-up message."""
    proof: str
    """How it has proved who it is, for the log."""
    is_proved: bool
    """Whether it was asked to prove anything: not under `trust`."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What a method has to go by. `role` None: there is none of that name (A1)."""

    user: str
    role: Role | None
    peer: Peer
    decided: RuleOfConnection
    access: Access
    channel: Channel
    roles: Roles
    now: int
    """Microseconds, of the clock."""
    given: bytes | None
    """The password, if the client has sent it unasked: then there is no conversation."""

    def is_member(self, group: str) -> bool:
        """See IsMember."""
        return is_member_of(self.roles, self.role, group)

    def is_mapped(self, system_user: str) -> bool:
        """Whether that user of the system, or of the certificate, may be this role."""
        return self.decided.is_mapped(system_user, self.user, self.is_member)

    def verifier(self) -> ScramVerifier:
        """Of the role's password; a mock one if it has none that counts (A1)."""
        stored = None if self.role is None else self.role.password
        until = None if self.role is None else self.role.valid_until
        found = None if stored is None else parse_verifier(stored)
        if found is None or (until is not None and until < self.now):
            return self.access.mock_verifier(self.user)
        return found


def is_member_of(roles: Roles, role: Role | None, group: str) -> bool:
    """Whether a role is a member of a group, or is it. Being a superuser does not count."""
    found = roles.named(group)
    return role is not None and found is not None and found.oid in roles.above(role.oid)


async def log_in(
    startup: Mapping[str, str],
    peer: Peer,
    access: Access,
    channel: Channel,
    services: Services,
    given: bytes | None = None,
) -> Login:
    """Authenticate, then look at the role. Raises SqlError: the client is refused with it.

    `given`: the password that came with the request, over HTTP.
    """
    user, database, parameters = _who(startup)
    coordination = services.coordination
    # Names as they are: nobody is taken for the first superuser here (A2).
    roles = session_roles(coordination.newest_catalog, "")
    role = roles.named(user)
    decided = await access.rule(peer, user, database, partial(is_member_of, roles, role))
    method, demanded = decided.rule.method, decided.rule.options.certificate
    now = services.clock.now()
    attempt = _Attempt(user, role, peer, decided, access, channel, roles, now, given)
    if demanded is not ClientCertificate.NONE:
        _certificate(attempt)  # who has none does not come to guess passwords
    await _METHODS[method](attempt)
    if demanded is ClientCertificate.VERIFY_FULL:
        _check_named_by(attempt, _certificate(attempt))
    trusted = access.is_open and method is HbaMethod.TRUST
    admitted = _admitted_role(coordination.newest_catalog, user, method, is_open=trusted)
    is_proved = method is not HbaMethod.TRUST
    return Login(user, database, admitted.oid, parameters, _proof(attempt), is_proved)


def _proof(attempt: _Attempt) -> str:
    """As set_authn_id and log_connections of PostgreSQL's auth.c have it."""
    rule, tls = attempt.decided.rule, attempt.peer.tls
    named = f'identity="{attempt.user}"'
    if rule.method is HbaMethod.TRUST:
        named = f'user="{attempt.user}"'
    elif rule.method is HbaMethod.PEER and attempt.peer.uid is not None:
        named = f'identity="{pwd.getpwuid(attempt.peer.uid).pw_name}"'
    elif rule.method is HbaMethod.CERT and tls is not None and tls.client is not None:
        named = f'identity="{client_names(tls.client)[1]}"'
    return f"{named} method={rule.method} ({rule.file}:{rule.line})"


def _who(startup: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """User, database, and the settings among the start-up parameters."""
    rest = dict(startup)
    user = rest.pop("user", "")
    if not user:
        raise SqlError("28000", "no PostgreSQL user name specified in startup packet")
    database = rest.pop("database", "") or user
    if rest.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise SqlError("0A000", "replication connections are not supported")
    return user, database, rest


# --- methods --------------------------------------------------------------------------------------


async def _trust(_: _Attempt) -> None:
    """Nobody is asked for anything."""


async def _peer(attempt: _Attempt) -> None:
    """The kernel says who is at the other end of the Unix socket."""
    uid = attempt.peer.uid
    try:
        name = None if uid is None else pwd.getpwuid(uid).pw_name
    except KeyError:
        name = None
    if name is None or not attempt.is_mapped(name):
        raise SqlError("28000", f'Peer authentication failed for user "{attempt.user}"')


async def _cert(_: _Attempt) -> None:
    """The client's certificate, which TLS has verified, names it: `verify-full` is implied."""


def _certificate(attempt: _Attempt) -> bytes:
    """The client's certificate, in DER. Raises 28000."""
    tls = attempt.peer.tls
    if tls is None or tls.client is None:
        raise SqlError("28000", "connection requires a valid client certificate")
    return tls.client


def _check_named_by(attempt: _Attempt, certificate: bytes) -> None:
    common, distinguished = client_names(certificate)
    is_whole = attempt.decided.rule.options.client_name is ClientName.DISTINGUISHED_NAME
    name = distinguished if is_whole else common
    if name is None or not attempt.is_mapped(name):
        words = f'certificate authentication failed for user "{attempt.user}"'
        raise SqlError("28000", words)


async def _password(attempt: _Attempt) -> None:
    """The password as it is, checked against the verifier (A4)."""
    if attempt.given is not None:
        await _check_password(attempt, attempt.given)
        return
    attempt.channel.send(AuthenticationCleartextPassword())
    payload = await attempt.channel.password()
    if payload[-1:] != b"\0" or b"\0" in payload[:-1]:
        raise SqlError("08P01", "invalid password packet size")
    if payload == b"\0":
        raise SqlError("28P01", "empty password returned by client")
    await _check_password(attempt, payload[:-1])


async def _check_password(attempt: _Attempt, password: bytes) -> None:
    right = await attempt.access.in_thread(is_password_of, password, attempt.verifier())
    if not right:
        raise failed_password(attempt.user)


async def _scram(attempt: _Attempt) -> None:
    """SCRAM-SHA-256, bound to the channel if the client can (A1)."""
    if attempt.given is not None:
        await _check_password(attempt, attempt.given)
        return
    tls = attempt.peer.tls
    bound_to = None if tls is None else tls.end_point
    nonce = secrets.token_bytes(NONCE_BYTES)
    exchange = ScramExchange(
        attempt.user, attempt.verifier(), nonce=nonce, certificate_hash=bound_to
    )
    attempt.channel.send(AuthenticationSasl(offered_mechanisms(bound_to)))
    while True:
        reply = exchange.receive(await attempt.channel.password())
        if reply.is_final:
            attempt.channel.send(AuthenticationSaslFinal(reply.data))
            return
        attempt.channel.send(AuthenticationSaslContinue(reply.data))


def failed_password(user: str) -> SqlError:
    """28P01, whatever the reason (D3 of `authentication`)."""
    return SqlError("28P01", f'password authentication failed for user "{user}"')


_METHODS: Final[Mapping[HbaMethod, Callable[[_Attempt], Awaitable[None]]]] = {
    HbaMethod.TRUST: _trust,
    HbaMethod.PEER: _peer,
    HbaMethod.CERT: _cert,
    HbaMethod.PASSWORD: _password,
    HbaMethod.SCRAM: _scram,
    HbaMethod.MD5: _scram,
}


# --- the role -------------------------------------------------------------------------------------


def _admitted_role(catalog: Catalog, user: str, method: HbaMethod, *, is_open: bool) -> Role:
    """The role that the session is, if it may be (A2, A3). Raises SqlError."""
    role = session_roles(catalog, user if is_open else "").named(user)
    if role is None:
        raise SqlError("28000", f'role "{user}" does not exist')
    if not role.login:
        raise SqlError("28000", f'role "{user}" is not permitted to log in')
    if not role.superuser and method is not HbaMethod.TRUST:
        raise SqlError(
            "28000",
            f'role "{user}" may not log in with "{method}", because it is not a superuser',
            detail="Privileges are recorded, but not enforced yet, so whoever is in may do"
            " everything.",
            hint='Only a rule with the method "trust" admits it.',
        )
    return role


def check_connect(catalog: Catalog, database: str, oid: int) -> None:
    """Whether the database exists and the role may connect to it. Raises SqlError."""
    if database == "template0":
        message = f'database "{database}" is not currently accepting connections'
        raise SqlError("55000", message)
    if database not in DATABASE_OIDS:
        raise wrong.undefined_database(database)
    roles = session_roles(catalog, "")
    rights = catalog.rights.get(DATABASE_SUBJECT, ObjectPrivileges())
    has = any(
        "c" in item.privileges and (item.grantee == PUBLIC or roles.has(oid, item.grantee))
        for item in effective_acl(rights, "database")
    )
    if not has and not roles.is_super(oid):
        raise SqlError(
            "42501",
            f'permission denied for database "{database}"',
            detail="User does not have CONNECT privilege.",
        )
