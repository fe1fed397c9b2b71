"""Apply changes of timelines and read holds to the parts of a catalog (K2 of `catalog.py`)."""

from collections.abc import Mapping

from coordinator.core.messages.catalog_changes import (
    PutReadHold,
    PutTimeline,
    RemoveReadHold,
    RemoveTimeline,
)
from sql.catalog.catalog import ReadHold, Table, Timeline


def apply_time_change(
    timelines: dict[str, Timeline],
    tables: Mapping[tuple[str, str], Table],
    holds: dict[str, ReadHold],
    change: PutTimeline | RemoveTimeline | PutReadHold | RemoveReadHold,
) -> str | None:
    """Apply one, or say why it does not fit."""
    match change:
        case PutTimeline(timeline=timeline):
            if timeline.name in timelines:
                return f'timeline "{timeline.name}" already exists'
            timelines[timeline.name] = timeline
        case RemoveTimeline(name=name):
            return _remove_timeline(timelines, tables, holds, name)
        case PutReadHold(hold=hold):
            if hold.name in holds:
                return f'read hold "{hold.name}" already exists'
            if hold.timeline not in timelines:
                return f'timeline "{hold.timeline}" was dropped'
            holds[hold.name] = hold
        case RemoveReadHold(name=name):
            if holds.pop(name, None) is None:
                return f'read hold "{name}" was dropped by a concurrent transaction'
    return None


def _remove_timeline(
    timelines: dict[str, Timeline],
    tables: Mapping[tuple[str, str], Table],
    holds: Mapping[str, ReadHold],
    name: str,
) -> str | None:
    used = any(table.timeline == name for table in tables.values()) or any(
        hold.timeline == name for hold in holds.values()
    )
    if name not in timelines or used:
        return f'timeline "{name}" was changed by a concurrent transaction'
    del timelines[name]
    return None
