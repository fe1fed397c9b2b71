"""Accept at ports, take the Unix socket; nobody is accepted before all of them are taken.

INVARIANTS
  L3  the Unix socket has its permissions before anybody can connect to it. A file that a dead
      server has left is replaced; one of a server that lives is not. At the end only the file that
      this server has made is removed.

Not here: taking the ports (L1, L2, L4 in `ports.py`).
"""

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.config import SettingsError
from coordinator.server.access import Peer
from coordinator.server.ports import BACKLOG

log = logging.getLogger("meridian.listening")

SOCKET_PATH_BYTES_MAX: Final = 107
"""Of `sun_path` on Linux, without its NUL."""

NO_SOCKET: Final = "none"
"""As `unix_socket_directory`: there is no Unix socket."""

SOCKET_PROBE_S: Final = 2.0
"""Time for a server to accept who asks whether it lives."""

_CREDENTIALS: Final = struct.Struct("3i")
ConnectionFactory = Callable[[], asyncio.BaseProtocol]


async def accept_later(
    connection: ConnectionFactory, sockets: Sequence[socket.socket]
) -> list[asyncio.Server]:
    """A listener for each socket; it accepts nobody yet."""
    loop = asyncio.get_running_loop()
    return [
        await loop.create_server(connection, sock=one, backlog=BACKLOG, start_serving=False)
        for one in sockets
    ]


def socket_path(directory: Path, port: int) -> Path:
    """Where clients look for the Unix socket of a port."""
    return directory / f".s.PGSQL.{port}"


@dataclass(frozen=True, slots=True)
class SocketFile:
    """The file of a Unix socket that this server has made; `inode` tells it from another's."""

    path: Path
    inode: int

    @classmethod
    def of(cls, path: Path) -> "SocketFile":
        """The file that was just made. Raises OSError."""
        return cls(path, path.lstat().st_ino)

    def remove(self) -> None:
        """Remove it, so that clients are told at once that nobody is there (L3)."""
        with suppress(OSError):
            if self.path.lstat().st_ino == self.inode:
                self.path.unlink()


async def listen_on_path(
    connection: ConnectionFactory, path: Path, permissions: int
) -> tuple[asyncio.Server, SocketFile] | None:
    """A listener on a Unix socket that does not serve yet; None if the path is too long (L3).

    Clients may connect, and wait (L4 of `ports.py`).

    Raises SettingsError.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        log.warning(
            "no Unix socket: the path %s is too long (maximum %s bytes);"
            " name a shorter one with unix_socket_directory", path, SOCKET_PATH_BYTES_MAX,
        )  # fmt: skip
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_dead(path)
        made.bind(os.fspath(path))
        os.chmod(path, permissions)
        file = SocketFile.of(path)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise SettingsError(f"cannot listen on the Unix socket {path}: {reason}") from error
    except BaseException:
        made.close()
        raise
    loop = asyncio.get_running_loop()
    listener = await loop.create_unix_server(
        connection, sock=made, backlog=BACKLOG, start_serving=False
    )
    return listener, file


def _remove_dead(path: Path) -> None:
    """Remove the file of a server that is gone (L3). Raises SettingsError, OSError."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SettingsError(f"cannot listen on the Unix socket {path}: another file is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(SOCKET_PROBE_S)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:
            pass  # it lives, and is busy
    raise SettingsError(f"cannot listen on the Unix socket {path}: another server uses it")


def _peer_uid(connected: socket.socket) -> int:
    """The user at the other end of a Unix socket, as the kernel says."""
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    found: int = uid
    return found


def peer_of(transport: asyncio.Transport, connected: socket.socket | None) -> Peer | None:
    """The other end of a new connection; None if it is gone already."""
    try:
        if connected is not None and connected.family == socket.AF_UNIX:
            return Peer(None, _peer_uid(connected), None)
    except OSError:
        return None
    name = transport.get_extra_info("peername")
    return None if name is None else Peer(name[0], None, None)


def ports_of(transport: asyncio.BaseTransport) -> tuple[int | None, int | None]:
    """The client's and the server's end; None for what is no TCP connection."""
    ends = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    client, server = (end[1] if isinstance(end, tuple) else None for end in ends)
    return client, server
