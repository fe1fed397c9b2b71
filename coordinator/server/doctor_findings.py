"""Findings of `meridian doctor`: what is wrong, judged from what was gathered; pure functions.

    process, answer, metrics, disks, check, log ─▶ Finding (rank, text) ─▶ sorted, worst first

Thresholds are those of `deploy/prometheus/alerts.yml`, where there is such an alert.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

Samples: TypeAlias = Mapping[tuple[str, str], float]
"""By a metric's name and the value of its label, which may be empty."""


class Rank(IntEnum):
    """How much it matters: nobody is served, a person is needed, or somebody should look."""

    DOWN = 1
    BROKEN = 2
    WATCH = 3


@dataclass(frozen=True, slots=True, order=True)
class DoctorFinding:
    """One thing that is wrong, and what to do about it."""

    rank: Rank
    text: str


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """A file system that the server needs. `what`: for which of its directories."""

    what: str
    total_bytes: int
    free_bytes: int
    free_inodes: int | None
    """None: it does not count them."""


FREE_BYTES_MIN: Final = 1 << 30
FREE_SHARE_MIN: Final = 0.05
FREE_INODES_MIN: Final = 1_000
UPPER_BEHIND_S: Final = 10
NEAR: Final = 0.9
"""Of a limit, so much is near."""
_LOG_LINES: Final = 3

_FOREIGN: Final = "see docs/operations.md, Foreign readers"
_LIMITS: Final[Sequence[tuple[str, str, float, Rank, str]]] = (
    ("meridian_fenced_tables", "damaged", 0, Rank.BROKEN,
     "{0:.0f} tables are fenced, as their files are damaged; troubles.txt names them"),
    ("meridian_fenced_tables", "unreadable", 0, Rank.BROKEN,
     "{0:.0f} tables are fenced, as their files cannot be read; troubles.txt names them"),
    ("meridian_fenced_tables", "foreign writer", 0, Rank.BROKEN,
     "{0:.0f} tables are fenced, as another program wrote to them; " + _FOREIGN),
    ("meridian_clock_doubted", "", 0, Rank.BROKEN,
     "the clock is not believed; set it right, then SELECT meridian.accept_clock()"),
    ("meridian_errors_total", "XX", 0, Rank.BROKEN,
     "{0:.0f} internal errors since the start; log.txt has their stacks"),
    ("meridian_tail_age_seconds", "", 900, Rank.BROKEN,
     "the tail grows: commits have not reached Delta tables for {0:.0f} s;"
     " can the warehouse be written?"),
    ("meridian_sources", "broken", 0, Rank.BROKEN,
     "{0:.0f} sources are broken; troubles.txt says why; ALTER SOURCE .. RESUME goes on"),
    ("meridian_source_stop_seconds", "stalled", 600, Rank.BROKEN,
     "a source has been stalled for {0:.0f} s; troubles.txt says why"),
    ("meridian_failing_views", "", 0, Rank.BROKEN,
     "{0:.0f} materialized views cannot be brought up to date; troubles.txt says why"),
    ("meridian_view_behind_seconds", "", 900, Rank.WATCH,
     "a materialized view has been behind its inputs for {0:.0f} s; troubles.txt names it"),
    ("meridian_hold_age_seconds", "transaction", 3_600, Rank.WATCH,
     "a transaction has held history for {0:.0f} s; see pg_stat_activity"),
    ("meridian_hold_age_seconds", "subscription", 3_600, Rank.WATCH,
     "a subscription has held history for {0:.0f} s; see meridian.subscriptions"),
    ("meridian_hold_age_seconds", "named", 3_600, Rank.WATCH,
     "a named hold has kept history for {0:.0f} s; see meridian.read_holds"),
    ("meridian_subscription_lag_seconds", "", 600, Rank.WATCH,
     "a subscriber is {0:.0f} s behind; see meridian.subscriptions"),
    ("meridian_loop_longest_stall_seconds", "", 1, Rank.WATCH,
     "the event loop once stood for {0:.1f} s; the log says where"),
    ("meridian_locks", "waiting", 0, Rank.WATCH,
     "{0:.0f} requests wait for locks; see pg_locks and pg_blocking_pids()"),
)  # fmt: skip
"""A metric, the value of its label, the number above which it is wrong, how much, what to say."""


