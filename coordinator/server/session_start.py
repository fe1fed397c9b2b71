"""A session begins, once it is known who has come in: its settings, its parts, its end."""

from collections.abc import Mapping

from coordinator.core.messages.identities import ConnectionId
from coordinator.server.login import Login, check_connect
from coordinator.server.server import Server
from coordinator.session.client import Client
from coordinator.session.requests import Identity
from coordinator.session.session import Session
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.session_roles import (
    find_role,
    look_up_started_roles,
    look_up_stored_role,
)
from coordinator.variables.variables import Variables
from sql.binder.resolve.role_names import session_roles
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.stored_settings import settings_by_source
from sql.catalog.temporary import TEMPORARY_SCHEMA_PREFIX
from sql.errors import SqlError


def starting_variables(server: Server, login: Login, port: int | None) -> Variables:
    """The session's settings, and who it is in the newest catalog. `port`: the server's end of the
    connection; None: of the Unix socket. Raises SqlError.
    """
    catalog = server.services.coordination.newest_catalog
    check_connect(catalog, login.database, login.oid)
    roles = session_roles(catalog, login.user)
    connected = find_role(roles, login.user)
    if connected is None or connected.oid != login.oid:
        raise SqlError("28000", f'role "{login.user}" does not exist')  # not any more
    stored = settings_by_source(catalog.settings, DATABASE_OIDS[login.database], connected.oid)
    problems: list[SqlError] = []
    made = Variables.started(
        user=login.user,
        parameters=look_up_started_roles(roles, connected, login.parameters),
        stored=[
            (source, look_up_stored_role(roles, connected, values, problems))
            for source, values in stored
        ],
        defaults=server.settings.variables,
        connected=connected,
        facts=_facts(server, port),
    )
    made.problems += problems
    return made


def open_session(
    server: Server,
    client: Client,
    variables: Variables,
    login: Login,
    *,
    pid: int,
    address: str | None,
    ports: tuple[int | None, int | None],
) -> Session:
    """The session of who has logged in; notifications come to it. `address` and `ports`: of the
    client, and the server's port.
    """
    services = server.services
    owner = ConnectionId(pid)
    transaction = SessionTransaction(services.coordination, services.clock, owner, variables)
    temporary = f"{TEMPORARY_SCHEMA_PREFIX}{pid}_{services.clock.now():x}"
    identity = Identity(login.database, pid, server.started_at, ports, temporary, address)
    session = Session(services, client, transaction, variables, identity)
    services.coordination.notifications.attach(owner, session.notified)
    return session


def _facts(server: Server, port: int | None) -> Mapping[str, str]:
    """What the server's own configuration says, under PostgreSQL's names."""
    settings = server.settings
    return {
        "data_directory": str(settings.data_path.absolute()),
        "listen_addresses": ",".join(host for host, _ in settings.addresses),
        **server.access.shown(),
        "unix_socket_directories": server.socket_directory,
        "max_connections": str(settings.connections_max),
        "reserved_connections": str(settings.reserved_connections),
        "superuser_reserved_connections": str(settings.superuser_reserved_connections),
        "port": str(server.port if port is None else port),
    }
