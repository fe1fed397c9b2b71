"""What a scrape reads of a server on the loop, as one value that a thread may take its time with.

    counters, sessions, timelines, memory, loop ── observe_server ──▶ ObservedServer ─▶ `metrics.py`

INVARIANTS
  S1  on the loop references and small numbers are copied, and nothing is summed: a table's state is
      a value (V3 of `storage/shard.py`), whose files and rows the thread counts.
  S2  a server that does not serve yet has nothing but its health.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from coordinator.core.messages.catalog_changes import LeftBecause
from coordinator.core.observation import ObservedTimeline
from coordinator.core.sources.observed import ObservedSource
from coordinator.core.validation import ValidationCounts
from coordinator.execution.context import Services
from coordinator.execution.views.shown import view_state
from coordinator.monitoring.health import Health, HealthState
from coordinator.monitoring.page_sessions import PageSessions
from coordinator.pgcatalog.activity import ObservedSession
from coordinator.server_counters import Durations


class Stalls(Protocol):
    """How often and for how long the loop stood."""

    @property
    def count(self) -> int:
        """How often."""
        ...

    @property
    def longest_s(self) -> float:
        """The longest one."""
        ...


class LoopObserver(Protocol):
    """Who watches the loop."""

    @property
    def stalls(self) -> Stalls:
        """Since the start."""
        ...

    @property
    def lag_s(self) -> float:
        """Of the last turn that was looked at."""
        ...


@dataclass(frozen=True, slots=True)
class ObservedJvm:
    """The JVM of Spark as it is."""

    alive: bool = False
    starts: int = 0
    pid: int | None = None
    heap_bytes: int = 0
    """The most that its heap may have."""


@dataclass(frozen=True, slots=True)
class ObservedCounts:
    """Copies of `ServerCounters`."""

    statements: Mapping[str, int]
    rows: Mapping[str, int]
    errors: Mapping[str, int]
    sessions: int
    bytes_received: int
    bytes_sent: int
    retries: int
    followed_rows: int
    stash: Durations
    engines: Mapping[str, Durations]


@dataclass(frozen=True, slots=True)
class ObservedView:
    """A materialized view. `behind_s`: for how long it has been behind."""

    name: str
    state: str
    behind_s: float = 0.0
    has_failed: bool = False
    """Whether the last try to bring it up to date has failed."""
    last_error: str | None = None
    tried: int = 0
    attached: int = 0


@dataclass(slots=True)
class SourceTotals:
    """What sources have brought, also those that were dropped since: it never goes back."""

    rows: int = 0
    errors: int = 0
    _seen: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    def add(self, sources: Sequence[ObservedSource]) -> None:
        """These are all that there are now."""
        now = {s.definition.oid: (sum(s.rows.values()), s.errors) for s in sources}
        for oid, (rows, errors) in now.items():
            before = self._seen.get(oid, (0, 0))
            self.rows += max(0, rows - before[0])
            self.errors += max(0, errors - before[1])
        self._seen = now


@dataclass(frozen=True, slots=True)
class ObservedServing:
    """A server that serves, at one moment; `now` in microseconds."""

    now: int
    counts: ObservedCounts
    sessions: Sequence[ObservedSession]
    timelines: Sequence[ObservedTimeline]
    commits: ValidationCounts
    """Of all timelines that there have been."""
    lock_waits: int
    """The same."""
    memory: Mapping[str, int]
    stalls: int
    longest_stall_s: float
    lag_s: float
    jvm: ObservedJvm
    source_rows: int
    """Of all sources that there have been."""
    source_errors: int
    """The same."""
    views: Sequence[ObservedView]
    view_commits: int
    """That views have followed; of all views that there have been."""
    views_left: Mapping[LeftBecause, int]
    """The same, that have left views behind."""
    view_work_s: float
    """How long it took to compute how commits change views."""


@dataclass(frozen=True, slots=True)
class ObservedServer:
    """What a scrape is made of. `serving`: None: it does not (S2)."""

    state: HealthState
    scratch: Path | None = None
    """The folder with the engines' files."""
    serving: ObservedServing | None = None


@dataclass(frozen=True, slots=True)
class ServedParts:
    """The parts of a server that serves."""

    services: Services
    loop: LoopObserver
    jvm: Callable[[], ObservedJvm]
    scratch: Path
    pages: PageSessions


@dataclass(slots=True)
class ServerObserver:
    """Observes a server; `served` comes when it serves."""

    health: Health
    served: ServedParts | None = None
    _last: dict[str, tuple[ValidationCounts, int]] = field(
        default_factory=dict[str, tuple[ValidationCounts, int]]
    )
    """By timeline, also of those that were dropped since: counters never go back."""
    _sources: SourceTotals = field(default_factory=SourceTotals)

    def observe(self) -> ObservedServer:
        """The server at this moment; on the loop (S1)."""
        served = self.served
        if served is None:
            return ObservedServer(self.health.state)
        services = served.services
        timelines = services.coordination.observe()
        self._last.update({t.timeline.place: (t.conflicts, t.lock_waits) for t in timelines})
        self._sources.add([source for line in timelines for source in line.sources])
        sessions = services.sessions
        followed = services.coordination.followed_views.all_counts
        serving = ObservedServing(
            now=services.clock.now(),
            counts=_counts(services),
            sessions=() if sessions is None else sessions.observe(),
            timelines=timelines,
            commits=_sum([counts for counts, _ in self._last.values()]),
            lock_waits=sum(waits for _, waits in self._last.values()),
            memory={owner.value: held for owner, held in services.memory.held.items()},
            stalls=served.loop.stalls.count,
            longest_stall_s=served.loop.stalls.longest_s,
            lag_s=served.loop.lag_s,
            jvm=served.jvm(),
            source_rows=self._sources.rows,
            source_errors=self._sources.errors,
            views=tuple(_views(services, asyncio.get_running_loop().time())),
            view_commits=sum(one.commits for one in followed),
            views_left=sum((one.left for one in followed), Counter[LeftBecause]()),
            view_work_s=services.catch_up.computed_s,
        )
        return ObservedServer(self.health.state, served.scratch, serving)


def _sum(counts: Sequence[ValidationCounts]) -> ValidationCounts:
    total = ValidationCounts()
    for one in counts:
        total.validated += one.validated
        total.by_predicate += one.by_predicate
        total.by_table += one.by_table
        total.by_key += one.by_key
        total.by_row += one.by_row
        total.avoided += one.avoided
        total.committed += one.committed
        total.groups += one.groups
    return total


def _views(services: Services, now: float) -> Iterator[ObservedView]:
    catalog = services.coordination.newest_catalog
    for oid, table in catalog.named_tables.materialized.items():
        known = services.catch_up.of(oid)
        since = now if known.behind_since is None else known.behind_since
        state = view_state(catalog, table)
        left = services.coordination.followed_views.counts(oid).last
        yield ObservedView(
            table.qualified, state, now - since, known.has_failed,
            services.catch_up.last_error(oid, state, left), known.tried, known.attached,
        )  # fmt: skip


def _counts(services: Services) -> ObservedCounts:
    counters = services.counters
    return ObservedCounts(
        statements=counters.statements,
        rows=counters.rows,
        errors=dict(counters.errors),
        sessions=counters.sessions,
        bytes_received=counters.bytes_received,
        bytes_sent=counters.bytes_sent,
        retries=counters.retries,
        followed_rows=counters.followed_rows,
        stash=counters.stash.copy(),
        engines={name: each.copy() for name, each in counters.engines.items()},
    )
