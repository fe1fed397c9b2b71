"""The metrics of a server: a table of them, and their text for Prometheus.

    ObservedServer ─▶ METRICS, each with its value ─▶ families ─▶ the text of `/metrics`

INVARIANTS
  T1  a label has values of a fixed list: no name of a table, user or database, no text of a client.
  T2  a registry is made for each scrape: nothing is shared with other users of the library.
  T3  `docs/metrics.md` lists them all; `tests/session/monitoring/test_metrics.py` compares.

This runs in a thread: it may look at many files.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from coordinator.core.messages.catalog_changes import LeftBecause
from coordinator.core.observation import HOLD_KINDS, ObservedShard
from coordinator.core.sources.observed import ObservedSource
from coordinator.core.sources.running import SourceState
from coordinator.execution.views.shown import VIEW_STATES
from coordinator.memory_account import MemoryOwner
from coordinator.monitoring.health import HealthState
from coordinator.monitoring.observation import ObservedServer, ObservedServing
from coordinator.server_counters import ENGINE_NAMES, SECONDS_BOUNDS, STATEMENT_KINDS, Durations
from storage.shard import Fence

CONNECTION_STATES: Final = (
    "active", "idle", "idle in transaction", "idle in transaction (aborted)",
)  # fmt: skip

SQLSTATE_CLASSES: Final = (
    "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "22", "23", "24",
    "25", "26", "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44",
    "53", "54", "55", "57", "58", "72", "F0", "HV", "P0", "XX", "other",
)  # fmt: skip
"""PostgreSQL's classes of errors, and those that this server has besides."""

SCRATCH_FILES_MAX: Final = 10_000
"""Files that are looked at for their sizes. Larger: a scrape takes longer."""

_US: Final = 1_000_000

