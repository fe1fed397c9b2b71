"""One log-in as the server sees it: it is audited, and a failed one waits for its answer.

Not here: how a client proves who it is (`login.py`), what the audit writes (`audit.py`).
"""

import asyncio
import logging
from collections.abc import Mapping

from coordinator import session_errors as wrong
from coordinator.server.access import Peer
from coordinator.server.audit import write_login
from coordinator.server.login import Channel, Login, log_in
from coordinator.server.server import Server
from coordinator.server.strangers import Stranger
from sql.errors import SqlError

log = logging.getLogger("meridian.connection")


async def log_in_audited(
    server: Server,
    startup: Mapping[str, str],
    peer: Peer,
    channel: Channel,
    stranger: Stranger,
    given: bytes | None = None,
) -> Login:
    """Let the client prove who it is. Raises SqlError, after a while if it could not.

    `given`: see `log_in`.
    """
    user = startup.get("user", "")
    database = startup.get("database") or user
    try:
        return await log_in(startup, peer, server.access, channel, server.services, given)
    except SqlError as error:
        refuse_login(server, peer, user, database, error)
        with stranger.silence():
            await asyncio.sleep(server.settings.auth_delay_ms / 1000)
        raise
    except (EOFError, ConnectionError):
        left = SqlError("08006", "the client left before it was let in")
        audit_login(server, peer, user, database, left)
        raise
    except asyncio.CancelledError:
        ended = SqlError("57014", "the time to log in was over")
        if stranger.was_turned_away:
            ended = wrong.too_many_connections()
        audit_login(server, peer, user, database, ended)
        raise


def refuse_login(server: Server, peer: Peer, user: str, database: str, error: SqlError) -> None:
    """Somebody is told this instead of being let in: the log and the audit say so."""
    audit_login(server, peer, user, database, error)
    log.info("log-in refused: %s %s", error.sqlstate, error.message)


def audit_login(
    server: Server, peer: Peer, user: str, database: str, outcome: SqlError | int
) -> None:
    """A log-in has failed, or has become the session with that pid."""
    if not server.settings.audit:
        return
    now = server.services.clock.now()
    if isinstance(outcome, SqlError):
        write_login(peer, user, database, now=now, pid=None, sqlstate=outcome.sqlstate)
    else:
        write_login(peer, user, database, now=now, pid=outcome)
