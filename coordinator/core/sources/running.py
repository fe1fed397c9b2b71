"""The states of the sources that a coordinator runs.

    idle ──a table──▶ starting ─[─▶ snapshotting ─]─▶ running ◀─retry─▶ stalled
      ▲                  ▲                               │
      └── no table       └──────────── RESUME ────────── paused, broken (only a person goes on)

While it runs, one batch at a time is pulled, prepared and committed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from coordinator.core.messages.identities import RequestId, TransactionId
from coordinator.core.sources.bad_records import CountedErrors
from coordinator.core.sources.completions import AsideCopied
from coordinator.core.sources.leftovers import Leftovers
from coordinator.core.sources.records import NEVER, Leftover, SourceRecord
from coordinator.core.sources.retries import retry_pause_us
from ingest.reader import Position
from sql.catalog.catalog import Table
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.types import Timestamp


class SourceState(StrEnum):
    """See the module."""

    IDLE = "idle"
    STARTING = "starting"
    SNAPSHOTTING = "snapshotting"
    RUNNING = "running"
    STALLED = "stalled"
    PAUSED = "paused"
    BROKEN = "broken"


STANDING: Final = (SourceState.PAUSED, SourceState.BROKEN)
"""Only a person makes a source in these go on, so nobody waits for it any longer."""


class BatchStage(StrEnum):
    """What becomes of the batch at hand."""

    NONE = "none"
    PULLING = "pulling"
    PREPARING = "preparing"
    COMMITTING = "committing"


@dataclass(slots=True)
class AsideState:
    """A copy beside the source (`aside.py`). `reason`: why the last try has failed."""

    attempt: int = 0
    asked: bool = False
    copied: AsideCopied | None = None
    staging: int = 0
    """As of `RunningSource`."""
    failures: int = 0
    retry_at: Timestamp = NEVER
    reason: str = ""

    def begin_attempt(self) -> None:
        """Nothing that was asked for is waited for any more."""
        self.attempt += 1
        self.asked, self.copied, self.staging = False, None, 0

    def fail(self, reason: str, now: Timestamp, longest_us: int) -> None:
        """It is tried again: later after each failure."""
        self.begin_attempt()
        self.reason, self.failures = reason, self.failures + 1
        self.retry_at = Timestamp(now + retry_pause_us(self.failures, longest_us))


@dataclass(slots=True)
class RunningSource:
    """One source. `fed`: its tables and that of its errors, as the catalog has them."""

    definition: SourceDefinition
    connection: ConnectionDefinition | None
    fed: tuple[Table, ...]
    record: SourceRecord | None
    since: Timestamp
    state: SourceState = SourceState.IDLE
    stage: BatchStage = BatchStage.NONE
    attempt: int = 0
    failures: int = 0
    retry_at: Timestamp = NEVER
    code: str = ""
    reason: str = ""
    hint: str = ""
    place: str = ""
    """Of the record that it is broken at (SKIP RECORD), as JSON."""
    newest: Position = field(default_factory=dict[str, int])
    """Where upstream's log ended when it was looked at."""
    waiting: str = ""
    """What it waits for before it pulls; empty: nothing."""
    read_to: Position = field(default_factory=dict[str, int])
    """What may be acknowledged (F3): it is committed and readable, or nothing of ours lies up to
    there."""
    acknowledging: Position | None = None
    pulled_errors: int = 0
    """Bad records of the batch at hand, as it was pulled."""
    has_parts: bool = False
    """Parts of an upstream transaction are prepared, and it goes on."""
    staging: int = 0
    """Names what may stage files for a commit that has not come; 0: nothing."""
    counted: CountedErrors = field(default_factory=CountedErrors)
    aside: AsideState = field(default_factory=AsideState)
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of upstream, as the reader that is open knows it: kept with the next commit."""
    awaiting: list[RequestId] = field(default_factory=list[RequestId])
    """Who waits for tables to be loaded (`loading.py`)."""
    acknowledged: Position = field(default_factory=dict[str, int])

    @property
    def holder(self) -> TransactionId:
        """By which it holds a timestamp; no transaction's."""
        return TransactionId(-self.definition.oid)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables with rows of the upstream's."""
        return tuple([t for t in self.fed if t.feed is not None and t.feed.reference])

    def enter(self, state: SourceState, now: Timestamp) -> None:
        """Be in another state; the old one's reason is over."""
        if state is not self.state:
            self.state, self.since = state, now
        self.code = self.reason = self.hint = self.waiting = self.place = ""

    def begin_attempt(self) -> None:
        """Nothing that was asked for is waited for any more."""
        self.attempt += 1
        self.end_batch()
        self.acknowledging = None

    def end_batch(self) -> None:
        """The batch at hand is committed, or nothing becomes of it."""
        self.stage, self.has_parts, self.staging = BatchStage.NONE, False, 0

    def retry_after(self, now: Timestamp, longest_us: int) -> None:
        """Choose when it is tried again: later after each failure."""
        self.failures += 1
        self.retry_at = Timestamp(now + retry_pause_us(self.failures, longest_us))


@dataclass(slots=True)
class AwaitedPosition:
    """How far a source has to come for somebody. `attempt`: the one that was asked; 0: none."""

    attempt: int = 0
    position: Position | None = None
    failure: str = ""
    not_before: Timestamp = NEVER


@dataclass(slots=True)
class RecencyWait:
    """Who waits for upstreams, by their sources that are not there yet (`recency.py`)."""

    deadline: Timestamp
    timeout_us: int
    left: dict[int, AwaitedPosition]


class RunningSources:
    """All sources of a timeline. `changed`: the catalog is to be looked at."""

    def __init__(
        self,
        recovered: Mapping[int, SourceRecord],
        leftovers: Iterable[Leftover],
        *,
        runs: bool,
    ) -> None:
        self._recovered = dict(recovered)
        self.leftovers = Leftovers(leftovers if runs else ())
        self._known: dict[int, RunningSource] = {}
        self.waits: dict[RequestId, RecencyWait] = {}
        self.runs = runs
        self.changed = runs
        self._stagings = 0

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[RunningSource]:
        return iter(list(self._known.values()))

    def next_staging(self) -> int:
        """Something begins that may stage files; its name is greater than all before."""
        self._stagings += 1
        return self._stagings

    def stagings(self) -> Collection[int]:
        """What may have staged files that a commit is still to name."""
        found = (
            one for known in self._known.values() for one in (known.staging, known.aside.staging)
        )
        return [one for one in found if one]

    def get(self, oid: int) -> RunningSource | None:
        """The source with this oid, if it is known."""
        return self._known.get(oid)

    def loaded_since(self, oid: int, table: int) -> Timestamp | None:
        """Since when a table of the source has all rows; None if it has not."""
        known = self._known.get(oid)
        record = self._recovered.get(oid) if known is None else known.record
        return None if record is None else record.loaded.get(table)

    def add(
        self,
        definition: SourceDefinition,
        connection: ConnectionDefinition | None,
        fed: tuple[Table, ...],
        now: Timestamp,
    ) -> RunningSource:
        """Another one, with the record that a start has found."""
        record = self._recovered.pop(definition.oid, None)
        made = RunningSource(definition, connection, fed, record, now)
        self._known[definition.oid] = made
        return made

    def remove(self, oid: int) -> None:
        """It is dropped."""
        del self._known[oid]
