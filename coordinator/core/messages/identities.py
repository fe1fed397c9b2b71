"""Names of requests, transactions and connections, and the isolation levels."""

from enum import StrEnum
from typing import Final, NewType

RequestId = NewType("RequestId", int)


TransactionId = NewType("TransactionId", int)


ConnectionId = NewType("ConnectionId", int)


class Isolation(StrEnum):
    """Isolation levels, as EXPLAIN TIMESTAMP names them; settings choose one (`isolation.py`)."""

    STRICT_SERIALIZABLE = "strict serializable"
    SERIALIZABLE = "serializable"
    """One total order, but reads may lag behind real time."""
    REPEATABLE_READ = "repeatable read"
    """Snapshot isolation: of two who delete or replace one row, the first committer wins."""
    READ_COMMITTED = "read committed"
    """Every TakeSnapshot takes a timestamp of its own."""
    BOUNDED_STALENESS = "bounded staleness"
    """Read only, never waits; 40001 if the bound cannot be met."""


BEHIND_REAL_TIME: Final = frozenset({Isolation.SERIALIZABLE, Isolation.BOUNDED_STALENESS})
"""Where a read may miss what was acknowledged before it: nobody asks whether we still lead."""
