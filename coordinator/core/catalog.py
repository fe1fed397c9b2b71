"""The versioned catalog: every DDL makes a new immutable Catalog with a timestamp.

    ts ───┬────────────┬──────────▶          stash `catalog`: one record per change, in commit order
        Catalog 0    Catalog 1

INVARIANTS
  K1  `at(ts)` is the catalog after all DDL committed at or before ts.
  K2  a change is checked against the catalog it is applied to; what does not fit raises Stale and
      changes nothing. Oids and shards are never used twice.
  K3  the stash holds the changes themselves; replaying them in key order gives the versions again.
  K4  of what is older than since, the stash holds no more than makes the catalog of that time.
  K5  a column's type is defined: an enum or domain as it is defined now. Whoever changes or drops
      it changes all columns of it in the same step; what was bound to another one is stale.
  K6  of all versions but the oldest, the newest and a few others there are the changes only: memory
      and a start grow with the DDL of the history, and not with its product with the tables.
"""

import bisect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from coordinator.core.catalog_annotations import forget_annotations, put_comment, subject_exists
from coordinator.core.catalog_records import decode_change, encode_change
from coordinator.core.catalog_references import new_broken_reference
from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    PutComment,
    PutObject,
    PutPrivileges,
    PutReadHold,
    PutRole,
    PutSchema,
    PutSettings,
    PutTable,
    PutTimeline,
    RemoveObject,
    RemoveReadHold,
    RemoveRole,
    RemoveSchema,
    RemoveTable,
    RemoveTimeline,
)
from coordinator.core.privilege_changes import apply_privilege_change, missing_role
from coordinator.core.relation_names import put_relation_names
from coordinator.core.timeline_changes import apply_time_change
from coordinator.core.views.exactness import apply_view_change, forget_exactness
from sql.catalog.acl import ObjectPrivileges
from sql.catalog.catalog import (
    Catalog,
    NameDependency,
    NamedTables,
    Table,
    Timeline,
    is_whole_catalog,
    type_dependency_state,
)
from sql.catalog.objects import (
    CONNECTION_SPACE,
    EXTENSION_SPACE,
    RELATION_SPACE,
    SOURCE_SPACE,
    TYPE_SPACE,
    CatalogObject,
    Comment,
    EnumDefinition,
    Subject,
    ViewDefinition,
)
from sql.catalog.roles import Role
from storage.stash import Delete, Put, Write
from storage.types import Timestamp

COLLECTION: Final = "catalog"

MATERIALIZED_VERSIONS_MAX: Final = 8
"""Versions that are kept as they are. Larger: more memory. Smaller: reads of the past, and those
that began before DDL, make theirs anew more often."""


class StaleCatalog(Exception):
    """The catalog has changed since the statement was bound; the text says what."""


def apply_changes(
    catalog: Catalog, changes: Iterable[CatalogChange], *, version: int, replayed: bool = False
) -> Catalog:
    """The catalog after these changes. Raises Stale (K2). `replayed`: they are the stash's (K4)."""
    made = _applied(catalog, changes, version=version, replayed=replayed)
    if not replayed:
        _check_roles(made.roles, made.rights)
    return made