_Value: TypeAlias = float | Mapping[str, float] | Durations | Mapping[str, Durations]


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric. `values`: of its label, all that there may be (T1); `read`: its value now, by
    label if it has one.
    """

    name: str
    type: str
    unit: str
    text: str
    read: Callable[[ObservedServing], _Value]
    label: str = ""
    values: Sequence[str] = ()


def _by_class(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = dict.fromkeys(SQLSTATE_CLASSES, 0)
    for name, count in serving.counts.errors.items():
        found[name if name in found else "other"] += count
    return found


def _by_state(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = dict.fromkeys(CONNECTION_STATES, 0)
    for session in serving.sessions:
        found[session.state if session.state in found else "active"] += 1
    return found


def _conflicts(serving: ObservedServing) -> Mapping[str, float]:
    found = serving.commits
    return {
        "predicate": found.by_predicate,
        "table": found.by_table,
        "row": found.by_row,
        "key": found.by_key,
    }


def _locks(serving: ObservedServing) -> Mapping[str, float]:
    granted = [lock.granted for line in serving.timelines for lock in line.locks]
    return {"held": sum(granted), "waiting": len(granted) - sum(granted)}


def _shards(serving: ObservedServing) -> Iterator[ObservedShard]:
    return (shard for line in serving.timelines for shard in line.shards)


def _of_clock(serving: ObservedServing) -> Iterator[ObservedShard]:
    """The tables whose timestamps are times of day."""
    lines = (line for line in serving.timelines if not line.timeline.manual)
    return (shard for line in lines for shard in line.shards)


def _age(serving: ObservedServing, timestamps: Iterable[int]) -> float:
    """Seconds since the oldest of them; 0 if there is none."""
    return max((serving.now - ts) / _US for ts in [*timestamps, serving.now] if ts <= serving.now)


def _upper_behind(serving: ObservedServing) -> float:
    uppers = [line.upper for line in serving.timelines if not line.timeline.manual]
    return _age(serving, uppers)


def _tail_age(serving: ObservedServing) -> float:
    return _age(serving, [s.state.tail[0].ts for s in _of_clock(serving) if s.state.tail])


def _cut_age(serving: ObservedServing) -> float:
    behind = [s.state for s in _of_clock(serving) if s.state.tail]
    return _age(serving, [state.cut for state in behind if state.cut is not None])


def _hold_age(serving: ObservedServing) -> Mapping[str, float]:
    lines = [line for line in serving.timelines if not line.timeline.manual]
    holds = [hold for line in lines for hold in line.holds]
    found: dict[str, list[int]] = {kind: [] for kind in HOLD_KINDS}
    for hold in holds:
        found[hold.kind].append(hold.ts)
    return {kind: _age(serving, held) for kind, held in found.items()}


def _subscription_lag(serving: ObservedServing) -> float:
    lines = [line for line in serving.timelines if not line.timeline.manual]
    behind = [known for line in lines for known in line.subscriptions if known.is_behind]
    return _age(serving, [known.position for known in behind])


def _files(serving: ObservedServing) -> float:
    return sum(len(s.state.versions[-1].files) for s in _shards(serving) if s.state.versions)


def _file_bytes(serving: ObservedServing) -> float:
    newest = [s.state.versions[-1] for s in _shards(serving) if s.state.versions]
    return sum(live.file.size_bytes for version in newest for live in version.files.values())


def _fenced(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = {fence.value: 0 for fence in Fence}
    for shard in _shards(serving):
        if shard.state.fence is not None:
            found[shard.state.fence.value] += 1
    return found


def _sources(serving: ObservedServing) -> Iterator[tuple[ObservedSource, float]]:
    """Each with the seconds that it has been in its state."""
    for line in serving.timelines:
        for source in line.sources:
            yield source, max(0, serving.now - source.since) / _US


def _sources_by_state(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = {state.value: 0 for state in SourceState}
    for source, _ in _sources(serving):
        found[source.state] += 1
    return found


SOURCE_STOPS: Final = (SourceState.STALLED.value, SourceState.PAUSED.value,
                       SourceState.BROKEN.value)  # fmt: skip
"""States in which a source brings nothing. How far a source that runs is behind its upstream, no
reader tells."""


def _source_stop_age(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = dict.fromkeys(SOURCE_STOPS, 0)
    for source, seconds in _sources(serving):
        if source.state in found:
            found[source.state] = max(found[source.state], seconds)
    return found


def _views_by_state(serving: ObservedServing) -> Mapping[str, float]:
    found: dict[str, float] = dict.fromkeys(VIEW_STATES, 0)
    for view in serving.views:
        found[view.state] += 1
    return found


def _jvm_resident(serving: ObservedServing) -> float:
    """Of its process; 0 if there is none."""
    try:
        with open(f"/proc/{serving.jvm.pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


METRICS: Final = (
    MetricDefinition(
        "meridian_connections", "gauge", "", "sessions at this moment, by state",
        _by_state, "state", CONNECTION_STATES,
    ),
    MetricDefinition(
        "meridian_sessions_total", "counter", "", "sessions that have begun",
        lambda s: s.counts.sessions,
    ),
    MetricDefinition(
        "meridian_statements_total", "counter", "", "statements that ended without an error",
        lambda s: s.counts.statements, "kind", STATEMENT_KINDS,
    ),
    MetricDefinition(
        "meridian_errors_total", "counter", "", "errors of statements, by class of SQLSTATE",
        _by_class, "sqlstate_class", SQLSTATE_CLASSES,
    ),
    MetricDefinition(
        "meridian_rows_total", "counter", "", "rows returned or written, as command tags say",
        lambda s: s.counts.rows, "kind", STATEMENT_KINDS,
    ),
    MetricDefinition(
        "meridian_received_bytes_total", "counter", "bytes", "from clients, without TLS",
        lambda s: s.counts.bytes_received,
    ),
    MetricDefinition(
        "meridian_sent_bytes_total", "counter", "bytes", "to clients, without TLS",
        lambda s: s.counts.bytes_sent,
    ),
    MetricDefinition(
        "meridian_engine_seconds", "histogram", "seconds",
        "plans on an engine, without the time of a client that reads slowly",
        lambda s: s.counts.engines, "engine", ENGINE_NAMES,
    ),
    MetricDefinition(
        "meridian_commits_total", "counter", "", "transactions that were committed in groups",
        lambda s: s.commits.committed,
    ),
    MetricDefinition(
        "meridian_commit_groups_total", "counter", "", "these groups; the quotient is their size",
        lambda s: s.commits.groups,
    ),
    MetricDefinition(
        "meridian_validated_total", "counter", "", "commits whose reads were validated",
        lambda s: s.commits.validated,
    ),
    MetricDefinition(
        "meridian_conflicts_total", "counter", "", "commits that conflicted, by what decided it",
        _conflicts, "by", ("predicate", "table", "row", "key"),
    ),
    MetricDefinition(
        "meridian_retries_total", "counter", "", "statements that started again after a conflict",
        lambda s: s.counts.retries,
    ),
    MetricDefinition(
        "meridian_lock_waits_total", "counter", "", "requests for locks that had to wait",
        lambda s: s.lock_waits,
    ),
    MetricDefinition(
        "meridian_locks", "gauge", "", "locks at this moment",
        _locks, "state", ("held", "waiting"),
    ),
    MetricDefinition(
        "meridian_stash_seconds", "histogram", "seconds", "groups of commits in the stash",
        lambda s: s.counts.stash,
    ),
    MetricDefinition(
        "meridian_upper_behind_seconds", "gauge", "seconds",
        "the clock minus the least upper, which stands while nobody commits",
        _upper_behind,
    ),
    MetricDefinition(
        "meridian_commits_waiting", "gauge", "",
        "commits that wait for their turn or for the stash",
        lambda s: sum(t.commits_waiting for t in s.timelines if not t.timeline.manual),
    ),
    MetricDefinition(
        "meridian_tail_rows", "gauge", "", "rows in memory that are not in Delta tables yet",
        lambda s: sum(shard.state.tail_rows for shard in _shards(s)),
    ),
    MetricDefinition(
        "meridian_tail_bytes", "gauge", "bytes", "the same, in bytes",
        lambda s: sum(shard.state.tail_bytes for shard in _shards(s)),
    ),
    MetricDefinition(
        "meridian_tail_age_seconds", "gauge", "seconds",
        "age of the oldest commit that is not in a Delta table yet", _tail_age,
    ),
    MetricDefinition(
        "meridian_cut_age_seconds", "gauge", "seconds",
        "age of the oldest cut of a table that was written to since", _cut_age,
    ),
    MetricDefinition(
        "meridian_tables", "gauge", "", "tables",
        lambda s: sum(1 for _ in _shards(s)),
    ),
    MetricDefinition(
        "meridian_fenced_tables", "gauge", "", "tables that are fenced, by reason",
        _fenced, "reason", tuple(fence.value for fence in Fence),
    ),
    MetricDefinition("meridian_files", "gauge", "", "data files of the newest versions", _files),
    MetricDefinition("meridian_file_bytes", "gauge", "bytes", "the same, in bytes", _file_bytes),
    MetricDefinition(
        "meridian_transactions", "gauge", "", "open transactions",
        lambda s: sum(len(line.transactions) for line in s.timelines),
    ),
    MetricDefinition(
        "meridian_hold_age_seconds", "gauge", "seconds", "age of the oldest read hold, by kind",
        _hold_age, "kind", HOLD_KINDS,
    ),
    MetricDefinition(
        "meridian_subscriptions", "gauge", "", "open subscriptions",
        lambda s: sum(len(line.subscriptions) for line in s.timelines),
    ),
    MetricDefinition(
        "meridian_subscription_lag_seconds", "gauge", "seconds",
        "how far the slowest subscriber is behind the clock", _subscription_lag,
    ),
    MetricDefinition(
        "meridian_subscription_rows_total", "counter", "", "rows that subscribers were told",
        lambda s: s.counts.followed_rows,
    ),
    MetricDefinition(
        "meridian_sources", "gauge", "", "sources, by state",
        _sources_by_state, "state", tuple(state.value for state in SourceState),
    ),
    MetricDefinition(
        "meridian_source_stop_seconds", "gauge", "seconds",
        "for how long a source has been stalled, paused or broken; the longest",
        _source_stop_age, "state", SOURCE_STOPS,
    ),
    MetricDefinition(
        "meridian_source_rows_total", "counter", "",
        "rows that sources have brought, also before the start", lambda s: s.source_rows,
    ),
    MetricDefinition(
        "meridian_source_errors_total", "counter", "",
        "records that no column could take, also before the start", lambda s: s.source_errors,
    ),
    MetricDefinition(
        "meridian_views", "gauge", "", "materialized views, by state",
        _views_by_state, "state", VIEW_STATES,
    ),
    MetricDefinition(
        "meridian_view_behind_seconds", "gauge", "seconds",
        "for how long a view that follows its inputs has been behind; the longest",
        lambda s: max((v.behind_s for v in s.views if v.state == "behind"), default=0),
    ),
    MetricDefinition(
        "meridian_failing_views", "gauge", "",
        "views that are behind, and whose last attempt failed with an error",
        lambda s: sum(v.state == "behind" and v.has_failed for v in s.views),
    ),
    MetricDefinition(
        "meridian_view_commits_total", "counter", "",
        "groups of commits that views have followed, one for each view", lambda s: s.view_commits),
    MetricDefinition(
        "meridian_views_left_behind_total", "counter", "",
        "times that a commit has left a view behind, by cause",
        lambda s: {because.value: s.views_left.get(because, 0) for because in LeftBecause},
        "cause", tuple(because.value for because in LeftBecause)),
    MetricDefinition(
        "meridian_view_maintenance_seconds_total", "counter", "seconds",
        "time to compute how commits change views, while writers of their inputs wait",
        lambda s: s.view_work_s),
    MetricDefinition(
        "meridian_clock_jumps_total", "counter", "", "jumps of the clock that were not believed",
        lambda s: max(line.clock.jumps for line in s.timelines),
    ),
    MetricDefinition(
        "meridian_clock_doubted", "gauge", "", "1: the clock is not believed now",
        lambda s: max(line.clock.doubted for line in s.timelines),
    ),
    MetricDefinition(
        "meridian_loop_lag_seconds", "gauge", "seconds", "the event loop's last turn looked at",
        lambda s: s.lag_s,
    ),
    MetricDefinition(
        "meridian_loop_stalls_total", "counter", "", "times that the event loop stood for 100 ms",
        lambda s: s.stalls,
    ),
    MetricDefinition(
        "meridian_loop_longest_stall_seconds", "gauge", "seconds", "the longest of them",
        lambda s: s.longest_stall_s,
    ),
    MetricDefinition(
        "meridian_memory_bytes", "gauge", "bytes", "memory that is held for clients, by owner",
        lambda s: s.memory, "owner", tuple(owner.value for owner in MemoryOwner),
    ),
    MetricDefinition(
        "meridian_jvm_up", "gauge", "", "1: the JVM is ready",
        lambda s: s.jvm.alive,
    ),
    MetricDefinition(
        "meridian_jvm_starts_total", "counter", "", "starts of a JVM; all but the first: restarts",
        lambda s: s.jvm.starts,
    ),
    MetricDefinition(
        "meridian_jvm_heap_max_bytes", "gauge", "bytes", "the most that its heap may have",
        lambda s: s.jvm.heap_bytes,
    ),
    MetricDefinition(
        "meridian_jvm_resident_bytes", "gauge", "bytes", "memory of its process", _jvm_resident,
    ),
)  # fmt: skip

UP: Final = "meridian_health"
SCRATCH: Final = "meridian_scratch_bytes"
SCRATCH_ENGINES: Final = ("local", "spark")

ALWAYS: Final = (
    (UP, "gauge", "", "state", tuple(state.value for state in HealthState), "1: the present state"),
    (SCRATCH, "gauge", "bytes", "engine", SCRATCH_ENGINES, "spilled data and results in files"),
)
"""Metrics that are not of a server that serves: name, type, unit, label, its values, text."""


def rendered_metrics(observed: ObservedServer) -> bytes:
    """The text of `/metrics`; in a thread."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Observed(observed))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Observed(Collector):
    def __init__(self, observed: ObservedServer) -> None:
        self._observed = observed

    def collect(self) -> Iterable[Metric]:
        observed = self._observed
        state = GaugeMetricFamily(UP, ALWAYS[0][-1], labels=["state"])
        for one in HealthState:
            state.add_metric([one.value], one is observed.state)
        yield state
        serving = observed.serving
        if serving is None:
            return
        for metric in METRICS:
            yield _family(metric, metric.read(serving))
        if observed.scratch is not None:
            scratch = GaugeMetricFamily(SCRATCH, ALWAYS[1][-1], labels=["engine"])
            for name in SCRATCH_ENGINES:
                scratch.add_metric([name], _bytes_below(observed.scratch / name))
            yield scratch


