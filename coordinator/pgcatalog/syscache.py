"""Keep the rows of system catalogs between statements, and look some of them up by their values.

    relation, BindContext ─▶ rows computed before from the same values? ─┬─ yes ─▶ served again
                                                                         └─ no ──▶ computed, kept
    points of the read predicate (`attrelid` = 16384) ─▶ those rows alone

PostgreSQL has its catcache for this; the name is that of its front (syscache.c).

INVARIANTS
  X1  rows are served again only if every field of the context that was read to compute them is the
      same. The catalog is compared by identity: each DDL makes a new one.
  X2  rows left out by points would not change the plan's result (D1 of
      `sql/plan/read_conditions.py`).
  X3  rows that were computed from a field that changes in place (UNKEPT) are not kept.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from threading import Lock
from typing import Any, Final

import pyarrow as pa

from coordinator.pgcatalog.meridian_schema import Row, rows_as_view, table_as_view
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Table
from storage.batch import ShardView, bytes_of
from storage.known_rows import Points

_BYTES_MAX: Final = 128 << 20
"""Of all kept rows. Smaller: sessions that look at different catalogs compute rows more often."""

_ENTRIES_MAX: Final = 16
"""Of one relation: sessions with other search paths or temporary schemas have rows of their own."""

_FIELDS: Final = tuple(found.name for found in fields(BindContext))
_UNKEPT: Final = frozenset({"settings"})


class _WatchedContext(BindContext):
    """A context that notes which of its fields are read."""

    __slots__ = ("used",)
    used: set[str]

    def __getattribute__(self, name: str) -> object:
        if name in _FIELDS:
            object.__getattribute__(self, "used").add(name)
        return object.__getattribute__(self, name)


def _watched(context: BindContext) -> _WatchedContext:
    made = object.__new__(_WatchedContext)
    object.__setattr__(made, "used", set[str]())
    for name in _FIELDS:
        object.__setattr__(made, name, object.__getattribute__(context, name))
    return made


def with_catalog(context: BindContext, catalog: Catalog) -> BindContext:
    """The context over a catalog that is made of its own; reads are noted as before."""
    if not isinstance(context, _WatchedContext):
        return replace(context, catalog=catalog)
    used = object.__getattribute__(context, "used")
    made = _watched(context)
    object.__setattr__(made, "catalog", catalog)
    object.__setattr__(made, "used", used)
    return made


def _value(context: BindContext, name: str) -> object:
    """The value of a field, which nobody changes any more."""
    value = getattr(context, name)
    return tuple(value) if name == "search_path" else value


@dataclass(slots=True)
class _Entry:
    """Rows, what they were computed from, and where which values are."""

    used: Mapping[str, object]
    view: ShardView
    rows: pa.Table
    places: dict[tuple[int, ...], Mapping[tuple[Hashable, ...], list[int]]] = field(
        default_factory=dict[tuple[int, ...], Mapping[tuple[Hashable, ...], list[int]]]
    )

    def serves(self, context: BindContext) -> bool:
        """X1."""
        return all(
            value is context.catalog if name == "catalog" else value == _value(context, name)
            for name, value in self.used.items()
        )

    def at(self, relation: Table, points: Points) -> ShardView:
        """The rows with these values (X2)."""
        known = self.places.get(points.ordinals)
        if known is None:
            known = self.places[points.ordinals] = _places(self.rows, points.ordinals)
        found = sorted(place for key in points.keys for place in known.get(key, ()))
        return table_as_view(relation, self.rows.take(pa.array(found, pa.int64())))


def _places(rows: pa.Table, ordinals: Sequence[int]) -> Mapping[tuple[Hashable, ...], list[int]]:
    places: dict[tuple[Hashable, ...], list[int]] = {}
    columns: list[list[Any]] = [rows.column(ordinal).to_pylist() for ordinal in ordinals]
    for place, key in enumerate(zip(*columns, strict=True)):
        places.setdefault(key, []).append(place)
    return places


class SystemCache:
    """See the module. Sessions of a server share one; its methods run on any thread."""

    def __init__(self) -> None:
        self._entries: dict[int, list[_Entry]] = {}
        self._bytes = 0
        self._lock = Lock()

    def view(
        self,
        relation: Table,
        context: BindContext,
        make: Callable[[BindContext], Sequence[Row]],
        points: Points | None,
    ) -> ShardView:
        """The relation's rows, those that `make` computes; `points`: the only ones that matter."""
        entry = self._found(relation, context)
        if entry is None:
            watched = _watched(context)
            view = rows_as_view(relation, make(watched))
            used = {name: _value(context, name) for name in watched.used}
            entry = _Entry(used, view, view.inline[0].rows)
            if not watched.used & _UNKEPT:
                self._keep(relation, entry)
        return entry.view if points is None else entry.at(relation, points)

    def _found(self, relation: Table, context: BindContext) -> _Entry | None:
        with self._lock:
            known = list(self._entries.get(relation.oid, ()))
        return next((entry for entry in known if entry.serves(context)), None)

    def _keep(self, relation: Table, entry: _Entry) -> None:
        size = bytes_of(entry.rows)
        with self._lock:
            if self._bytes + size > _BYTES_MAX:
                self._entries.clear()
                self._bytes = 0
            known = self._entries.setdefault(relation.oid, [])
            known.insert(0, entry)
            self._bytes += size
            for old in known[_ENTRIES_MAX:]:
                self._bytes -= bytes_of(old.rows)
            del known[_ENTRIES_MAX:]
