"""Maintains the views of a simulation, whose queries are UNION ALL of their inputs.

    MaintainViews ─ a while, perhaps too long ─▶ rows that came and went ─▶ ViewsMaintained

Now and then it gives up, as an engine does whose query has failed.
"""

import asyncio
from typing import TYPE_CHECKING

from coordinator.core.views.deltas import (
    EarlierInput,
    InputRows,
    MaintainViews,
    ViewDelta,
    ViewRows,
    ViewsMaintained,
)
from storage.batch import WriteBatch
from storage.changes import changes, view_of_places
from storage.errors import NotFound
from tests.resilience.sim.rows import Content, Row, arrow, deletes_of, old_rows

if TYPE_CHECKING:
    from tests.resilience.sim.world import World

PROGRAM = "UNION ALL"
"""Of all views here."""


class ViewMaintenance:
    """See the module."""

    def __init__(self, world: "World", server: int) -> None:
        self._world = world
        self._server = server

    async def maintain(self, effect: MaintainViews) -> ViewsMaintained:
        """As the server does."""
        rng = self._world.random
        late = rng.random() < 0.12
        await asyncio.sleep(rng.random() * (0.3 if late else 0.04))
        deltas: dict[int, ViewDelta] = {}
        for rows in effect.views:
            if rng.random() < 0.04:
                continue
            inputs = [effect.inputs[oid] for oid in sorted(rows.view.exact.inputs)]
            try:
                deltas[rows.view.oid] = self._delta(rows, inputs)
            except NotFound:
                # Of a deposed leader a successor has removed it: the view falls behind (I1).
                if self._server == len(self._world.servers) - 1:
                    raise
        self._world.tally.followed += bool(deltas)
        return ViewsMaintained(effect.attempt, deltas)

    def _delta(self, rows: ViewRows, inputs: list[InputRows]) -> ViewDelta:
        came: list[Content] = []
        went: list[Content] = []
        for one in inputs:
            self._add_earlier(rows.earlier.get(one.table.oid), came, went)
            before = {(row.source, row.index): row for row in self._rows(one, after=False)}
            gone = [
                before[source, index]
                for source, indexes in one.changes.deletes.items()
                for index in indexes
            ]
            went += map(_content, gone)
            if one.changes.inserts is not None:
                made = one.changes.inserts.select(["key", "position", "value"])
                came += zip(*(column.to_pylist() for column in made.columns), strict=True)
        read, store = self._world.reader.rows, self._world.store
        stored = read(rows.stored, store)
        deleted: list[Row] = []
        for content in [*came]:
            if content in went:
                came.remove(content)
                went.remove(content)
        for content in went:
            found = next((row for row in stored if _content(row) == content), None)
            if found is None:
                self._world.found("V1", f"{content} goes, and is not stored")
                break
            stored.remove(found)
            deleted.append(found)
        table = rows.view.table
        batch = WriteBatch(arrow(table, came) if came else None, deletes=deletes_of(deleted))
        known = (old_rows(deleted, (0, 1, 2)),) if deleted else ()
        return ViewDelta(batch, known)

    def _add_earlier(
        self, earlier: EarlierInput | None, came: list[Content], went: list[Content]
    ) -> None:
        """What has changed since the rows of the view were computed."""
        if earlier is None:
            return
        state, schema = earlier.state, earlier.schema
        for change in changes(state, earlier.after, state.last_write, schema):
            for places, rows in ((change.came, came), (change.went, went)):
                view = view_of_places(state.shard, schema, places)
                rows.extend(map(_content, self._world.reader.rows(view, self._world.store)))

    def _rows(self, one: InputRows, *, after: bool) -> list[Row]:
        return self._world.reader.rows(one.after if after else one.before, self._world.store)


def _content(row: Row) -> Content:
    return row.key, row.position, row.value
