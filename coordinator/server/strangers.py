"""Connections that have not proved who they are, counted: few at once, and few of one address.

INVARIANTS
  N4  one address takes half of the places at most, so that it cannot shut out all others.
  N5  the Unix socket has places of its own: the health check and the administrator come in when
      the network is flooded.
"""

from collections import Counter
from ipaddress import IPv6Address, ip_address

_IPV6_PREFIX_BITS = 64
"""What one site has: who owns one address of it owns them all."""


class Strangers:
    """See the module. `places`: at once, for TCP and for the Unix socket."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._of_one = max(places // 2, 1)
        self._by_site: Counter[str | None] = Counter()
        self._remote = 0

    def admit(self, address: str | None) -> bool:
        """Count one more; False: there are too many. `address` None: of the Unix socket."""
        site = _site(address)
        if address is None:
            has_place = self._by_site[None] < self._places
        else:
            has_place = self._remote < self._places and self._by_site[site] < self._of_one
        if has_place:
            self._by_site[site] += 1
            self._remote += address is not None
        return has_place

    def forget(self, address: str | None) -> None:
        """One that was admitted has authenticated or disconnected."""
        site = _site(address)
        self._by_site[site] -= 1
        self._remote -= address is not None
        if not self._by_site[site]:
            del self._by_site[site]


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
