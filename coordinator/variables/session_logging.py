"""What a session writes into the server's log, as its settings say.

INVARIANTS
  G1  a session that writes nothing of statements and locks has None, so that asking costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from coordinator.variables.setting_values import parse_amount
from coordinator.variables.special_checks import milliseconds

OFF: Final = {
    "log_duration": "off",
    "log_lock_waits": "off",
    "log_min_duration_statement": "-1",
    "log_statement": "none",
}

_SEVERITIES: Final = (
    "debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
)  # fmt: skip
"""Of log_min_messages, in its order."""


@dataclass(frozen=True, slots=True)
class SessionLogging:
    """See the module."""

    kinds: str
    """log_statement: `none`, `ddl`, `mod` or `all`."""
    durations: bool
    """log_duration."""
    least_ms: int
    """log_min_duration_statement; -1: none."""
    parameter_bytes: int
    """log_parameter_max_length; -1: whole."""
    lock_waits_ms: int | None
    """deadlock_timeout, if waits for locks are logged; None: they are not."""

    @property
    def is_each(self) -> bool:
        """Whether any statement may have a record, however short it is."""
        return self.kinds != "none" or self.durations or self.least_ms == 0


def session_logging(get: Callable[[str], str]) -> SessionLogging | None:
    """By a session's settings; None: nothing (G1)."""
    values = {name: get(name) for name in OFF}
    if values == OFF:
        return None
    waits = values["log_lock_waits"] == "on"
    return SessionLogging(
        kinds=values["log_statement"],
        durations=values["log_duration"] == "on",
        least_ms=milliseconds(values["log_min_duration_statement"]),
        parameter_bytes=parameter_bytes(get("log_parameter_max_length")),
        lock_waits_ms=milliseconds(get("deadlock_timeout")) if waits else None,
    )


def parameter_bytes(shown: str) -> int:
    """The number behind log_parameter_max_length and its neighbour; -1: whole."""
    return round(parse_amount(shown, "B"))


def is_severe(severity: str, least: str) -> bool:
    """Whether a severity is at least as high as that of a setting."""
    return _SEVERITIES.index(severity) >= _SEVERITIES.index(least)
