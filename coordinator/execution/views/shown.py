"""The rows of `meridian.materialized_views`: what each view is, and what catch-up has tried."""

from collections.abc import Iterator
from typing import Final

from coordinator.core.messages.catalog_changes import LeftBecause
from coordinator.core.views.deltas import ViewCounts
from coordinator.driver.followed_views import FollowedViews
from coordinator.execution.views.attempts import CatchUpLog, ViewUpkeep
from sql.catalog.catalog import Catalog, Table
from sql.catalog.view_reads import REFRESHES
from sql.types.sql_type import Value

_MANUAL, _ON_COMMIT = REFRESHES

VIEW_STATES: Final = ("not populated", "stored", "exact", "behind")
"""All that `state` may be."""


def view_rows(
    catalog: Catalog, log: CatchUpLog, followed: FollowedViews
) -> Iterator[tuple[Value, ...]]:
    """One for each materialized view, in the order of their making."""
    for oid, table in sorted(catalog.named_tables.materialized.items()):
        exact, known = catalog.exact_views.get(oid), log.of(oid)
        upkeep, counts = log.upkeep.get(oid, ViewUpkeep()), followed.counts(oid)
        on_commit = table.query is not None and table.query.on_commit
        state = view_state(catalog, table)
        computed_at = None if exact is None else exact.computed_at
        yield (
            table.schema,
            table.name,
            _ON_COMMIT if on_commit else _MANUAL,
            state,
            computed_at,
            computed_at,
            None if exact is None else _names(catalog, exact.inputs),
            known.tried,
            known.attached,
            log.last_error(oid, state, counts.last),
            upkeep.strategy if on_commit else None,
            upkeep.reason if on_commit else None,
            counts.commits,
            counts.left.total(),
            int(1_000 * upkeep.last_s),
            _because(counts, upkeep),
            known.by_changes,
            known.delta_rows,
            followed.left_at(oid) if state == "behind" else None,
        )


def _because(counts: ViewCounts, upkeep: ViewUpkeep) -> str | None:
    """Why a commit has left it behind last, in a word, and what was said."""
    if counts.last is None or counts.last is not LeftBecause.GIVEN_UP:
        return counts.last
    return f"{counts.last}: {upkeep.because}"


def view_state(catalog: Catalog, table: Table) -> str:
    """Of a materialized view: one of VIEW_STATES."""
    query = table.query
    assert query is not None, "it is a materialized view"
    if not query.is_populated:
        return "not populated"
    if not query.on_commit:
        return "stored"
    return "exact" if table.oid in catalog.exact_views else "behind"


def _names(catalog: Catalog, oids: frozenset[int]) -> str:
    found = (catalog.by_oid(oid) for oid in sorted(oids))
    return ", ".join(table.qualified for table in found if table is not None)
