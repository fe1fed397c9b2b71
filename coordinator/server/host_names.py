"""Names and addresses of hosts, as the system knows them; a look-up waits for the network."""

import socket
from collections.abc import Iterable
from ipaddress import ip_address, ip_interface

from coordinator.authentication.hba_addresses import IpAddress, IpInterface


class SystemHostNames:
    """See HostNames."""

    def name_of(self, address: IpAddress) -> str | None:
        """The name of an address, or None."""
        try:
            return socket.gethostbyaddr(str(address))[0]
        except OSError:
            return None

    def addresses_of(self, name: str) -> Iterable[IpAddress]:
        """The addresses of a name; none if it is unknown."""
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError:
            return ()
        return [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def own_interfaces() -> list[IpInterface]:
    """The addresses of this machine, with their networks."""
    import psutil

    found: list[IpInterface] = []
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.netmask:
                bits = ip_address(one.netmask)
                length = int(bits).bit_count()
                found.append(ip_interface(f"{one.address.partition('%')[0]}/{length}"))
    return found