def metric_samples(text: str) -> Samples:
    """The samples of the text of `/metrics`."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "le" not in sample.labels:
                found[sample.name, next(iter(sample.labels.values()), "")] = sample.value
    return found


def judge_metrics(samples: Samples) -> Iterator[DoctorFinding]:
    """What metrics say of a server that serves."""
    for name, label, limit, rank, text in _LIMITS:
        value = samples.get((name, label), 0.0)
        if value > limit:
            yield DoctorFinding(rank, text.format(value))
    waiting = samples.get(("meridian_commits_waiting", ""), 0.0)
    behind = samples.get(("meridian_upper_behind_seconds", ""), 0.0)
    # It stands while nobody commits, too.
    if waiting and behind > UPPER_BEHIND_S:
        text = (
            f"{waiting:.0f} commits wait, and the newest readable timestamp is {behind:.0f} s old:"
            " does the stash answer?"
        )
        yield DoctorFinding(Rank.BROKEN, text)
    if samples.get(("meridian_jvm_starts_total", "")) and not samples["meridian_jvm_up", ""]:
        text = "the JVM is dead, or still starts: queries that need Spark wait or fail"
        yield DoctorFinding(Rank.BROKEN, text)
    used = samples.get(("process_open_fds", ""), 0.0)
    allowed = samples.get(("process_max_fds", ""), 0.0)
    if allowed and used > NEAR * allowed:
        text = f"{used:.0f} of {allowed:.0f} file descriptors are in use; raise ulimit -n"
        yield DoctorFinding(Rank.BROKEN, text)


def judge_limits(samples: Samples, settings: Mapping[str, int]) -> Iterator[DoctorFinding]:
    """Connections and memory, near to what the server's settings allow."""
    states = [value for (name, _), value in samples.items() if name == "meridian_connections"]
    most = settings.get("connections_max")
    if most is not None and sum(states) >= NEAR * most:
        text = f"{sum(states):.0f} of connections_max = {most} sessions are open"
        yield DoctorFinding(Rank.WATCH, text)
    memory = settings.get("memory_max_mb")
    held = samples.get(("process_resident_memory_bytes", ""), 0.0)
    if memory is not None and held > NEAR * (memory << 20):
        text = f"the process has {held / 2**20:.0f} MiB of memory_max_mb = {memory}"
        yield DoctorFinding(Rank.WATCH, text)


def judge_disks(disks: Sequence[DiskSpace]) -> Iterator[DoctorFinding]:
    """File systems that are full, or nearly."""
    for disk in disks:
        free = f"{disk.free_bytes / 2**20:.0f} MiB of {disk.total_bytes / 2**30:.1f} GiB are free"
        if disk.free_bytes < FREE_BYTES_MIN or disk.free_bytes < FREE_SHARE_MIN * disk.total_bytes:
            rank = Rank.BROKEN if disk.free_bytes < FREE_BYTES_MIN else Rank.WATCH
            yield DoctorFinding(rank, f"the disk of {disk.what} is nearly full: {free}")
        if disk.free_inodes is not None and disk.free_inodes < FREE_INODES_MIN:
            text = f"the disk of {disk.what} has room for {disk.free_inodes} more files only"
            yield DoctorFinding(Rank.BROKEN, text)


def judge_check(text: str, *, is_clean: bool) -> Iterator[DoctorFinding]:
    """What `meridian check` has found."""
    if is_clean:
        return
    errors = [line for line in text.splitlines() if line.startswith("error: ")]
    said = errors[0] if errors else (text.strip().splitlines() or ["it said nothing"])[-1]
    more = f", and {len(errors) - 1} more in check.txt" if len(errors) > 1 else ""
    yield DoctorFinding(Rank.BROKEN, f"meridian check fails: {said}{more}")


_OURS: Final = re.compile(
    r"(?: (?:ERROR|CRITICAL) (?!meridian\.session\b))"
    r'|(?:"error_severity": ?"(?:ERROR|CRITICAL)"(?!.*"logger": ?"meridian\.session"))'
    r"|^meridian: "
)
"""Errors of the server itself, and not of what clients sent."""


def judge_log(text: str) -> Iterator[DoctorFinding]:
    """The newest errors of the log."""
    lines = [line for line in text.splitlines() if _OURS.search(line) is not None]
    for line in reversed(lines[-_LOG_LINES:]):
        yield DoctorFinding(Rank.WATCH, f"the log has: {line[:300]}")