def _applied(
    catalog: Catalog, changes: Iterable[CatalogChange], *, version: int, replayed: bool
) -> Catalog:
    """One change after the other."""
    tables = NamedTables(catalog.tables)
    schemas = set(catalog.schemas)
    timelines = dict(catalog.timelines)
    holds = dict(catalog.read_holds)
    objects = dict(catalog.objects)
    comments = dict(catalog.comments)
    roles, rights, settings = dict(catalog.roles), dict(catalog.rights), dict(catalog.settings)
    exact = dict(catalog.exact_views)
    for change in changes:
        problem: str | None = None
        match change:
            case PutRole() | RemoveRole() | PutPrivileges() | PutSettings():
                problem = apply_privilege_change(
                    roles, rights, settings, change, (tables, objects, schemas), replayed=replayed
                )
            case PutComment(comment=comment):
                if not subject_exists(comment.subject, tables, objects, schemas, roles):
                    raise StaleCatalog(
                        "what is commented on was dropped by a concurrent transaction"
                    )
                put_comment(comments, comment)
            case PutTable(table=table):
                if (RELATION_SPACE, table.schema, table.name) in objects:
                    raise StaleCatalog(f'relation "{table.name}" already exists')
                if (TYPE_SPACE, table.schema, table.name) in objects:
                    raise StaleCatalog(f'type "{table.name}" already exists')
                _put_table(tables, schemas, timelines, table, replayed=replayed)
            case PutObject(object=thing):
                if thing.schema not in schemas:
                    raise StaleCatalog(
                        f'schema "{thing.schema}" was changed by a concurrent transaction'
                    )
                if thing.space == RELATION_SPACE and (thing.schema, thing.name) in tables:
                    raise StaleCatalog(f'relation "{thing.name}" already exists')
                _check_row_type(tables, objects, thing)
                _check_extension(objects, thing)
                _put_object(objects, thing, replayed=replayed)
            case RemoveObject(object=thing):
                _remove_object(objects, thing)
            case RemoveTable(table=table):
                _remove_table(tables, table)
            case PutSchema() | RemoveSchema():
                used = {schema for schema, _ in tables} | {schema for _, schema, _ in objects}
                _change_schemas(schemas, used, change)
            case PutTimeline() | RemoveTimeline() | PutReadHold() | RemoveReadHold():
                problem = apply_time_change(timelines, tables, holds, change)
            case AttachView() | LeaveView():
                problem = apply_view_change(exact, tables, change)
        if problem is not None:
            raise StaleCatalog(problem)
        forget_annotations(comments, change)
        forget_annotations(rights, change)
        forget_exactness(exact, tables, change)
    return Catalog(
        version, frozenset(schemas), tables, timelines, holds, objects, comments, roles, rights,
        settings, exact,
    )  # fmt: skip


def _change_schemas(schemas: set[str], used: set[str], change: PutSchema | RemoveSchema) -> None:
    name = change.name
    if isinstance(change, PutSchema):
        if name in schemas:
            raise StaleCatalog(f'schema "{name}" already exists')
        schemas.add(name)
        return
    if name not in schemas or name in used:
        raise StaleCatalog(f'schema "{name}" was changed by a concurrent transaction')
    schemas.remove(name)


def check_catalog_integrity(
    before: Catalog, after: Catalog, changes: Sequence[CatalogChange]
) -> None:
    """Raise Stale for what a change alone does not show: names, and what refers to what (K5, F1 of
    `catalog_references.py`).

    Asked when a statement is done: half of one need not fit. What did not fit before is left:
    older versions have let it be.
    """
    twice = {name for name in put_relation_names(changes) if after.times_named(*name) > 1}
    new = sorted(name for name in twice if before.times_named(*name) < 2)
    if new:
        raise StaleCatalog(f'relation "{new[0][1]}" already exists')
    misfit = new_broken_reference(before, after, changes)
    if misfit is not None:
        raise StaleCatalog(f"what {misfit.what} rests on was changed by a concurrent transaction")


def _check_row_type(
    tables: Mapping[tuple[str, str], Table],
    objects: Mapping[tuple[str, str, str], CatalogObject],
    thing: CatalogObject,
) -> None:
    """A type has no name that a table or view has, whose rows are of a type so called."""
    if thing.space == TYPE_SPACE:
        other = objects.get((RELATION_SPACE, thing.schema, thing.name))
        if (thing.schema, thing.name) in tables or isinstance(other, ViewDefinition):
            raise StaleCatalog(f'type "{thing.name}" already exists')
    elif isinstance(thing, ViewDefinition) and (TYPE_SPACE, thing.schema, thing.name) in objects:
        raise StaleCatalog(f'type "{thing.name}" already exists')


