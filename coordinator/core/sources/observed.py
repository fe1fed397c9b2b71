"""Observe sources as values, for relations and people (V1 of `observation.py`)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from coordinator.core.sources.running import RunningSource
from ingest.reader import Position
from sql.catalog.catalog import Table
from sql.catalog.objects import SourceDefinition
from storage.types import Timestamp

TRANSACTION: Final = "transaction"
"""What a source waits for that has parts of an upstream transaction: its end."""


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """A source as it is. `committed`: the timestamp of its newest commit; `rows`: how many it has
    brought, by the table's oid; `loaded`: since when a table has all that it had upstream before.
    `place`: of the record that it is broken at. `newest`: where upstream's log ended.
    """

    definition: SourceDefinition
    tables: tuple[Table, ...]
    state: str
    since: Timestamp
    attempt: int
    waiting: str
    code: str
    reason: str
    hint: str
    position: Position | None
    acknowledged: Position
    committed: Timestamp | None
    rows: dict[int, int]
    errors: int
    place: str = ""
    newest: Position = field(default_factory=dict[str, int])
    connection: str = ""
    loaded: dict[int, Timestamp] = field(default_factory=dict[int, Timestamp])


def observed_sources(sources: Iterable[RunningSource]) -> tuple[ObservedSource, ...]:
    """All of them."""
    return tuple(map(_observed, sources))


def _observed(source: RunningSource) -> ObservedSource:
    record = source.record
    return ObservedSource(
        source.definition,
        source.tables,
        source.state.value,
        source.since,
        source.attempt,
        source.waiting or (TRANSACTION if source.has_parts else ""),
        source.code,
        source.reason,
        source.hint,
        None if record is None else record.position,
        source.acknowledged,
        None if record is None else record.ts,
        {} if record is None else dict(record.rows),
        0 if record is None else record.errors,
        source.place,
        source.newest,
        "" if source.connection is None else source.connection.name,
        {} if record is None else dict(record.loaded),
    )


def shown_position(position: Position) -> str:
    """A position for people: PostgreSQL's as PostgreSQL writes it."""
    if "lsn" in position:
        return f"{position['lsn'] >> 32:X}/{position['lsn'] & 0xFFFFFFFF:X}"
    return ", ".join(f"{place} {number}" for place, number in position.items())
