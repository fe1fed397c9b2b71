"""Connections that have not proved who they are, counted: few at once, and few of one address.

    connected ─▶ admit ─▶ Stranger ─▶ logged in, refused, gone ─▶ forget
                   └─ no place: the oldest silent one is turned away

INVARIANTS
  N4  one address takes a quarter of the places at most. When it has them all, its own oldest silent
      connection goes, so it shuts out neither others nor itself.
  N5  the Unix socket has places of its own: the health check and the administrator come in when
      the network is flooded.
  N6  a connection is silent while the server waits for it: for its bytes, or to tell it that its
      log-in has failed. One that the server is busy with is not turned away.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

_IPV6_PREFIX_BITS = 64
"""What one site has: who owns one address of it owns them all."""


class Stranger:
    """A connection without a session; the task that made it is the one that is cancelled."""

    def __init__(self, address: str | None) -> None:
        """`address` None: of the Unix socket."""
        self.site = _site(address)
        self.was_turned_away = False
        self._task = asyncio.current_task()
        self._silent = False

    @property
    def is_silent(self) -> bool:
        """See N6."""
        return self._silent

    @contextmanager
    def silence(self) -> Generator[None]:
        """The server waits for it in this block (N6)."""
        self._silent = True
        try:
            yield
        finally:
            self._silent = False

    def turn_away(self) -> None:
        """Make room for another one."""
        self.was_turned_away = True
        if self._task is not None:
            self._task.cancel()

    def caught(self) -> bool:
        """Whether a cancellation of its task came from here; it is over then."""
        if self.was_turned_away and self._task is not None:
            self._task.uncancel()
        return self.was_turned_away


class Strangers:
    """See the module. `places`: at once, for TCP and for the Unix socket."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._of_one = max(places // 4, 1)
        # Both by age: a dictionary keeps the order in which its keys came.
        self._by_site: dict[str | None, dict[Stranger, None]] = {}
        self._remote: dict[Stranger, None] = {}

    def admit(self, address: str | None) -> Stranger | None:
        """Count the connection of the current task; None: there are too many that are busy (N6)."""
        one = Stranger(address)
        of_site = self._by_site.get(one.site, {})
        if len(of_site) >= (self._places if one.site is None else self._of_one):
            goes = _oldest_silent(of_site)
        elif one.site is not None and len(self._remote) >= self._places:
            goes = _oldest_silent(self._remote)
        else:
            goes = one
        if goes is None:
            return None
        if goes is not one:
            self.forget(goes)
            goes.turn_away()
        self._by_site.setdefault(one.site, {})[one] = None
        if one.site is not None:
            self._remote[one] = None
        return one

    def forget(self, one: Stranger) -> None:
        """It has authenticated, has disconnected, or was turned away before."""
        of_site = self._by_site.get(one.site, {})
        of_site.pop(one, None)
        self._remote.pop(one, None)
        if not of_site:
            self._by_site.pop(one.site, None)


def _oldest_silent(strangers: dict[Stranger, None]) -> Stranger | None:
    return next((one for one in strangers if one.is_silent), None)


def _site(address: str | None) -> str | None:
    """The address, or the network of an IPv6 one."""
    if address is None:
        return None
    parsed = ip_address(address.partition("%")[0])
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(int(parsed) >> (128 - _IPV6_PREFIX_BITS))
