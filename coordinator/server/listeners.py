"""Take ports and the Unix socket; nobody is accepted before all of them are taken.

INVARIANTS
  L1  a host of several addresses (`localhost`) is listened on at each that this machine has; one at
      least, or the start fails.
  L2  hosts whose port is 0 get the port of the first.
  L3  the Unix socket has its permissions before anybody can connect to it. A file that a dead
      server has left is replaced; one of a server that lives is not. At the end only the file that
      this server has made is removed.
"""

import asyncio
import errno
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

log = logging.getLogger("meridian.listening")

BACKLOG: Final = 1024
SOCKET_PATH_BYTES_MAX: Final = 107
"""Of `sun_path` on Linux, without its NUL."""

NO_SOCKET: Final = "none"
"""As `unix_socket_directory`: there is no Unix socket."""

SOCKET_PROBE_S: Final = 2.0
"""Time for a server to accept who asks whether it lives."""

_CREDENTIALS: Final = struct.Struct("3i")
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
EVERY_ADDRESS: Final = ("*", "")
"""In place of a host."""

ConnectionFactory = Callable[[], asyncio.BaseProtocol]


async def listen_on(
    connection: ConnectionFactory, addresses: Sequence[tuple[str, int]]
) -> tuple[list[asyncio.Server], int]:
    """Listeners that do not serve yet, and the first port. Raises OSError (L1, L2)."""
    loop = asyncio.get_running_loop()
    sockets: list[socket.socket] = []
    try:
        for host, port in addresses:
            known = sockets[0].getsockname()[1] if sockets else 0
            sockets += await _bind_host(host, port or known)
    except BaseException:
        for one in sockets:
            one.close()
        raise
    listeners = [
        await loop.create_server(connection, sock=one, backlog=BACKLOG, start_serving=False)
        for one in sockets
    ]
    port = sockets[0].getsockname()[1]
    return listeners, port


async def _bind_host(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of a host (L1). Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        None if host in EVERY_ADDRESS else host,
        port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    bound: list[socket.socket] = []
    missing: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        taken = bound[0].getsockname()[1] if bound else port
        try:
            bound.append(_bind(family, kind, protocol, (address[0], taken, *address[2:])))
        except OSError as error:
            if error.errno not in _NOT_HERE:
                for one in bound:
                    one.close()
                raise
            missing = error
    if not bound:
        assert missing is not None, "a host without addresses is not found"
        raise missing
    return bound


def _bind(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Or "::" would take what "0.0.0.0" wants.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    return made


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
