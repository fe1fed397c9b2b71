"""What stands upstream for sources that need it no more, until it is removed (F8 of `ingest`).

    DROP SOURCE ─▶ feed_leftovers/<feed_id>.<generation>, in its commit
                   ─▶ ReleaseUpstream ─▶ UpstreamReleased; the record goes with it

INVARIANTS
  F8  whatever a source may have made upstream is named by its definition, or by such a record, at
      every moment: a start finds it, and removes it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from coordinator.core.messages.catalog_changes import CatalogChange, RemoveObject
from coordinator.core.object_records import Json, decode_object, encode_object
from coordinator.core.sources.effects import ReleaseUpstream
from coordinator.core.sources.records import NEVER, Leftover
from coordinator.core.sources.retries import retry_pause_us
from sql.catalog.catalog import Catalog
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.catalog.sources import connection_by_oid, has_snapshot
from storage.stash import Put, Write
from storage.types import Timestamp

LEFTOVER_RECORDS: Final = "feed_leftovers"

_RETRY_MAX_US: Final = 60_000_000
"""Larger: a slot stays longer after upstream has come back."""


def put_leftover(leftover: Leftover) -> Put:
    """The write of the commit that leaves it behind."""
    connection = leftover.connection
    body = {
        "source": encode_object(leftover.source),
        "connection": None if connection is None else encode_object(connection),
    }
    return Put(LEFTOVER_RECORDS, leftover.name, json.dumps(body).encode())


def decode_leftovers(found: Mapping[str, bytes]) -> tuple[Leftover, ...]:
    """All records."""
    return tuple(map(_decoded, found.values()))


def _decoded(content: bytes) -> Leftover:
    body = cast("Mapping[str, Mapping[str, Json] | None]", json.loads(content))
    assert body["source"] is not None, "a leftover is of a source"
    source = decode_object(body["source"])
    assert isinstance(source, SourceDefinition), "a leftover is of a source"
    connection = None if body["connection"] is None else decode_object(body["connection"])
    assert connection is None or isinstance(connection, ConnectionDefinition), "it leads there"
    return Leftover(source, connection)


def left_by(catalog: Catalog, changes: Sequence[CatalogChange]) -> Iterator[Leftover]:
    """What DDL leaves behind; `catalog`: after it."""
    gone = [c.object for c in changes if isinstance(c, RemoveObject)]
    connections = {one.oid: one for one in gone if isinstance(one, ConnectionDefinition)}
    for source in gone:
        if isinstance(source, SourceDefinition) and has_snapshot(source):
            oid = source.connection
            yield Leftover(source, connections.get(oid) or connection_by_oid(catalog, oid))


def left_writes(catalog: Catalog, changes: Sequence[CatalogChange]) -> Iterator[Write]:
    """The records of what DDL leaves behind."""
    return (put_leftover(leftover) for leftover in left_by(catalog, changes))


@dataclass(slots=True)
class _Left:
    leftover: Leftover
    asked: bool = False
    failures: int = 0
    retry_at: Timestamp = NEVER


class Leftovers:
    """All that is left upstream."""

    def __init__(self, recovered: Iterable[Leftover]) -> None:
        self._known = {one.name: _Left(one) for one in recovered}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, leftover: Leftover) -> None:
        """A commit has left it behind."""
        self._known.setdefault(leftover.name, _Left(leftover))

    def due(self, now: Timestamp) -> list[ReleaseUpstream]:
        """What is to be removed now."""
        found = [one for one in self._known.values() if not one.asked and now >= one.retry_at]
        for one in found:
            one.asked = True
        return [ReleaseUpstream(one.leftover) for one in found]

    def released(self, name: str, *, done: bool, now: Timestamp) -> None:
        """Its removal has ended: it is gone with its record, or tried again later."""
        if done:
            self._known.pop(name, None)
            return
        one = self._known[name]
        one.asked, one.failures = False, one.failures + 1
        one.retry_at = Timestamp(now + retry_pause_us(one.failures, _RETRY_MAX_US))
