"""Tables that the current subtransaction has created or truncated, for COPY .. (FREEZE).

Meridian freezes nothing: others see rows of a transaction when it commits, and not before. COPY ..
(FREEZE) is nevertheless refused where PostgreSQL refuses it, so that no client relies on it.

INVARIANTS
  F1  a table is recorded with the number of savepoints that were open when it was created or
      truncated. RELEASE hands it to the enclosing subtransaction; ROLLBACK TO forgets it.
"""

from collections.abc import Sequence

from coordinator.transaction.savepoints import Savepoint


class NewTables:
    """See the module. One for a session's transaction, over its savepoints."""

    def __init__(self, savepoints: Sequence[Savepoint]) -> None:
        self._savepoints = savepoints
        self._made: set[tuple[int, int]] = set()

    def add(self, oid: int) -> None:
        """The current subtransaction has created or truncated this table."""
        self._made.add((oid, len(self._savepoints)))

    def __contains__(self, oid: int) -> bool:
        return (oid, len(self._savepoints)) in self._made

    def released(self) -> None:
        """Savepoints have been released (F1)."""
        self._made = {(oid, min(at, len(self._savepoints))) for oid, at in self._made}

    def undone(self) -> None:
        """The newest savepoint was rolled back to: forget the tables recorded after it (F1)."""
        self._made = {(oid, at) for oid, at in self._made if at < len(self._savepoints)}

    def clear(self) -> None:
        """The transaction is over."""
        self._made.clear()
