"""Take the ports of a server: as the first thing of a start, before most modules are imported.

INVARIANTS
  L1  a host of several addresses (`localhost`) is listened on at each that this machine has; one at
      least, or the start fails.
  L2  hosts whose port is 0 get the port of the first.
  L4  clients of a server that is about to lead may connect at once: they wait in the backlog, and
      are served when it is ready. A standby listens when it leads, and refuses until then.

Not here: accepting (`listeners.py`).
"""

import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

from coordinator.config import Settings, SettingsError

BACKLOG: Final = 1024
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
EVERY_ADDRESS: Final = ("*", "")
"""In place of a host."""


def take_ports(settings: Settings) -> tuple[socket.socket, ...]:
    """A socket for each address of the settings; those of a standby do not listen yet (L4).

    Raises SettingsError.
    """
    taken: list[socket.socket] = []
    try:
        for host, port in settings.addresses:
            known = taken[0].getsockname()[1] if taken else 0
            taken += _bind_host(host, port or known)
        for one in () if settings.standby else taken:
            one.listen(BACKLOG)
    except OSError as error:
        _close(taken)
        raise _refused(settings.listen, error) from error
    return tuple(taken)


def take_http_ports(settings: Settings) -> tuple[socket.socket, ...]:
    """The same for `http_listen`. They answer from the start, also those of a standby."""
    taken: list[socket.socket] = []
    try:
        for host, port in settings.http_addresses:
            taken += _bind_host(host, port)
        for one in taken:
            one.listen(BACKLOG)
    except OSError as error:
        _close(taken)
        raise _refused(settings.http_listen, error) from error
    return tuple(taken)


def _refused(listen: str, error: OSError) -> SettingsError:
    is_unknown = isinstance(error, socket.gaierror) or not error.errno
    reason = str(error.args[-1]) if is_unknown else os.strerror(error.errno or 0)
    return SettingsError(f"cannot listen on {listen}: {reason.lower()}")


def _bind_host(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of a host (L1). Raises OSError."""
    found = socket.getaddrinfo(
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
                _close(bound)
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


def _close(taken: Sequence[socket.socket]) -> None:
    for one in taken:
        one.close()
