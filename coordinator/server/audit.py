"""One JSON line on stderr for each log-in, if the setting `audit` asks for it.

    {"event":"login","time":"2026-11-28T21:00:00.123Z","pid":7,"user":"ann","database":"meridian",
     "address":"127.0.0.1","tls":"TLSv1.3","sqlstate":"00000"}

`address` is null for the Unix socket, `tls` without encryption, `pid` where no session began. JSON
escapes whatever a name has in it, newlines above all.
"""

import json
import sys
from datetime import UTC, datetime

from coordinator.server.access import Peer

SUCCESS = "00000"


def write_login(
    peer: Peer, user: str, database: str, *, now: int, pid: int | None, sqlstate: str = SUCCESS
) -> None:
    """Write the line. `now`: microseconds, of the clock."""
    moment = datetime.fromtimestamp(now / 1_000_000, UTC)
    line = {
        "event": "login",
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "pid": pid,
        "user": user,
        "database": database,
        "address": peer.address,
        "tls": None if peer.tls is None else peer.tls.version,
        "sqlstate": sqlstate,
    }
    sys.stderr.write(json.dumps(line, separators=(",", ":")) + "\n")
