"""Give transactions their read timestamps: chosen, closed if need be, held.

    TakeSnapshot ─▶ determine ─┬─ Ready, Close ─▶ held ─▶ Snapshot
                               ├─ WaitForClock, a write on its way ─▶ waits; `wake` asks again
                               └─ too old, too far, too stale ─▶ Refused

INVARIANTS
  N1  a timestamp is given only when every write at or below it is known (R3 of `core/core.py`), and
      held in the same step (H2 of `read_holds.py`).
  N2  a transaction keeps its timestamp, except at read committed.
  N3  who asked for bounded staleness never waits.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from coordinator.core.catalog import StaleCatalog
from coordinator.core.effects import Reply
from coordinator.core.group_commit import GroupCommit
from coordinator.core.messages.identities import Isolation, RequestId, TransactionId
from coordinator.core.messages.replies import Refused, RefusedReason, Snapshot
from coordinator.core.messages.requests import TakeSnapshot
from coordinator.core.oracle import Oracle
from coordinator.core.read_holds import ReadHolds
from coordinator.core.settings import CoreSettings
from coordinator.core.stale_definitions import stale_refusal
from coordinator.core.timestamps import (
    Close,
    InputSince,
    Question,
    Ready,
    TooFar,
    TooOld,
    TooStale,
    WaitForClock,
    determine,
)
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Catalog, Timeline
from storage.types import Timestamp


class Snapshots:
    """See the module; `catalog_at` gives the catalog true at a timestamp."""

    def __init__(
        self,
        timeline: Timeline,
        settings: CoreSettings,
        oracle: Oracle,
        holds: ReadHolds,
        groups: GroupCommit,
        catalog_at: Callable[[Timestamp], Catalog],
    ) -> None:
        self._manual = timeline.manual
        self._bound_us = 0 if timeline.manual else settings.future_bound_us
        self._oracle = oracle
        self._holds = holds
        self._groups = groups
        self._catalog_at = catalog_at
        self._waiting: list[tuple[TakeSnapshot, Transaction]] = []

    def take(self, message: TakeSnapshot, txn: Transaction, now: Timestamp) -> list[Reply]:
        """The answer, or none yet: then it waits for the clock, a commit or a ceiling."""
        if message.as_of is None and _keeps(txn):
            assert txn.snapshot is not None, "N2: who keeps a snapshot has one"
            return [Reply(message.request, txn.snapshot)]
        if message.as_of is None and txn.staleness_us is None:
            # What `determine` would choose at every other level, without the reasons.
            return [self._given(message, txn, self._oracle.read_ts())]
        question = self.question(txn, now, as_of=message.as_of, at_least=message.at_least)
        choice = determine(question).choice
        match choice:
            case Ready(ts=ts):
                return [self._given(message, txn, ts)]
            case Close(ts=ts):
                return self._close(message, txn, ts)
            case WaitForClock():
                return self._wait(message, txn)
            case TooOld(since=since):
                detail = f"The oldest readable timestamp is {since}."
                return [_refuse(message.request, "72000", "timestamp is too old", detail)]
            case TooFar():
                detail = f"Now is {question.now}."
                text = "timestamp is too far in the future"
                return [_refuse(message.request, "22023", text, detail)]
            case TooStale():
                return [Reply(message.request, too_stale())]
            case _:
                assert_never(choice)

    def question(
        self,
        txn: Transaction,
        now: Timestamp,
        *,
        as_of: Timestamp | None,
        at_least: bool,
        inputs: Sequence[InputSince] = (),
    ) -> Question:
        """All that the choice depends on."""
        read_ts = self._oracle.read_ts()
        own = txn.snapshot.ts if txn.snapshot is not None and _keeps(txn) else None
        return Question(
            since=self._holds.since,
            read_ts=read_ts,
            now=read_ts if self._manual else now,
            bound_us=self._bound_us,
            isolation=txn.isolation,
            as_of=as_of,
            at_least=at_least,
            own=own,
            staleness_us=txn.staleness_us,
            closable=self._closable(now),
            inputs=tuple(inputs),
        )

    def wake(self, now: Timestamp) -> list[Reply]:
        """Ask again for those who wait."""
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, []
        return [reply for message, txn in waiting for reply in self.take(message, txn, now)]

    def forget(self, txn: TransactionId) -> None:
        """A transaction is over: it waits no more."""
        if self._waiting:
            self._waiting = [entry for entry in self._waiting if entry[1].id != txn]

    def hold(self, txn: Transaction, ts: Timestamp) -> None:
        """Keep `ts` readable until the transaction ends (H2 of `read_holds.py`)."""
        if ts not in txn.timestamps:
            self._holds.acquire(txn.id, ts)
            txn.timestamps.add(ts)

    def close(self, ts: Timestamp, now: Timestamp) -> None:
        """Close timestamps up to `ts`, as far as that waits for nobody; the ceiling follows."""
        self._oracle.ensure_at_least(min(ts, self._closable(now)))

    def _closable(self, now: Timestamp) -> Timestamp:
        """The newest timestamp that can be closed without waiting for a commit or a ceiling."""
        if self._manual:
            return self._oracle.read_ts()
        pending = self._groups.pending_ts
        newest = now if pending is None else min(now, Timestamp(pending - 1))
        return min(newest, Timestamp(self._oracle.ceiling - 1))

    def _close(self, message: TakeSnapshot, txn: Transaction, ts: Timestamp) -> list[Reply]:
        pending = self._groups.pending_ts
        if (pending is not None and pending <= ts) or not self._oracle.ensure_at_least(ts):
            if txn.staleness_us is not None and message.as_of is None:
                return [Reply(message.request, too_stale())]
            return self._wait(message, txn)
        return [self._given(message, txn, ts)]

    def _wait(self, message: TakeSnapshot, txn: Transaction) -> list[Reply]:
        self._waiting.append((message, txn))
        return []

    def _given(self, message: TakeSnapshot, txn: Transaction, ts: Timestamp) -> Reply:
        self.hold(txn, ts)
        catalog = self._catalog_at(ts)
        if message.as_of is not None:
            return Reply(message.request, Snapshot(ts, catalog))
        try:
            return Reply(message.request, txn.take_snapshot(ts, catalog))
        except StaleCatalog as error:
            return Reply(message.request, stale_refusal(str(error)))


def _keeps(txn: Transaction) -> bool:
    """True if the transaction has a timestamp that its next statement reads at, too (N2)."""
    return txn.snapshot is not None and txn.isolation is not Isolation.READ_COMMITTED


def too_stale() -> Refused:
    """40001: the bound of bounded staleness cannot be met without waiting (N3)."""
    return Refused(
        RefusedReason.OTHER,
        "40001",
        "could not read within the staleness bound",
        "Newer data cannot be read without waiting for a commit on its way.",
    )


def _refuse(request: RequestId, sqlstate: str, message: str, detail: str) -> Reply:
    return Reply(request, Refused(RefusedReason.OTHER, sqlstate, message, detail))
