"""What catch-up has tried for each view, for itself and for people to see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class ViewAttempts:
    """Of one view, since the server's start. Times are those of the event loop."""

    pause: float
    due: float | None = None
    """When it is tried next; None while it is exact."""
    attached_at: float = 0.0
    """When it was found exact last; 0 if it never was."""
    tried: int = 0
    attached: int = 0
    by_changes: int = 0
    """How often its rows were brought up to date by the changes of its inputs, and not anew."""
    delta_rows: int = 0
    """Rows that these wrote and deleted."""
    last_error: str | None = None
    """Why the last try has not attached it; None: it has."""
    behind_since: float | None = None
    """When it was found behind; None while it is exact."""
    has_failed: bool = False
    """Whether the last try ended with an error that another try may not be without: no lock that
    somebody holds, no input that was written to meanwhile."""


@dataclass(slots=True)
class CatchUpLog:
    """By oid, the views that follow their inputs; `told`: called when one is found exact."""

    views: dict[int, ViewAttempts] = field(default_factory=dict[int, ViewAttempts])
    told: Callable[[], None] = lambda: None

    def of(self, oid: int) -> ViewAttempts:
        """What was tried for a view, which may be nothing."""
        return self.views.get(oid) or ViewAttempts(0.0)

    def __iter__(self) -> Iterator[int]:
        return iter(self.views)
