"""Check the target of ADVANCE TIMELINE for a timeline without a clock."""

from typing import Final

from coordinator.driver.coordination import RequestRefused
from sql.catalog.catalog import Timeline
from storage.types import Timestamp

POSITION_MAX: Final = Timestamp((1 << 53) - 1)
"""How far a timeline without a clock can be advanced: its numbers are milliseconds in Delta's log,
which readers turn into microseconds, and commits go on from there.
"""


def check_advance(timeline: Timeline, read_ts: Timestamp, ts: Timestamp) -> None:
    """Raises 55000, 22023."""
    if not timeline.manual:
        raise RequestRefused("55000", f'timeline "{timeline.name}" follows a clock')
    if ts <= read_ts:
        detail = f"It is at {read_ts}."
        raise RequestRefused("55000", f'timeline "{timeline.name}" is past {ts}', None, detail)
    if ts > POSITION_MAX:
        detail = f"It cannot be advanced beyond {POSITION_MAX}."
        message = "timestamp is too far in the future"
        raise RequestRefused("22023", message, None, detail)
