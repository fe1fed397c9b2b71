"""Determine a transaction's level from its settings; read and write exported snapshot ids.

    transaction_isolation   consistency             level
    serializable            strict                  strict serializable
    serializable            serializable            serializable
    repeatable read         strict, serializable    repeatable read
    read [un]committed      strict, serializable    read committed
    any of them             bounded staleness 5s    bounded staleness; read only

INVARIANTS
  I1  a client that never sets `consistency` is strict wherever it asks for `serializable`.
  I2  under bounded staleness `transaction_isolation` shows `repeatable read`. A transaction that
      asks for `serializable` by itself is refused then.

A snapshot is named `<transaction>-<timestamp>-1`, in PostgreSQL's alphabet.
"""

import re
from functools import lru_cache
from typing import Final

from coordinator.core.messages.identities import Isolation, TransactionId
from coordinator.variables.special_checks import BOUNDED_STALENESS, STRICT, milliseconds
from sql.errors import SqlError
from storage.types import Timestamp

_SNAPSHOT: Final = re.compile(r"([0-9A-F]{8,16})-([0-9A-F]{16})-1\Z")
_LEVELS: Final = {
    "repeatable read": Isolation.REPEATABLE_READ,
    "read committed": Isolation.READ_COMMITTED,
    "read uncommitted": Isolation.READ_COMMITTED,
}


@lru_cache(maxsize=64)
def determine_level(isolation: str, consistency: str) -> tuple[Isolation, int | None]:
    """The level that both settings give, and the bound of bounded staleness in microseconds."""
    if consistency.startswith(BOUNDED_STALENESS):
        bound = milliseconds(consistency.removeprefix(BOUNDED_STALENESS))
        return Isolation.BOUNDED_STALENESS, bound * 1000
    if isolation == "serializable":
        strict = consistency == STRICT
        return Isolation.STRICT_SERIALIZABLE if strict else Isolation.SERIALIZABLE, None
    return _LEVELS[isolation], None


def snapshot_id(txn: TransactionId, ts: Timestamp) -> str:
    """What pg_export_snapshot() answers."""
    return f"{txn:08X}-{ts:016X}-1"


def unknown_snapshot(name: str) -> SqlError:
    """42704: nobody exports it, or not any more."""
    return SqlError("42704", f'snapshot "{name}" does not exist')


def parse_snapshot_id(name: str) -> tuple[TransactionId, Timestamp]:
    """The transaction that exports a snapshot, and its timestamp. Raises 22023, 42704."""
    if not name or name.strip("0123456789ABCDEF-"):
        raise SqlError("22023", f'invalid snapshot identifier: "{name}"')
    found = _SNAPSHOT.match(name)
    if found is None:
        raise unknown_snapshot(name)
    return TransactionId(int(found[1], 16)), Timestamp(int(found[2], 16))
