"""How sessions read materialized views that follow their inputs (`binder/stored/view_reads.py`)."""

from enum import StrEnum
from typing import Final

REFRESHES: Final = ("manual", "on commit")
"""What `refresh` of a materialized view may be; the first is the default's default."""

BEHIND_HINT: Final = (
    "Begin when meridian.materialized_views says that it is exact, or subscribe to its query."
)
"""For who wants to follow a view that is behind."""


class ViewReads(StrEnum):
    """What a session asks for, and what its transaction allows.

    `OWN_ROWS`: it has changed something, so stored rows may lack its own; `ONLY_STORED` was asked
    for, and cannot be had then.
    """

    AUTO = "auto"
    STORED = "stored"
    DEFINITION = "definition"
    OWN_ROWS = "own rows"
    ONLY_STORED = "only stored"


VIEW_READS_CHOICES: Final = (
    ViewReads.AUTO.value, ViewReads.STORED.value, ViewReads.DEFINITION.value,
)  # fmt: skip
"""What `SET view_reads` takes."""


def followed_view_reads(reads: ViewReads) -> ViewReads:
    """What SUBSCRIBE reads: it tells what is committed, whatever its own transaction changes."""
    match reads:
        case ViewReads.OWN_ROWS:
            return ViewReads.AUTO
        case ViewReads.ONLY_STORED:
            return ViewReads.STORED
        case _:
            return reads


def allowed_view_reads(wanted: str, *, has_changed: bool) -> ViewReads:
    """What a transaction may read. `has_changed`: it has changed something (V4)."""
    reads = ViewReads(wanted)
    if not has_changed:
        return reads
    return ViewReads.ONLY_STORED if reads is ViewReads.STORED else ViewReads.OWN_ROWS
