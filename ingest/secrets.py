"""Where passwords of connections come from, and where connections may go: allow-lists; pure.

    FROM ENV 'name' ─▶ secret_names ─▶ environment      HOST 'h' ─▶ resolved ─▶ source_hosts

Who may create a connection could otherwise read any variable or file of the server, and reach
hosts that only the server reaches.

INVARIANTS
  X1  a secret is read when connecting, and is in nothing but the connection: no error has it.
  X2  a host is judged by every address that it resolves to, and connected to by one of these
      addresses, so that a second answer of the resolver changes nothing.

Not here: settings and resolving, which the caller brings.
"""

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ingest.reader import ReaderFailure

SECRET_BYTES_MAX: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class EnvironmentSecret:
    """FROM ENV: the name of a variable of the server."""

    name: str


@dataclass(frozen=True, slots=True)
class FileSecret:
    """FROM FILE: a path, from the folder of secrets on."""

    path: str


SecretPlace: TypeAlias = EnvironmentSecret | FileSecret


@dataclass(frozen=True, slots=True)
class SecretRules:
    """The settings `secret_names`, `secret_files_dir` and `source_hosts`."""

    secret_names: Collection[str] = ()
    """Names of variables; one may end in `*`."""
    secret_files_dir: str = ""
    source_hosts: Collection[str] = ("loopback",)
    """`loopback`, addresses, networks such as `10.0.0.0/8`, names of hosts, or `*`."""


def read_connection_secret(
    place: SecretPlace, rules: SecretRules, environment: Mapping[str, str]
) -> str:
    """The secret, or 42501, 58P01 (X1)."""
    match place:
        case EnvironmentSecret(name=name):
            if not any(_names(pattern, name) for pattern in rules.secret_names):
                message = f'environment variable "{name}" may not be read'
                raise ReaderFailure("42501", message, hint="Name it in secret_names.", broken=True)
            secret = environment.get(name)
            if secret is None:
                message = f'environment variable "{name}" is not set'
                raise ReaderFailure("58P01", message, broken=True)
            return secret
        case FileSecret(path=path):
            return _read_file(path, rules)


def _names(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def secret_file(path: str, rules: SecretRules) -> Path:
    """A file that may be read. Raises 42501."""
    if not rules.secret_files_dir:
        message = "files of secrets may not be read"
        hint = "Set secret_files_dir to their folder."
        raise ReaderFailure("42501", message, hint=hint, broken=True)
    root = Path(rules.secret_files_dir).resolve()
    # Links count as what they lead to.
    found = (root / path).resolve()
    if not found.is_relative_to(root) or found == root:
        message = f'file "{path}" is outside the folder of secrets'
        hint = "Only files below secret_files_dir may be read."
        raise ReaderFailure("42501", message, hint=hint, broken=True)
    return found


def _read_file(path: str, rules: SecretRules) -> str:
    found = secret_file(path, rules)
    try:
        with found.open("rb") as file:
            body = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        message = f'file "{path}" of secrets cannot be read: {error.strerror}'
        raise ReaderFailure("58P01", message, broken=True) from None
    if len(body) > SECRET_BYTES_MAX:
        message = f'file "{path}" of secrets has more than {SECRET_BYTES_MAX} bytes'
        raise ReaderFailure("54000", message, broken=True)
    try:
        return body.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        message = f'file "{path}" of secrets is not UTF-8'
        raise ReaderFailure("22021", message, broken=True) from None


def allowed_address(host: str, addresses: Sequence[str], rules: SecretRules) -> str:
    """The address to connect to, of those that `host` resolves to (X2). Raises 42501, 08001."""
    if host.startswith("/") or host.startswith("@"):
        message = f'host "{host}" is a socket of this machine'
        raise ReaderFailure("42501", message, hint="Only hosts on TCP are allowed.", broken=True)
    if not addresses:
        raise ReaderFailure("08001", f'host "{host}" is not known')
    for address in addresses:
        if not any(_allows(entry, host, address) for entry in rules.source_hosts):
            message = f'connections to host "{host}" are not allowed'
            hint = "Name it, or its network, in source_hosts."
            raise ReaderFailure("42501", message, hint=hint, broken=True)
    return addresses[0]


def _allows(entry: str, host: str, address: str) -> bool:
    if entry == "*" or entry.lower() == host.lower():
        return True
    try:
        # A zone of an address (fe80::1%eth0) is no part of networks.
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if entry == "loopback":
        return found.is_loopback
    try:
        return found in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
