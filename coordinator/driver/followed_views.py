"""The way of who brings views up to date to the core: programs, what is left, the attach.

attached, after a start ─▶ put_program        behind ─▶ left ─▶ rows written ─▶ attach
"""

from collections.abc import Callable, Collection, Coroutine

from coordinator.core.core import Core
from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import Committed
from coordinator.core.messages.requests import Message
from coordinator.core.views.deltas import (
    AttachComputed,
    ComputedRows,
    PutViewProgram,
    ViewCounts,
    ViewProgram,
)
from coordinator.core.views.left_views import LeftView
from storage.types import Timestamp


class FollowedViews:
    """Of the timeline `system`, where all materialized views are."""

    def __init__(
        self,
        core: Core,
        handle: Callable[[Message], None],
        request: Callable[
            [Callable[[RequestId], Message], type[Committed]], Coroutine[object, object, Committed]
        ],
    ) -> None:
        self._core = core
        self._handle = handle
        self._request = request

    def put_program(self, oid: int, computed_at: int, program: ViewProgram) -> None:
        """How commits maintain a view as long as it is exact by what was computed at a timestamp
        (`coordinator/core/views`).
        """
        self._handle(PutViewProgram(oid, computed_at, program))

    def left(self, oid: int, computed: ComputedRows | None = None) -> LeftView | None:
        """Of which timestamp the rows of a view that is behind are; None: they are of no use.
        `computed`: what was written last.
        """
        return self._core.left_view(oid, computed)

    @property
    def rows_max(self) -> int:
        """Rows of inputs that a batch of commits may change."""
        return self._core.view_rows_max

    def left_at(self, oid: int) -> Timestamp | None:
        """When a view that is behind was left so; None: it is not, or that is long ago."""
        return self._core.view_left_at(oid)

    def counts(self, oid: int) -> ViewCounts:
        """What durable commits have done to a view, since the server's start."""
        return self._core.view_counts.get(oid) or ViewCounts()

    @property
    def all_counts(self) -> Collection[ViewCounts]:
        """The same of all views, also those that are gone."""
        return self._core.view_counts.values()

    async def attach(self, oid: int, rows: ComputedRows) -> Timestamp:
        """Let a unit of its lane attach a view that is behind. The caller holds the timestamp that
        the rows are of. Raises RequestRefused: it stays behind; and LockBlocks.
        """
        done = await self._request(lambda request: AttachComputed(request, oid, rows), Committed)
        return done.ts