def _check_extension(
    objects: Mapping[tuple[str, str, str], CatalogObject], thing: CatalogObject
) -> None:
    """There is one extension of a name, whatever its schema."""
    if thing.space == EXTENSION_SPACE and any(
        (other.space, other.name) == (EXTENSION_SPACE, thing.name) and other.oid != thing.oid
        for other in objects.values()
    ):
        raise StaleCatalog(f'extension "{thing.name}" already exists')


def _check_roles(roles: Mapping[int, Role], rights: Mapping[Subject, ObjectPrivileges]) -> None:
    """Whatever belongs to somebody belongs to one who is there (U4 of `privilege_changes.py`)."""
    if missing_role(roles, rights) is not None:
        raise StaleCatalog("a role was dropped by a concurrent transaction")


def _put_object(
    objects: dict[tuple[str, str, str], CatalogObject], thing: CatalogObject, *, replayed: bool
) -> None:
    """As `_put_table`: a new one has a free name, another version comes from the one before."""
    key = (thing.space, thing.schema, thing.name)
    known = objects.get(key)
    if known is not None and known.oid != thing.oid:
        raise StaleCatalog(f'"{thing.name}" already exists')
    if thing.version > 0:
        if known is None:
            key_before = next((k for k, other in objects.items() if other.oid == thing.oid), key)
        else:
            key_before = key
        before = objects.pop(key_before, None)
        if before is None and replayed:
            pass  # the versions before are compacted away (K4)
        elif before is None or before.version != thing.version - 1:
            raise StaleCatalog(f'"{thing.name}" was changed by a concurrent transaction')
    objects[key] = thing


def _remove_object(
    objects: dict[tuple[str, str, str], CatalogObject], thing: CatalogObject
) -> None:
    key = (thing.space, thing.schema, thing.name)
    known = objects.get(key)
    if known is None or (known.oid, known.version) != (thing.oid, thing.version):
        raise StaleCatalog(f'"{thing.name}" was changed by a concurrent transaction')
    del objects[key]


def _put_table(
    tables: NamedTables,
    schemas: set[str],
    timelines: Mapping[str, Timeline],
    table: Table,
    *,
    replayed: bool,
) -> None:
    known = tables.get((table.schema, table.name))
    if table.timeline not in timelines:
        raise StaleCatalog(f'timeline "{table.timeline}" was changed by a concurrent transaction')
    if table.schema not in schemas:
        raise StaleCatalog(f'schema "{table.schema}" was changed by a concurrent transaction')
    if known is not None and known.oid != table.oid:
        raise StaleCatalog(f'relation "{table.name}" already exists')
    if table.version > 0:
        # Altered: from exactly the version before, which may have had another name.
        name = (table.schema, table.name)
        if known is None:
            other = tables.by_oid.get(table.oid)
            name = name if other is None else (other.schema, other.name)
        before = tables.get(name)
        if before is not None:
            del tables[name]
        if before is None and replayed:
            pass  # the versions before are compacted away (K4)
        elif before is None or before.version != table.version - 1:
            raise StaleCatalog(f'table "{table.name}" was changed by a concurrent transaction')
    tables[table.schema, table.name] = table


def _remove_table(tables: NamedTables, table: Table) -> None:
    known = tables.get((table.schema, table.name))
    if known is None or known.oid != table.oid or known.version != table.version:
        raise StaleCatalog(f'table "{table.name}" was changed by a concurrent transaction')
    del tables[table.schema, table.name]


def is_current(catalog: Catalog, table: Table) -> bool:
    """True if the table's definition in this catalog is the one that a statement was bound to."""
    known = catalog.tables.get((table.schema, table.name))
    return known is not None and known.oid == table.oid and known.version == table.version


