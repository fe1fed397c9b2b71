"""Addresses of pg_hba.conf: networks, keywords and host names, and the clients that they match.

    all   samehost   samenet   192.0.2.0/24   192.0.2.0 255.255.255.0   host.example   .example

INVARIANTS
  A1  a network matches addresses of its own family only, under its mask, whole bits or not.
  A2  a host name matches if the client's address has that name, and that name has the address:
      whoever owns a reverse zone alone gets nowhere.

Numeric addresses are what getaddrinfo takes with AI_NUMERICHOST: `10.1` is 10.0.0.1. A scope is
ignored; it must be a number, since the names of interfaces are not known here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Final, Protocol, TypeAlias

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpInterface: TypeAlias = IPv4Interface | IPv6Interface

_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_SCOPE: Final = re.compile(r"[0-9]{1,10}")
_BITS: Final = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+")


class HostNames(Protocol):
    """Looks up host names; it waits for the network."""

    def name_of(self, address: IpAddress) -> str | None:
        """The name of an address, or None."""
        ...

    def addresses_of(self, name: str) -> Iterable[IpAddress]:
        """The addresses of a name; none if it is unknown."""
        ...


class AddressKind(Enum):
    """What an address field is."""

    ALL = "all"
    SAME_HOST = "samehost"
    SAME_NETWORK = "samenet"
    NETWORK = "network"
    HOST_NAME = "host name"


@dataclass(frozen=True, slots=True)
class HbaAddress:
    """An address field, with the mask of the next one. `network` and `mask`: of NETWORK; `name`: of
    HOST_NAME.
    """

    kind: AddressKind
    network: IpAddress | None = None
    mask: IpAddress | None = None
    name: str | None = None

    def holds(self, address: IpAddress) -> bool:
        """Whether a network holds an address (A1)."""
        assert self.network is not None, "a network has an address"
        assert self.mask is not None, "a network has a mask"
        if address.version != self.network.version:
            return False
        return (int(address) ^ int(self.network)) & int(self.mask) == 0

    def is_pattern_of(self, name: str) -> bool:
        """Whether a host name is this one, or ends with it if it begins with a dot."""
        assert self.name is not None, "a host name has a name"
        pattern, name = self.name.lower(), name.lower()
        return name.endswith(pattern) if pattern.startswith(".") else name == pattern


@dataclass(slots=True)
class ClientAddress:
    """Where a client comes from. Names are looked up once, and only if a rule asks for them."""

    address: IpAddress
    host_names: HostNames | None = None
    interfaces: Sequence[IpInterface] = ()
    _name: str | None = None
    _is_confirmed: bool | None = None

    def is_in(self, rule: HbaAddress) -> bool:
        """Whether a rule's address matches."""
        match rule.kind:
            case AddressKind.ALL:
                return True
            case AddressKind.SAME_HOST:
                return any(self.address == own.ip for own in self.interfaces)
            case AddressKind.SAME_NETWORK:
                return any(self._is_beside(own) for own in self.interfaces)
            case AddressKind.NETWORK:
                return rule.holds(self.address)
            case AddressKind.HOST_NAME:
                name = self._host_name()
                return name is not None and rule.is_pattern_of(name) and self._has_confirmed(name)

    def _is_beside(self, own: IpInterface) -> bool:
        network = HbaAddress(AddressKind.NETWORK, own.ip, own.network.netmask)
        return network.holds(self.address)

    def _host_name(self) -> str | None:
        if self._is_confirmed is None and self._name is None and self.host_names is not None:
            self._name = self.host_names.name_of(self.address)
            if self._name is None:
                self._is_confirmed = False
        return self._name

    def _has_confirmed(self, name: str) -> bool:
        if self._is_confirmed is None:
            assert self.host_names is not None, "somebody found the name"
            self._is_confirmed = self.address in self.host_names.addresses_of(name)
        return self._is_confirmed


def numeric_address(text: str) -> IpAddress | None:
    """The address that a text is; None for what may be a host name."""
    if ":" in text:
        address, percent, scope = text.partition("%")
        if percent and not _SCOPE.fullmatch(scope):
            return None
        try:
            return IPv6Address(address)
        except ValueError:
            return None
    parts = text.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    numbers = [_c_number(part) for part in parts]
    *leading, last = numbers
    if any(n is None or n > 255 for n in leading) or last is None:
        return None
    rest = 4 - len(leading)
    if last >= 1 << (8 * rest):
        return None
    value = last
    for place, number in enumerate(leading):
        value |= (number or 0) << (24 - 8 * place)
    return IPv4Address(value)


def _c_number(text: str) -> int | None:
    """A number as C reads it: with 0x hexadecimal, with 0 octal."""
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text[0] == "0":
        return int(text, 8) if set(text) <= set("01234567") else None
    return int(text) if len(text) < 20 else None


def mask_of_bits(text: str, version: int) -> IpAddress | None:
    """The mask of so many leading bits; None if the text is no such number."""
    bits = int(text) if _BITS.fullmatch(text) and len(text) < 20 else -1
    size = 32 if version == 4 else 128
    if not 0 <= bits <= size:
        return None
    value = ((1 << bits) - 1) << (size - bits)
    return IPv4Address(value) if version == 4 else IPv6Address(value)


def shown_address(address: IpAddress) -> str:
    """An address as PostgreSQL shows it: the last four bytes of some in IPv6 as in IPv4."""
    value = int(address)
    if address.version == 6 and (value >> 32 == 0xFFFF or (value >> 16 and not value >> 32)):
        prefix = "::ffff:" if value >> 32 else "::"
        return f"{prefix}{IPv4Address(value & 0xFFFFFFFF)}"
    return str(address)
