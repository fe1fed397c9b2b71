"""What may go wrong in a run, and how often: one value for each kind of weather.

INVARIANTS
  J1  everything that is drawn is drawn from the run's one random generator.
"""

import random
from dataclasses import dataclass, replace

from coordinator.core.settings import CoreSettings


@dataclass(frozen=True, slots=True)
class Odds:
    """Chances per call to stash or store, unless said otherwise."""

    crash: float = 0.0
    power: float = 0.0
    """Share of the crashes that take the whole machine, with all that is not durable."""
    lost_request: float = 0.0
    late: float = 0.0
    """Share of the lost requests that arrive after they have been given up."""
    lost_reply: float = 0.0
    fatal: float = 0.0
    """Per object created: its sync fails."""
    latency_ms_max: float = 6.0
    clock_step: float = 0.0
    clock_step_us: int = 400_000
    clock_jump_max_us: int = 10_800_000_000
    """Jumps ahead by more are not believed. Those by two hours are, by the default."""
    days: float = 0.0
    """Share of the troubles that send a clock days ahead or back for a while."""
    client_gone: float = 0.0
    """Per transaction: the client hangs up in the middle."""
    reply_lost: float = 0.0
    """Per transaction: the client does not hear how it ended."""
    trouble_ms: float = 0.0
    """Mean time between troubles of the nemesis; 0: none."""
    succession: float = 0.0
    """Share of the troubles that bring another coordinator or stop one for a while."""
    locks_lost: float = 0.0
    """Share of the others that take all row and table locks from a coordinator's sessions."""


CALM = Odds()

WEATHER = {
    "calm": CALM,
    "crashes": Odds(crash=0.012, power=0.5, lost_request=0.01, lost_reply=0.02, client_gone=0.03),
    "lossy": Odds(
        crash=0.002, power=0.5, lost_request=0.06, late=0.5, lost_reply=0.06, reply_lost=0.02
    ),
    "disks": Odds(
        crash=0.004, power=0.7, fatal=0.01, lost_request=0.02, lost_reply=0.02, trouble_ms=80.0
    ),
    "clocks": Odds(crash=0.006, power=0.3, clock_step=0.02, lost_reply=0.01, trouble_ms=100.0),
    "wrong days": Odds(
        crash=0.003,
        power=0.3,
        lost_request=0.005,
        lost_reply=0.01,
        clock_step=0.01,
        clock_jump_max_us=60_000_000,
        days=0.8,
        trouble_ms=40.0,
        succession=0.1,
    ),
    "mixed": Odds(
        crash=0.006,
        power=0.5,
        lost_request=0.02,
        late=0.4,
        lost_reply=0.03,
        fatal=0.002,
        clock_step=0.01,
        client_gone=0.02,
        reply_lost=0.01,
        trouble_ms=100.0,
        locks_lost=0.3,
    ),
    "successions": Odds(
        crash=0.002,
        lost_request=0.01,
        late=0.4,
        lost_reply=0.02,
        clock_step=0.003,
        client_gone=0.01,
        trouble_ms=40.0,
        succession=0.8,
        locks_lost=0.2,
    ),
    "locks": Odds(
        crash=0.001,
        power=0.5,
        lost_request=0.01,
        late=0.5,
        lost_reply=0.01,
        client_gone=0.04,
        reply_lost=0.01,
        trouble_ms=12.0,
        locks_lost=0.95,
    ),
}
"""By name; `calm` is for the time before and after, and for planted bugs that need no fault."""


def draw_settings(rng: random.Random) -> CoreSettings:
    """Limits of a run: small, so that cuts, ceilings and pruning happen all the time."""
    defaults = CoreSettings()
    settings = replace(
        defaults,
        ceiling_step_us=rng.choice((60_000, 200_000, 600_000)),
        history_us=rng.choice((50_000, 300_000, 60_000_000)),
        cut_age_us=rng.choice((15_000, 60_000, 120_000)),
        cut_commits_max=rng.choice((4, 25)),
        group_max=rng.choice((1, 3, 8)),
        compaction=replace(
            defaults.compaction, files_min=rng.choice((2, 3, 8)), deleted_share=rng.random()
        ),
        vacuum_age_us=rng.choice((50_000, 600_000_000)),
        notification_bytes_max=4_000,
        subscribe_progress_us=30_000,
        subscription_lag_us=1_500_000,
        source_retry_max_us=100_000,
        locks=rng.random() < 0.85,
        row_locks_max=rng.choice((3, 10_000, 10_000, 10_000)),
    )
    # Without a draw of its own: the other half goes as it went before groups waited.
    return replace(settings, commit_delay=int(1_000 * settings.compaction.deleted_share) % 2 == 0)
