"""What passes between a lane and who maintains its views: programs, rows that change, deltas.

    MaintainViews: views with programs, inputs as they were and their changes ─▶ driver
    ViewsMaintained: for each view what goes and comes, or nothing: it was given up ─▶ core

    AttachComputed: a view whose rows are of an earlier time ─▶ a unit adds what has changed since

Values only. To the core a program is opaque: whoever runs it has made it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from coordinator.core.messages.catalog_changes import LeftBecause
from coordinator.core.messages.identities import RequestId
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import ExactView
from storage.batch import ShardView, WriteBatch
from storage.known_rows import OldRows
from storage.shard import ShardState
from storage.types import Timestamp

ViewProgram: TypeAlias = object
"""How the rows of a view follow from changes of its inputs."""

ViewPrograms: TypeAlias = Mapping[tuple[int, int], ViewProgram]
"""By oid and `computed_at` of exact views; each change of an input leaves others behind."""


@dataclass(frozen=True, slots=True)
class PutViewProgram:
    """How a view is maintained as long as it is exact by what was computed at a timestamp. No
    reply.
    """

    oid: int
    computed_at: int
    program: ViewProgram


@dataclass(frozen=True, slots=True)
class MaintainedView:
    """An exact view that has a program. `exact`: its interval; another one is another view."""

    table: Table
    exact: ExactView
    program: ViewProgram

    @property
    def oid(self) -> int:
        """The view's."""
        return self.table.oid


@dataclass(frozen=True, slots=True)
class InputRows:
    """A table that views read: before a unit, after it, and what the unit changes. Deletes name
    rows as `before` does.
    """

    table: Table
    before: ShardView
    after: ShardView
    changes: WriteBatch

    @property
    def is_changed(self) -> bool:
        """Whether rows came or went."""
        rows = self.changes.rows
        return bool(self.changes.deletes) or (rows is not None and rows.num_rows > 0)


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """The rows of a view that is behind: those of its query at `exact.computed_at`, and written at
    `written_at`. `exact`: how it would be exact if nothing had changed since.
    """

    exact: ExactView
    written_at: Timestamp


@dataclass(frozen=True, slots=True)
class AttachComputed:
    """Attach a view that is behind, by a unit that adds what has changed since its rows were
    computed (N9 of `lane_gathering.py`). The owner holds that timestamp until the reply. Reply
    Committed, or Refused: it is behind still.
    """

    request: RequestId
    oid: int
    rows: ComputedRows


@dataclass(frozen=True, slots=True)
class EarlierInput:
    """An input of a view whose rows were computed earlier: at `after`. What has changed since are
    all changes of `state` after that, and those of the unit.
    """

    state: ShardState
    schema: pa.Schema
    after: Timestamp


@dataclass(frozen=True, slots=True)
class ViewRows:
    """A view to maintain, and its stored rows: those of its query before the unit. `earlier`: by
    oid, its inputs, if they are those of an earlier time, and the view is to be attached.
    """

    view: MaintainedView
    stored: ShardView
    earlier: Mapping[int, EarlierInput] = field(default_factory=dict[int, EarlierInput])


@dataclass(frozen=True, slots=True)
class ViewDelta:
    """What becomes of a view's stored rows. `old`: the values of those that go, for the validation
    of who has read them.
    """

    batch: WriteBatch
    old: tuple[OldRows, ...] = ()


SAME_ROWS: Final = ViewDelta(WriteBatch())


@dataclass(frozen=True, slots=True)
class MaintainViews:
    """Compute the deltas of views for one unit of a lane. Ends in ViewsMaintained.

    `inputs`: by oid, all tables that the views read. `attempt`: names this request. `budget_us`:
    after this time nobody waits for the answer any more. `rows_max`: that a step makes, and that go
    or come.
    """

    attempt: int
    catalog: Catalog
    views: tuple[ViewRows, ...]
    inputs: Mapping[int, InputRows]
    budget_us: int
    rows_max: int


@dataclass(frozen=True, slots=True)
class ViewsMaintained:
    """Ends MaintainViews: the deltas by view; a view that is not among them was given up."""

    attempt: int
    deltas: Mapping[int, ViewDelta] = field(default_factory=dict[int, ViewDelta])


@dataclass(slots=True)
class ViewCounts:
    """Of one view, since the server's start; for observation."""

    commits: int = 0
    """Groups of commits that are durable and that it has followed."""
    rows: int = 0
    """Stored rows that came or went with them."""
    left: Counter[LeftBecause] = field(default_factory=Counter[LeftBecause])
    """Commits that have left it behind, by cause."""
    last: LeftBecause | None = None
    """The cause of the last one."""

    def follow(self, rows: int) -> None:
        """A commit had its delta."""
        self.commits += 1
        self.rows += rows

    def leave(self, because: LeftBecause) -> None:
        """A commit has left it behind."""
        self.left[because] += 1
        self.last = because
