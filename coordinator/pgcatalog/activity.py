"""Rows of pg_stat_activity, pg_stat_ssl, pg_stat_gssapi and pg_stat_progress_copy: the sessions at
this moment.

    Session ─▶ ObservedSession, a value ─▶ rows

A row names the columns it has (W2 of `pgcatalog/relations.py`). Rows of what runs beside sessions
are made by `background.py`.

INVARIANTS
  T1  a role sees of a session of a role whose privileges it lacks that it exists, and no more, but
      with pg_read_all_stats: as HAS_PGSTAT_PERMISSIONS of PostgreSQL's pgstatfuncs.c.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.roles import ALL_STATS_ROLE, Roles

BACKGROUND_PIDS: Final = 0x7FFF_FF00
"""The first number that no session has."""

HIDDEN_QUERY: Final = "<insufficient privilege>"
"""In place of the text of a statement."""


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
class ObservedCopy:
    """A COPY that runs. `relation`: the table's oid; 0: it copies the rows of a query."""

    command: str
    relation: int
    bytes: int
    rows: int
    excluded: int
    skipped: int


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
    role: int
    """The oid of the role that it logged in as, by whose privileges it is seen (T1)."""
    wait: tuple[str, str] | None = None
    """wait_event_type and wait_event."""
    encryption: ObservedEncryption | None = None
    wait_began: int | None = None
    """Of the wait for a lock."""
    copy: ObservedCopy | None = None


def _pg_stat_activity(
    context: BindContext, sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for seen in sorted(sessions, key=lambda session: session.pid):
        role = roles.named(seen.user)
        row: NamedRow = {
            "datid": DATABASE_OIDS[seen.database],
            "datname": seen.database,
            "pid": seen.pid,
            "usesysid": None if role is None else role.oid,
            "usename": seen.user,
            "application_name": seen.application,
        }
        if not _is_shown(roles, context, seen):
            yield {**row, "query": HIDDEN_QUERY}
            continue
        kind, event = seen.wait or (None, None)
        yield {
            **row,
            "client_addr": seen.address,
            # As PostgreSQL says it of a Unix socket.
            "client_port": -1 if seen.address is None else seen.port,
            "backend_start": seen.started_at,
            "xact_start": seen.transaction_at,
            "query_start": seen.query_at,
            "state_change": seen.changed_at,
            "wait_event_type": kind,
            "wait_event": event,
            "state": seen.state,
            "query": seen.query,
            "backend_type": "client backend",
        }


def _is_shown(roles: Roles, context: BindContext, seen: ObservedSession) -> bool:
    """Whether who asks sees what the session does (T1)."""
    return reads_all_stats(context) or roles.has(context.user_oid, seen.role)


def reads_all_stats(context: BindContext) -> bool:
    """Whether who asks sees what everybody does."""
    roles, asking = roles_of(context), context.user_oid
    return ALL_STATS_ROLE in roles.above(asking) or roles.is_super(asking)


def _shown(context: BindContext, sessions: Sequence[ObservedSession]) -> Iterator[ObservedSession]:
    roles = roles_of(context)
    by_pid = sorted(sessions, key=lambda session: session.pid)
    return (seen for seen in by_pid if _is_shown(roles, context, seen))


def _pg_stat_ssl(context: BindContext, sessions: Sequence[ObservedSession]) -> Iterator[NamedRow]:
    for seen in _shown(context, sessions):
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


def _pg_stat_progress_copy(
    context: BindContext, sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    """Data comes from the client, so its size is not known (T1 for the rest)."""
    roles = roles_of(context)
    for seen in sorted(sessions, key=lambda session: session.pid):
        if (copy := seen.copy) is None:
            continue
        row: NamedRow = {
            "pid": seen.pid, "datid": DATABASE_OIDS[seen.database], "datname": seen.database
        }  # fmt: skip
        if not _is_shown(roles, context, seen):
            yield row
            continue
        yield {
            **row,
            "relid": copy.relation,
            "command": copy.command,
            "type": "PIPE",
            "bytes_processed": copy.bytes,
            "bytes_total": 0,
            "tuples_processed": copy.rows,
            "tuples_excluded": copy.excluded,
            "tuples_skipped": copy.skipped,
        }


def _pg_stat_gssapi(
    context: BindContext, sessions: Sequence[ObservedSession]
) -> Iterator[NamedRow]:
    for seen in _shown(context, sessions):
        flags = ("gss_authenticated", "encrypted", "credentials_delegated")
        yield {"pid": seen.pid, **dict.fromkeys(flags, False)}


ACTIVITY_ROWS: Final[
    Mapping[str, Callable[[BindContext, Sequence[ObservedSession]], Iterator[NamedRow]]]
] = {
    "pg_stat_activity": _pg_stat_activity,
    "pg_stat_gssapi": _pg_stat_gssapi,
    "pg_stat_progress_copy": _pg_stat_progress_copy,
    "pg_stat_ssl": _pg_stat_ssl,
}
