"""The tables that a subtransaction has made or emptied: COPY .. (FREEZE) is for them alone.

Nothing is frozen here: rows of a transaction are seen by others when it commits, and not before.
What PostgreSQL refuses is refused all the same, so that nobody relies on what is not there.

INVARIANTS
  F1  a table counts where it was made or emptied, by how many savepoints stood there. RELEASE hands
      it to the subtransaction around; ROLLBACK TO forgets it.
"""

from collections.abc import Sequence

from coordinator.transaction.savepoints import Savepoint


class FreshTables:
    """See the module. One for a session's transaction, over its savepoints."""

    def __init__(self, savepoints: Sequence[Savepoint]) -> None:
        self._savepoints = savepoints
        self._made: set[tuple[int, int]] = set()

    def add(self, oid: int) -> None:
        """The subtransaction made or emptied it."""
        self._made.add((oid, len(self._savepoints)))

    def __contains__(self, oid: int) -> bool:
        return (oid, len(self._savepoints)) in self._made

    def released(self) -> None:
        """The savepoints that are gone were released."""
        self._made = {(oid, min(at, len(self._savepoints))) for oid, at in self._made}

    def undone(self) -> None:
        """What came behind the newest savepoint is gone."""
        self._made = {(oid, at) for oid, at in self._made if at < len(self._savepoints)}

    def clear(self) -> None:
        """The transaction is over."""
        self._made.clear()
