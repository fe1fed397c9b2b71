"""How far a source is read, as the stash has it (F1 of the package).

feeds/<oid of the source> ─ position, counters        written with every commit of the source
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from ingest.reader import Position
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from storage.stash import Delete, Put
from storage.types import Timestamp

SOURCE_RECORDS: Final = "feeds"
NEVER: Final = Timestamp(0)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """The newest commit of a source. `rows`: how many it has brought, by the table's oid; `errors`:
    how many records no column could take. `generation`: of what stands upstream. `loaded`: since
    when a table has all rows of its upstream's, by its oid; NEVER: since the commit of this record.
    `later`: tables that were copied at a later position, and are loaded when that is reached.
    """

    position: Position
    ts: Timestamp = NEVER
    generation: int = 1
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    rows: Mapping[int, int] = field(default_factory=dict[int, int])
    errors: int = 0
    loaded: Mapping[int, Timestamp] = field(default_factory=dict[int, Timestamp])
    later: Mapping[int, Position] = field(default_factory=dict[int, Position])

    def at(self, ts: Timestamp) -> "SourceRecord":
        """The record, committed at `ts`."""
        loaded = {oid: since or ts for oid, since in self.loaded.items()}
        return replace(self, ts=ts, loaded=loaded)


@dataclass(frozen=True, slots=True)
class Leftover:
    """All that stands upstream under the name of a source, up to a generation (`leftovers.py`)."""

    source: SourceDefinition
    connection: ConnectionDefinition | None

    @property
    def name(self) -> str:
        """Of its record."""
        return f"{self.source.feed_id}.{self.source.generation}"


def put_source_record(source: int, ts: Timestamp, record: SourceRecord) -> Put:
    """The write of a commit at `ts`."""
    record = record.at(ts)
    body: dict[str, object] = {
        "position": {**record.position},
        "ts": ts,
        "generation": record.generation,
        "identity": {**record.identity},
        "rows": {str(oid): count for oid, count in record.rows.items()},
        "errors": record.errors,
        "loaded": {str(oid): since for oid, since in record.loaded.items()},
    }
    if record.later:
        body["later"] = {str(oid): {**place} for oid, place in record.later.items()}
    return Put(SOURCE_RECORDS, str(source), json.dumps(body).encode())


def delete_source_record(source: int) -> Delete:
    """The write of a commit that drops the source."""
    return Delete(SOURCE_RECORDS, str(source))


def decode_source_records(found: Mapping[str, bytes]) -> dict[int, SourceRecord]:
    """All records, by the oid of the source."""
    return {int(key): _decoded(content) for key, content in found.items()}


def _decoded(content: bytes) -> SourceRecord:
    body = cast("Mapping[str, object]", json.loads(content))
    loaded = cast("Mapping[str, int]", body.get("loaded", {}))
    later = cast("Mapping[str, Position]", body.get("later", {}))
    return SourceRecord(
        cast("Mapping[str, int]", body["position"]),
        Timestamp(cast("int", body["ts"])),
        cast("int", body["generation"]),
        cast("Mapping[str, str]", body["identity"]),
        {int(oid): count for oid, count in cast("Mapping[str, int]", body["rows"]).items()},
        cast("int", body["errors"]),
        {int(oid): Timestamp(since) for oid, since in loaded.items()},
        {int(oid): place for oid, place in later.items()},
    )


def is_behind(position: Position, other: Position) -> bool:
    """Whether none of its numbers is greater, and one is less; a missing one is 0."""
    places = {*position, *other}
    if any(position.get(place, 0) > other.get(place, 0) for place in places):
        return False
    return any(position.get(place, 0) < other.get(place, 0) for place in places)
