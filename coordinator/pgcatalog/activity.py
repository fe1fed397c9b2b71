"""Rows of pg_stat_activity, pg_stat_ssl and pg_stat_gssapi: the sessions at this moment.

    Session ─▶ ObservedSession, a value ─▶ rows

A row names the columns it has (W2 of `pgcatalog/relations.py`). Processes that PostgreSQL has
beside its sessions (checkpointer, launchers ..) do not exist here, so they are not listed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.oids import DATABASE_OIDS

_ACTIVE: Final = "active"


@dataclass(frozen=True, slots=True)
class ObservedEncryption:
    """How a connection is encrypted. `client` and `issuer`: names in the client's certificate, as
    OpenSSL writes them on one line. `serial` None: there is none, or it has more than 38 digits.
    """

    version: str
    cipher: str
    bits: int
    client: str | None = None
    serial: int | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedSession:
    """A session as it is. Times are in microseconds; None: there was none yet."""

    pid: int
    database: str
    user: str
    application: str
    address: str | None
    port: int | None
    started_at: int
    transaction_at: int | None
    query_at: int | None
    changed_at: int
    state: str
    query: str
    encryption: ObservedEncryption | None = None


def _pg_stat_activity(
    context: BindContext, sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for seen in sorted(sessions, key=lambda session: session.pid):
        role = roles.named(seen.user)
        waits = seen.state != _ACTIVE
        yield {
            "datid": DATABASE_OIDS[seen.database],
            "datname": seen.database,
            "pid": seen.pid,
            "usesysid": None if role is None else role.oid,
            "usename": seen.user,
            "application_name": seen.application,
            "client_addr": seen.address,
            # As PostgreSQL says it of a Unix socket.
            "client_port": -1 if seen.address is None else seen.port,
            "backend_start": seen.started_at,
            "xact_start": seen.transaction_at,
            "query_start": seen.query_at,
            "state_change": seen.changed_at,
            "wait_event_type": "Client" if waits else None,
            "wait_event": "ClientRead" if waits else None,
            "state": seen.state,
            "query": seen.query,
            "backend_type": "client backend",
        }


def _pg_stat_ssl(_: BindContext, sessions: Sequence[ObservedSession]) -> Iterator[NamedRow]:
    for seen in sorted(sessions, key=lambda session: session.pid):
        tls = seen.encryption
        if tls is None:
            yield {"pid": seen.pid, "ssl": False}
            continue
        yield {
            "pid": seen.pid,
            "ssl": True,
            "version": tls.version,
            "cipher": tls.cipher,
            "bits": tls.bits,
            "client_dn": tls.client,
            "client_serial": None if tls.serial is None else Decimal(tls.serial),
            "issuer_dn": tls.issuer,
        }


def _pg_stat_gssapi(_: BindContext, sessions: Sequence[ObservedSession]) -> Iterator[NamedRow]:
    for pid in sorted(session.pid for session in sessions):
        flags = ("gss_authenticated", "encrypted", "credentials_delegated")
        yield {"pid": pid, **dict.fromkeys(flags, False)}


ACTIVITY_ROWS: Final[
    Mapping[str, Callable[[BindContext, Sequence[ObservedSession]], Iterator[NamedRow]]]
] = {
    "pg_stat_activity": _pg_stat_activity,
    "pg_stat_gssapi": _pg_stat_gssapi,
    "pg_stat_ssl": _pg_stat_ssl,
}