def _family(metric: MetricDefinition, value: _Value) -> Metric:
    labels = [metric.label] if metric.label else []
    by_label = value if isinstance(value, Mapping) else {"": value}
    family: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    if metric.type == "histogram":
        family = HistogramMetricFamily(metric.name, metric.text, labels=labels)
    elif metric.type == "counter":
        family = CounterMetricFamily(metric.name, metric.text, labels=labels)
    else:
        family = GaugeMetricFamily(metric.name, metric.text, labels=labels)
    for name, each in by_label.items():
        assert not labels or name in metric.values, "T1: a label's values are a fixed list"
        where = [name] if labels else []
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(each, Durations), "a histogram is of durations"
            family.add_metric(where, _buckets(each), each.total_s)
        else:
            assert not isinstance(each, Durations), "durations are a histogram"
            family.add_metric(where, float(each))
    return family


def _buckets(durations: Durations) -> Sequence[tuple[str, float]]:
    """Cumulative, as Prometheus has them."""
    found: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*SECONDS_BOUNDS, None), durations.counts, strict=True):
        total += count
        found.append(("+Inf" if bound is None else str(bound), total))
    return found


def _bytes_below(folder: Path) -> float:
    """The sizes of the files of a folder, SCRATCH_FILES_MAX of them at most."""
    total = seen = 0
    for place, _, names in os.walk(folder):
        for name in names:
            seen += 1
            if seen > SCRATCH_FILES_MAX:
                return total
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue  # it is gone
    return total
