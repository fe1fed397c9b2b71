"""Whether this server leads and has recovered, in one word for health probes.

recovering ─┬─▶ ready ─▶ stopping
standing by ┘
"""

from enum import StrEnum


class HealthState(StrEnum):
    """The words, which are all that a probe is told."""

    RECOVERING = "recovering"
    STANDING_BY = "standing by"
    READY = "ready"
    STOPPING = "stopping"


class Health:
    """The state at this moment; the server sets it, probes read it."""

    def __init__(self, *, standby: bool = False) -> None:
        self.state = HealthState.STANDING_BY if standby else HealthState.RECOVERING

    @property
    def is_ready(self) -> bool:
        """Whether it leads and has recovered."""
        return self.state is HealthState.READY