def is_look_up_current(catalog: Catalog, name: NameDependency) -> bool:
    """Whether a name means in this catalog what it was found to mean, and is defined so."""
    if is_whole_catalog(name):
        return catalog.version == name.oid
    if name.name is None:
        return (0 if name.schema in catalog.schemas else None) == name.oid
    if name.space == TYPE_SPACE:
        return type_dependency_state(catalog.type_named(name.schema, name.name)) == name.oid
    if name.space in (EXTENSION_SPACE, SOURCE_SPACE, CONNECTION_SPACE):
        found = catalog.objects.get((name.space, name.schema, name.name))
        return (None if found is None else found.oid) == name.oid
    key = name.schema, name.name
    thing = catalog.tables.get(key) or catalog.relation(*key)
    if thing is None or thing.oid != name.oid:
        return thing is None and name.oid is None
    return name.version is None or thing.version == name.version


def encode_changes(ts: Timestamp, changes: Iterable[CatalogChange]) -> tuple[Put, ...]:
    """The stash records of the DDL committed at `ts` (K3)."""
    return tuple(
        Put(COLLECTION, f"{ts:020d}/{number:06d}", json.dumps(encode_change(change)).encode())
        for number, change in enumerate(changes)
    )


def next_oid(history: Iterable[tuple[Timestamp, Iterable[CatalogChange]]], least: int) -> int:
    """`least`, or behind every oid that the history has given to anything (K2)."""
    for _, changes in history:
        for change in changes:
            match change:
                case PutTable(table=thing) | PutRole(role=thing):
                    least = max(least, thing.oid + 1)
                case PutObject(object=thing):
                    array = thing.array if isinstance(thing, EnumDefinition) else 0
                    least = max(least, thing.oid + 1, array + 1)
                case _:
                    pass
    return least


def _record_ts(key: str) -> Timestamp:
    return Timestamp(int(key.partition("/")[0]))


def decode_changes(
    records: Mapping[str, bytes],
) -> list[tuple[Timestamp, list[CatalogChange]]]:
    """The DDL of a stash's `catalog` collection, by commit timestamp, in order (K3)."""
    by_ts: dict[Timestamp, list[CatalogChange]] = {}
    for key in sorted(records):
        ts = _record_ts(key)
        by_ts.setdefault(ts, []).append(decode_change(json.loads(records[key])))
    return sorted(by_ts.items())


def compact_history(
    records: Mapping[str, bytes], since: Timestamp
) -> tuple[list[Write], Timestamp | None]:
    """Replace all changes up to `since` by those that make the catalog of that time (K4); and from
    when on the catalog is known then, None if nothing is so old.
    """
    old = {key: value for key, value in records.items() if _record_ts(key) <= since}
    history = decode_changes(old)
    if not history:
        return [], None
    catalog = VersionedCatalog(history).current
    beginning = history[-1][0]
    puts = encode_changes(beginning, _making(catalog))
    kept = {put.key for put in puts}
    gone = [Delete(COLLECTION, key) for key in sorted(old) if key not in kept]
    return [*gone, *puts], beginning


def _making(catalog: Catalog) -> list[CatalogChange]:
    """Changes that make this catalog out of nothing."""
    empty = Catalog()
    changes: list[CatalogChange] = [
        *(PutSchema(name) for name in sorted(catalog.schemas - empty.schemas)),
        *(RemoveSchema(name) for name in sorted(empty.schemas - catalog.schemas)),
        *(PutTimeline(t) for name, t in catalog.timelines.items() if name not in empty.timelines),
        *(PutTable(table) for table in sorted(catalog.tables.values(), key=lambda t: t.oid)),
        *(PutReadHold(hold) for hold in catalog.read_holds.values()),
        *(PutObject(thing) for thing in sorted(catalog.objects.values(), key=lambda o: o.oid)),
        *(PutComment(Comment(subject, text)) for subject, text in catalog.comments.items()),
        *(PutRole(role) for role in catalog.roles.values()),
        *(PutPrivileges(subject, said) for subject, said in catalog.rights.items()),
        *(PutSettings(scope, (), texts) for scope, texts in catalog.settings.items()),
        *(AttachView(oid, view) for oid, view in catalog.exact_views.items()),
    ]
    made = apply_changes(empty, changes, version=catalog.version, replayed=True)
    assert made == catalog, "K4: a compacted history makes the same catalog"
    return changes


