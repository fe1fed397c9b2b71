"""What decides who may connect: rules, maps of names, certificates, and what the stash keeps.

    hba_file, ident_file, ssl_* ──▶ Access ◀── AccessRecord (stash)
    SIGHUP ─▶ reload ───────────────┘ └─▶ rule, map, verifier, TLS for each new connection

    built-in rules     no password was set            once one was set (`first_password.py`)
    Unix socket        peer                           peer
    loopback           trust                          scram-sha-256
    other addresses    refused                        scram-sha-256

INVARIANTS
  B1  the built-in rules hold without `hba_file` only. A broken file refuses the start; later it is
      logged, and what was read before stays.
  B2  what is read is read whole: a connection sees rules, maps and certificates of one reload.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from coordinator.authentication.hba import HbaRule, HbaRules
from coordinator.authentication.ident_map import IdentMap
from coordinator.authentication.verifier import (
    ITERATIONS_DEFAULT,
    ScramVerifier,
    mock_verifier,
)
from coordinator.config import Settings, SettingsError
from coordinator.server.certificates import load_tls
from coordinator.server.first_password import AccessRecord
from coordinator.server.tls import ServerTls, TlsFacts
from sql.catalog.roles import Roles
from storage.threads import Threads

log = logging.getLogger("meridian.access")

P = ParamSpec("P")
R = TypeVar("R")

PASSWORD_THREADS: Final = 2
"""Passwords checked at once by the method `password`. Larger: more CPU for who guesses."""

_OPEN_RULES: Final = """\
local all all peer
host all all 127.0.0.0/8 trust
host all all ::1/128 trust
"""
_PASSWORD_RULES: Final = """\
local all all peer
host all all all scram-sha-256
"""


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """How a client is connected. `address` None: by the Unix socket, as the user `uid`."""

    address: str | None
    uid: int | None
    tls: TlsFacts | None
