"""Which notices a client is told, by `client_min_messages`."""

from typing import Final

from coordinator.pgwire.messages import Severity

_LEVELS: Final = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error",
)  # fmt: skip
_RANKS: Final = {name: rank for rank, name in enumerate(_LEVELS)}


def is_severe_enough(severity: Severity, least: str) -> bool:
    """Whether a notice is severe enough. `least`: the setting."""
    return _RANKS[severity.value.lower()] >= _RANKS[least]
