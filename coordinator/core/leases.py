"""Write leases: a statement that keeps losing gets a table for itself, so that it always finishes.

INVARIANTS
  L1  a table has at most one holder; only the holder's commits may write it meanwhile.
  L2  leases are asked for all at once, before the snapshot, by statements that retry by themselves:
      a holder waits for nobody, so there is no deadlock.
  L3  granted in the order of asking; who waits is not overtaken on any table he wants.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.core.messages import RequestId, TransactionId


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: RequestId
    txn: TransactionId
    tables: frozenset[int]


class WriteLeases:
    """Who holds which table (by oid), and who waits."""

    def __init__(self) -> None:
        self._holders: dict[int, TransactionId] = {}
        self._waiting: list[_Waiting] = []

    def ask(self, request: RequestId, txn: TransactionId, tables: Iterable[int]) -> None:
        """Stand in line (L3); `grant` answers."""
        self._waiting.append(_Waiting(request, txn, frozenset(tables)))

    def grant(self, busy: frozenset[int]) -> list[RequestId]:
        """Give leases that have become free; `busy`: tables that a commit in flight writes."""
        taken = set(self._holders) | busy
        granted: list[RequestId] = []
        still: list[_Waiting] = []
        for waiting in self._waiting:
            if taken.isdisjoint(waiting.tables):
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

    def blocks(self, txn: TransactionId, tables: Iterable[int]) -> bool:
        """True if somebody else holds one of these tables (L1)."""
        return bool(self._holders) and any(self._holders.get(table, txn) != txn for table in tables)
