"""What catch-up has tried for each view, for itself and for people to see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.core.messages.catalog_changes import LeftBecause
from coordinator.core.views.deltas import ComputedRows
from sql.incremental.derive import maintenance_program
from sql.incremental.program import MaintenanceProgram, NotIncremental
from sql.plan.nodes import Plan

if TYPE_CHECKING:
    from compute.access.narrowed_plans import NarrowedPlans


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
class ViewUpkeep:
    """How commits maintain one view. `computed_at`: of the exact view that it is said of.

    `strategy`: in one word, as programs say it; None: they cannot, for a `reason`.
    """

    computed_at: int | None = None
    strategy: str | None = None
    reason: str | None = None
    query: Plan | None = None
    computed: ComputedRows | None = None
    """What catch-up has written last without an attach."""
    program: MaintenanceProgram | NotIncremental | None = None
    """Of the query. Engines know plans by identity, so one that is still right is kept."""
    is_warm: bool = False
    """Whether it has run, so that engines have what takes time at first."""
    last_s: float = 0.0
    """How long it took last to compute how a commit changes it."""
    because: str | None = None
    """Why it could not be computed, the last time."""
    error: str | None = None
    """The same, if the query has failed then."""

    def program_for(self, query: Plan) -> MaintenanceProgram | NotIncremental:
        """How the view follows its inputs, derived if the query is another one by now."""
        if self.program is None or self.query != query:
            self.query, self.program, self.is_warm = query, maintenance_program(query), False
        return self.program

    def give_up(self, reason: str, *, failed: bool = False) -> None:
        """A commit leaves the view behind. `failed`: the query has."""
        self.because, self.error = reason, reason if failed else None


@dataclass(slots=True)
class CatchUpLog:
    """By oid, the views that follow their inputs; `told`: called when one is found exact, when it
    is known how commits maintain it, and when a try came to nothing.
    """

    views: dict[int, ViewAttempts] = field(default_factory=dict[int, ViewAttempts])
    told: Callable[[], None] = lambda: None
    upkeep: dict[int, ViewUpkeep] = field(default_factory=dict[int, ViewUpkeep])
    narrowed: "NarrowedPlans | None" = None
    """What runs programs beside large tables; made when the first one runs."""
    computed_s: float = 0.0
    """How long it took in all to compute how commits change views, also views that are gone."""

    def upkeep_of(self, oid: int) -> ViewUpkeep:
        """How commits maintain a view."""
        return self.upkeep.setdefault(oid, ViewUpkeep())

    def of(self, oid: int) -> ViewAttempts:
        """What was tried for a view, which may be nothing."""
        return self.views.get(oid) or ViewAttempts(0.0)

    def last_error(self, oid: int, state: str, left: LeftBecause | None) -> str | None:
        """Why a view is behind. `left`: what the commit said that has left it so. Until a try has
        ended, the error of that commit is the last one: it is known in the step that leaves it.
        """
        known = self.of(oid).last_error
        if known is not None or state != "behind" or left is not LeftBecause.GIVEN_UP:
            return known
        return self.upkeep_of(oid).error

    def __iter__(self) -> Iterator[int]:
        return iter(self.views)
