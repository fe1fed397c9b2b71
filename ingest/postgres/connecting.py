"""From a connection's options to an address: the secret is read, the host resolved, both judged.

INVARIANTS of `ingest/secrets.py`: X1, X2.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import Final

from ingest.postgres.libpq_link import PostgresAddress
from ingest.reader import ReaderFailure
from ingest.secrets import (
    EnvironmentSecret,
    FileSecret,
    SecretRules,
    allowed_address,
    read_connection_secret,
    secret_file,
)

_PORT: Final = 5432


async def postgres_address(
    options: Mapping[str, str], rules: SecretRules, environment: Mapping[str, str]
) -> PostgresAddress:
    """Where to connect. Raises 42501, 58P01, 08001."""
    host, port = options["host"], int(options.get("port", _PORT))
    password = None
    if "password env" in options:
        place = EnvironmentSecret(options["password env"])
        password = read_connection_secret(place, rules, environment)
    elif "password file" in options:
        file = FileSecret(options["password file"])
        password = read_connection_secret(file, rules, environment)
    ca_file = options.get("ca file")
    return PostgresAddress(
        host,
        options["database"],
        options["user"],
        port,
        password,
        ssl_mode=options.get("ssl mode", "prefer"),
        ssl_root_cert="" if ca_file is None else str(secret_file(ca_file, rules)),
        host_address=allowed_address(host, await _resolved(host, port), rules),
    )


async def _resolved(host: str, port: int) -> list[str]:
    """All addresses of a host; none of a path, which is judged by its name."""
    if host.startswith(("/", "@")):
        return []
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ReaderFailure("08001", f'host "{host}" is not known') from None
    return [str(entry[4][0]) for entry in found]