class VersionedCatalog:
    """All versions of the catalog, oldest first (K6)."""

    def __init__(self, history: Iterable[tuple[Timestamp, Iterable[CatalogChange]]] = ()) -> None:
        self._base = self._current = Catalog()
        self._steps = [_Step(Timestamp(0), (), 0)]
        self._made: dict[Timestamp, Catalog] = {}
        for ts, changes in history:
            self._append(_Step(ts, tuple(changes), len(self._steps)))
        self._current = self._applied(self._base, self._steps[1:])

    @classmethod
    def only(cls, catalog: Catalog) -> "VersionedCatalog":
        """A single version, true at every time: what timelines other than `system` have."""
        versioned = cls()
        versioned._base = versioned._current = catalog
        return versioned

    @property
    def current(self) -> Catalog:
        """The newest version."""
        return self._current

    def at(self, ts: Timestamp) -> Catalog:
        """The catalog as it was at `ts` (K1)."""
        return self._version(bisect.bisect_right(self._steps, ts, key=_step_ts) - 1)

    def changes_after(self, ts: Timestamp) -> Iterable[tuple[Timestamp, Sequence[CatalogChange]]]:
        """All DDL committed after `ts`, in order; no version is made for it."""
        first = bisect.bisect_right(self._steps, ts, key=_step_ts)
        return [(step.ts, step.changes) for step in self._steps[first:]]

    def made_after(self, ts: Timestamp) -> Iterable[CatalogChange]:
        """These changes one by one."""
        return (change for _, changes in self.changes_after(ts) for change in changes)

    def put(self, ts: Timestamp, catalog: Catalog, changes: Iterable[CatalogChange]) -> None:
        """The newest version, true from `ts` on, and what made it of the one before."""
        self._remember(self._steps[-1].ts, self._current)
        self._append(_Step(ts, tuple(changes), catalog.version))
        self._current = catalog

    def prune(self, since: Timestamp) -> None:
        """Forget versions that no `at(t >= since)` can give."""
        keep = bisect.bisect_right(self._steps, since, key=_step_ts) - 1
        if keep <= 0:
            return
        self._base = self._version(keep)
        del self._steps[:keep]
        first = self._steps[0].ts
        self._made = {ts: made for ts, made in self._made.items() if ts > first}

    def _append(self, step: "_Step") -> None:
        assert step.ts > self._steps[-1].ts, "K1: catalogs come in the order of their timestamps"
        self._steps.append(step)

    def _version(self, place: int) -> Catalog:
        if place == len(self._steps) - 1:
            return self._current
        if place <= 0:
            return self._base
        ts = self._steps[place].ts
        known = self._made.get(ts)
        if known is None:
            known = self._applied(self._base, self._steps[1 : place + 1])
            self._remember(ts, known)
        return known

    def _remember(self, ts: Timestamp, catalog: Catalog) -> None:
        self._made[ts] = catalog
        if len(self._made) > MATERIALIZED_VERSIONS_MAX:
            del self._made[next(iter(self._made))]

    def _applied(self, base: Catalog, steps: Sequence["_Step"]) -> Catalog:
        if not steps:
            return base
        changes = (change for step in steps for change in step.changes)
        return apply_changes(base, changes, version=steps[-1].version, replayed=True)


@dataclass(frozen=True, slots=True)
class _Step:
    """What made a version: DDL committed at `ts`."""

    ts: Timestamp
    changes: tuple[CatalogChange, ...]
    version: int


def _step_ts(step: _Step) -> Timestamp:
    return step.ts
