"""Convert isolation levels and exported snapshot ids to and from their text forms.

`SHOW transaction_isolation` prints `strict serializable`, .., or `bounded staleness 5s`; a snapshot
is named `<transaction>-<timestamp>-1`, in PostgreSQL's alphabet.
"""

import re
from functools import lru_cache
from typing import Final

from coordinator.core.messages import Isolation, TransactionId
from coordinator.variables.table import BOUNDED_STALENESS, milliseconds
from sql.errors import SqlError
from storage.types import Timestamp

_SNAPSHOT: Final = re.compile(r"([0-9A-F]{8,16})-([0-9A-F]{16})-1\Z")
_LEVELS: Final = {level.value: (level, None) for level in Isolation}


@lru_cache(maxsize=64)
def parse_isolation_level(shown: str) -> tuple[Isolation, int | None]:
    """The level that a setting names, and the bound of bounded staleness in microseconds."""
    if shown.startswith(BOUNDED_STALENESS):
        bound = milliseconds(shown.removeprefix(BOUNDED_STALENESS))
        return Isolation.BOUNDED_STALENESS, bound * 1000
    return _LEVELS[shown]


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
