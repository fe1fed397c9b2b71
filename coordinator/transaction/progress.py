"""How far the statement of a session has come, and since when it waits; for observation only.

INVARIANTS
  R1  only the session itself changes it; it decides nothing.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class CopyProgress:
    """A COPY that runs. `relation`: the table's oid; 0: it copies the rows of a query."""

    command: str
    relation: int
    bytes: int = 0
    rows: int = 0
    excluded: int = 0
    """By WHERE."""
    skipped: int = 0
    """By ON_ERROR."""
    waits_for_client: bool = False
    """Its next rows have not come."""


class Progress:
    """See the module."""

    copy: CopyProgress | None = None
    wait_began: int | None = None
    """Of the wait for a lock, in microseconds."""

    @contextmanager
    def copying(self, command: str, relation: int) -> Generator[CopyProgress]:
        """A COPY runs in this block."""
        self.copy = CopyProgress(command, relation)
        try:
            yield self.copy
        finally:
            self.copy = None
