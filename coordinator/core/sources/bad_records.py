"""Decide whether a source goes on past records that no column can take: `on_error`, `error_limit`.

They are counted as they are committed, in an hour that begins with the first one. A start, RESUME
and each change of a definition begin another one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.core.sources.completions import SourceFailed
from coordinator.core.sources.records import NEVER
from ingest.reader import BadRecord
from sql.catalog.objects import SourceDefinition
from storage.types import Timestamp

ERROR_LIMIT: Final = 10_000
"""Bad records in an hour. Larger: a wrong type fills more of the disk before somebody looks."""
_HOUR_US: Final = 3_600_000_000
_STOPS_HINT: Final = (
    "ALTER SOURCE .. SET (on_error = 'record') takes such records into the errors, and goes on."
)
_LIMIT_HINT: Final = (
    "ALTER SOURCE .. RESUME begins another hour; SET (error_limit = ..) allows more of them."
)


@dataclass(slots=True)
class CountedErrors:
    """How many were committed in the hour that began then."""

    began: Timestamp = NEVER
    count: int = 0

    def within(self, now: Timestamp) -> int:
        """Those of the hour that is not over."""
        return self.count if now < self.began + _HOUR_US else 0

    def add(self, errors: int, now: Timestamp) -> None:
        """These were committed."""
        if not errors:
            return
        if not self.within(now):
            self.began, self.count = now, 0
        self.count += errors


def stopped_by(
    definition: SourceDefinition, attempt: int, errors: Sequence[BadRecord]
) -> SourceFailed | None:
    """With on_error = 'stop': the first record that nobody has decided to leave out."""
    if not _stops(definition):
        return None
    for one in errors:
        place = json.dumps({**one.place})
        if place not in definition.skip:
            reason = f"a row of {one.reference} cannot be read: {one.message}"
            hint = f"ALTER SOURCE .. SKIP RECORD leaves it out. {_STOPS_HINT}"
            return SourceFailed(
                definition.oid, attempt, one.code, reason, hint, broken=True, place=place
            )
    return None


def refused_errors(
    definition: SourceDefinition,
    attempt: int,
    errors: int,
    counted: CountedErrors,
    now: Timestamp,
    *,
    known: int = 0,
) -> SourceFailed | None:
    """Why so many may not be committed; None if they may. `known`: how many `stopped_by` knew."""
    if errors > known and _stops(definition):
        reason = f"{errors - known} rows cannot be read"
        return SourceFailed(
            definition.oid, attempt, "22000", reason, f"Mend them upstream. {_STOPS_HINT}", True
        )
    limit = int(dict(definition.options).get("error_limit", ERROR_LIMIT))
    if errors and counted.within(now) + errors > limit:
        reason = f"more than {limit} records in an hour cannot be read (error_limit)"
        return SourceFailed(definition.oid, attempt, "54000", reason, _LIMIT_HINT, broken=True)
    return None


def _stops(definition: SourceDefinition) -> bool:
    return dict(definition.options).get("on_error") == "stop"
