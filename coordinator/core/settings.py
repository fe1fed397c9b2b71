"""Limits of the core. Defaults are for one node; tests and simulations choose their own."""

from dataclasses import dataclass, field

from storage.delta.compaction_plan import CompactionLimits


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """All times in microseconds. What a larger value costs stands beside each."""

    ceiling_step_us: int = 2_000_000
    """Larger: fewer durable writes for timestamps. Smaller: less run-ahead of time after a crash.
    """

    history_us: int = 3_600_000_000
    """How far back AS OF reaches. Larger: more versions in memory."""

    future_bound_us: int = 10_000_000
    """How far ahead of the clock AS OF may ask, and wait."""

    cut_age_us: int = 5_000_000
    """Largest age of a commit that Delta does not have yet. Smaller: more and smaller files."""

    cut_bytes_max: int = 32 << 20
    """Bytes in the tail that force a cut. Larger: more memory, slower scans of the tail."""

    cut_commits_max: int = 2_000
    """Commits in one shard's tail that force a cut; every scan walks the tail."""

    locks: bool = True
    """Whether sessions wait for the tables and rows of others. Without, validation alone decides:
    answers are the same, but more transactions are refused (K6 of `locking`)."""

    row_locks_max: int = 10_000
    """Rows that statements of one transaction lock because they change them. Larger: a longer stall
    of the loop (some microseconds a row), and more memory. Beyond, nobody waits for further rows,
    and validation decides."""

    queue_max: int = 10_000
    """Transactions waiting to commit. At the limit a commit is refused with 53000."""

    notification_bytes_max: int = 64 << 20
    """Notifications that listening sessions have not taken. At the limit the commit of a NOTIFY is
    refused with 54000. Larger: more memory while a session sits in a transaction."""

    subscribe_progress_us: int = 1_000_000
    """Between two closings of time for subscribers that ask how far it has come. Smaller: more
    wake-ups. Larger: an idle subscriber can resume only from further back."""

    subscribe_compare_us: int = 1_000_000
    """Between two looks at a query whose answers are compared. Smaller: each of its subscribers
    has an engine compute more often. Larger: more of its states are skipped."""

    subscription_lag_us: int | None = None
    """How far a subscriber may be behind before it is ended with 53400; None: as far as its table
    keeps history. Larger: slow readers keep more files and versions."""

    source_retry_max_us: int = 30_000_000
    """Between two attempts of a source whose upstream does not answer. Larger: it goes on later."""

    view_budget_us: int = 50_000
    """How long a commit waits for the maintenance of views over its tables. Beyond, they are left
    behind. Larger: views stay exact that cost more, and writes of their inputs wait longer."""

    view_delta_rows_max: int = 10_000
    """Rows of inputs that a group may change and views are still maintained. Beyond, they are left
    behind at once. Larger: longer stalls of the loop."""

    compaction: CompactionLimits = field(default_factory=CompactionLimits)
    """Which files are rewritten by themselves."""

    vacuum_age_us: int = 600_000_000
    """Between two looks for files to delete in a table that is written to."""

    group_bytes_max: int = 8 << 20
    """Bytes that close a group; one transaction may be larger. Larger: longer stash transactions.
    """

    commit_delay: bool = True
    """Whether a group waits a moment for those who commit at the same time (`commit_delay.py`).
    Without: commits cost up to twice as much where many commit."""

    group_max: int = 1_000
    """Transactions in one group commit. Larger: longer stash transactions."""
