"""Write leases: a statement that keeps losing conflicts gets tables for itself, so that it ends.

INVARIANTS
  L1  a table has at most one holder; only the holder's commits may write or alter it meanwhile.
  L2  leases are asked for all at once, before the snapshot, by statements that retry by themselves:
      a holder waits for nobody, so there is no deadlock. Who turns out to write more than it holds
      gives everything back before its commit waits.
  L3  one line for leases and commits, by ticket: a lease waits for commits that queued before it,
      a commit waits for leases that were asked for before it. Nobody starves.
  L4  a lease waits for each change of definitions ahead of it, whatever that changes: a statement
      that is bound before it would be refused again. But not for one that waits for a lease itself:
      it refuses nobody yet, and its holder may take long.

Not here: DDL of the tables of other timelines. It commits in the system timeline, and leases of
those tables are in their own: DDL may pass a holder, who is refused and begins again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from coordinator.core.messages.identities import RequestId, TransactionId


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: RequestId
    txn: TransactionId
    tables: frozenset[int]
    ticket: int


class WriteLeases:
    """Who holds which table (by oid), and who waits."""

    def __init__(self) -> None:
        self._holders: dict[int, TransactionId] = {}
        self._waiting: list[_Waiting] = []
        self._tickets = 0

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody stands in line."""
        return bool(self._waiting)

    def ticket(self) -> int:
        """The next place in the line (L3)."""
        self._tickets += 1
        return self._tickets

    def ask(self, request: RequestId, txn: TransactionId, tables: Iterable[int]) -> None:
        """Stand in line (L3); `grant` answers."""
        self._waiting.append(_Waiting(request, txn, frozenset(tables), self.ticket()))

    def grant(self, is_busy: Callable[[frozenset[int], int], bool]) -> list[RequestId]:
        """Give free leases; `is_busy(tables, ticket)`: whether commits ahead of a ticket write
        or alter these tables, or change other definitions (L4).
        """
        if not self._waiting:
            return []
        taken = set(self._holders)
        granted: list[RequestId] = []
        still: list[_Waiting] = []
        for waiting in self._waiting:
            if taken.isdisjoint(waiting.tables) and not is_busy(waiting.tables, waiting.ticket):
                self._holders.update(dict.fromkeys(waiting.tables, waiting.txn))
                granted.append(waiting.request)
            else:
                still.append(waiting)
            taken |= waiting.tables
        self._waiting = still
        return granted

    def release(self, txn: TransactionId) -> None:
        """Drop what a transaction holds or waits for; it may be nothing."""
        if self._holders:
            self._holders = {table: held for table, held in self._holders.items() if held != txn}
        if self._waiting:
            self._waiting = [waiting for waiting in self._waiting if waiting.txn != txn]

    def settle(self, txn: TransactionId, tables: Iterable[int]) -> None:
        """A transaction is to commit and writes these tables (L2)."""
        held = {table for table, holder in self._holders.items() if holder == txn}
        if held and not held.issuperset(tables):
            self.release(txn)

    def blocks(self, txn: TransactionId, tables: Iterable[int], ticket: int) -> bool:
        """True if somebody else holds one of these tables (L1) or is ahead in the line (L3)."""
        if not self._holders and not self._waiting:
            return False
        others = {table for table in tables if self._holders.get(table) != txn}
        if any(table in self._holders for table in others):
            return True
        return any(
            waiting.ticket < ticket and not others.isdisjoint(waiting.tables)
            for waiting in self._waiting
        )
