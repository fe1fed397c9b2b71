"""Write the beginning and the end of connections into the log: log_connections, log_disconnections.

    receipt ─▶ authentication ─▶ authorization, setup_durations ─▶ session ─▶ disconnection

What the server's configuration says holds for the beginning, which is before anybody's own settings
count; the end is logged if the session's setting says so. The texts are PostgreSQL's
(log_connections of backend_startup.c and postinit.c, log_disconnections of postgres.c).
"""

from time import perf_counter

from coordinator.config import Settings
from coordinator.server.access import Peer
from coordinator.session_records import LogSeverity, RecordOrigin, SessionRecord, log_record
from coordinator.variables.special_checks import connection_aspects
from coordinator.variables.variables import Variables

_LOG = SessionRecord(LogSeverity.LOG)


class ConnectionLog:
    """What is logged of one connection. `port`: of the client; None: it uses the Unix socket."""

    def __init__(self, settings: Settings) -> None:
        named = {name.lower(): value for name, value in settings.variables.items()}
        self._aspects = connection_aspects(named.get("log_connections", ""))
        self._began = perf_counter()

    def received(self, peer: Peer, port: int | None) -> None:
        """Somebody has connected."""
        if "receipt" in self._aspects:
            log_record(f"connection received: {_place(peer.address, port)}", _LOG)

    def authorized(self, peer: Peer, proof: str, origin: RecordOrigin) -> None:
        """Somebody has proved who it is and is let in; its session begins."""
        record = SessionRecord(LogSeverity.LOG, origin)
        if "authentication" in self._aspects:
            log_record(f"connection authenticated: {proof}", record)
        if "authorization" in self._aspects:
            told = f"connection authorized: user={origin.user} database={origin.database}"
            if origin.application:
                told += f" application_name={origin.application}"
            if peer.tls is not None:
                tls = peer.tls
                told += f" SSL enabled (protocol={tls.version}, cipher={tls.cipher},"
                told += f" bits={tls.bits})"
            log_record(told, record)
        if "setup_durations" in self._aspects:
            total = 1000 * (perf_counter() - self._began)
            log_record(f"connection ready: setup total={total:.3f} ms", record)

    def ended(self, variables: Variables, origin: RecordOrigin) -> None:
        """Its session is over."""
        if not variables.flag("log_disconnections"):
            return
        spent = int(1000 * (perf_counter() - self._began))
        hours, rest = divmod(spent, 3_600_000)
        minutes, rest = divmod(rest, 60_000)
        seconds, milliseconds = divmod(rest, 1000)
        lasted = f"{hours}:{minutes:02d}:{seconds:02d}.{milliseconds:03d}"
        told = f"disconnection: session time: {lasted} user={origin.user}"
        told += f" database={origin.database} {_place(origin.host, origin.port)}"
        log_record(told, SessionRecord(LogSeverity.LOG, origin))


def _place(address: str | None, port: int | None) -> str:
    if address is None:
        return "host=[local]"
    return f"host={address}" if port is None else f"host={address} port={port}"
