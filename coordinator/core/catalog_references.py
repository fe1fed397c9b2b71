"""Check the referential integrity of a catalog: every object that it refers to exists.

    Catalog ─▶ misfits ─▶ "index i is of the relation 16400, which is not there", or nothing
    before, after, changes ─▶ new_misfit ─▶ the first that was not there before

INVARIANTS
  F1  a catalog that is committed has no misfit that the one before had not: of two transactions,
      one of which drops what the other refers to, the second is refused at every isolation level.

`meridian check` reports all misfits. Not here: conflicts that show only in comparison with the
catalog that a definition was bound to (`definition_conflicts.py`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.core.catalog_annotations import subject_exists
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutTable,
    RemoveObject,
    RemoveTable,
)
from coordinator.core.privilege_changes import is_builtin_subject, missing_role
from coordinator.core.relation_names import duplicate_relation_names
from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.stored_texts import stored_texts_of
from sql.catalog.catalog import Catalog, Column, ForeignKey, Table
from sql.catalog.objects import (
    TYPE_SPACE,
    CatalogObject,
    ConnectionDefinition,
    Domain,
    EnumDefinition,
    IndexDefinition,
    SequenceDefinition,
    SourceDefinition,
    StatisticsDefinition,
    ViewDefinition,
)
from sql.catalog.roles import BUILT_IN_ROLES
from sql.types.enums import is_enum

Thing: TypeAlias = Table | CatalogObject


@dataclass(frozen=True, slots=True)
class _There:
    """What a catalog has to be referred to: tables, views and all by oid; enums, domains."""

    tables: Mapping[int, Table]
    objects: Mapping[int, CatalogObject]
    enums: frozenset[str]
    domains: frozenset[Domain]
    timelines: frozenset[str]

    def table(self, oid: int) -> Table | None:
        """The table with this oid."""
        return self.tables.get(oid)

    def thing(self, oid: int) -> Thing | None:
        """What has this oid."""
        return self.tables.get(oid) or self.objects.get(oid)

    def things(self) -> Iterator[Thing]:
        """All tables, then all else."""
        yield from self.tables.values()
        yield from self.objects.values()


@dataclass(frozen=True, slots=True)
class BrokenReference:
    """What does not fit, and why."""

    what: str
    why: str


def broken_references(catalog: Catalog) -> Iterator[BrokenReference]:
    """References to objects that do not exist or do not have the expected form (F1)."""
    there = _there(catalog)
    yield from (BrokenReference("catalog", why) for why in _places(catalog))
    yield from _of(there, there.things())
    yield from (BrokenReference("catalog", why) for why in _said(catalog))


def new_broken_reference(
    before: Catalog, after: Catalog, changes: Iterable[CatalogChange]
) -> BrokenReference | None:
    """What does not fit since these changes (F1). Older versions have let some be.

    Where nothing was taken away, only what was put can refer to what is not there.
    """
    there = _there(after)
    put = {thing.oid for change in changes if (thing := _thing(change)) is not None}
    concerned = [thing for oid in put if (thing := there.thing(oid)) is not None]
    if any(_takes_away(before, change) for change in changes):
        concerned = [*there.things()]
    misfits = [*_of(there, concerned)]
    known = _there(before) if misfits else there
    old = {*_of(known, known.things())} if misfits else set[BrokenReference]()
    return next((misfit for misfit in misfits if misfit not in old), None)


def _there(catalog: Catalog) -> _There:
    return _There(
        catalog.named_tables.by_oid,
        {thing.oid: thing for thing in catalog.objects.values()},
        frozenset(enum.type.name for enum in catalog.enums()),
        frozenset(domain.domain for domain in catalog.domains()),
        frozenset(catalog.timelines),
    )


def _thing(change: CatalogChange) -> Thing | None:
    match change:
        case PutTable(table=thing) | PutObject(object=thing):
            return thing
        case _:
            return None


def _takes_away(before: Catalog, change: CatalogChange) -> bool:
    """Whether something may be gone that others refer to: a thing, a column, a key, a value."""
    match change:
        case RemoveTable() | RemoveObject():
            return True
        case PutObject(object=thing):
            return thing.space == TYPE_SPACE and thing.version > 0
        case PutTable(table=table) if table.version:
            known = before.tables.get((table.schema, table.name))
            if known is None or known.oid != table.oid:
                known = before.by_oid(table.oid)
            return known is None or not _parts(known) <= _parts(table)
        case _:
            return False


def _parts(table: Table) -> set[object]:
    """What others may refer to: the numbers of columns, their fields, the columns of keys."""
    numbers = [table.number_of(at) for at in range(len(table.columns))]
    keys = (frozenset(table.number_of(at) for at in key.columns) for key in table.keys)
    return {*numbers, *(column.field for column in table.columns), *keys}


def _of(there: _There, things: Iterable[Thing]) -> Iterator[BrokenReference]:
    """What these refer to and is not there."""
    for thing in things:
        kind = thing.kind
        found = _table(there, thing) if isinstance(thing, Table) else _object(there, thing)
        yield from (BrokenReference(f"{kind} {thing.qualified}", why) for why in found)
        for kept in stored_texts_of(thing):
            for oid in named_relations(kept.text):
                if there.thing(oid) is None:
                    why = f"{kept.what} names the relation {oid}, which is not there"
                    yield BrokenReference(f"{kind} {thing.qualified}", why)


def _places(catalog: Catalog) -> Iterator[str]:
    """Names, schemas and oids."""
    for (schema, name), table in catalog.tables.items():
        if (schema, name) != (table.schema, table.name):
            yield f"table {table.qualified} is found as {schema}.{name}"
    for (space, schema, name), made in catalog.objects.items():
        if (space, schema, name) != (made.space, made.schema, made.name):
            yield f"{made.kind} {made.qualified} is found as {space} {schema}.{name}"
    for schema, name in sorted(duplicate_relation_names(catalog)):
        yield f"more than one relation is called {schema}.{name}"
    things: list[Thing] = [*catalog.tables.values(), *catalog.objects.values()]
    for thing in things:
        if thing.schema not in catalog.schemas:
            yield f"{thing.qualified} is in a schema that is not there"
    arrays = (thing.array for thing in things if isinstance(thing, EnumDefinition))
    oids = Counter([*(thing.oid for thing in things), *arrays, *catalog.roles])
    yield from (f"oid {oid} belongs to {count} things" for oid, count in oids.items() if count > 1)


def _table(there: _There, table: Table) -> Iterator[str]:
    if table.timeline not in there.timelines:
        yield f"is in timeline {table.timeline}, which is not there"
    numbers = [table.number_of(at) for at in range(len(table.columns))]
    yield from _twice("column", [column.name for column in table.columns])
    yield from _twice("field", [column.field for column in table.columns])
    yield from _twice("number of a column", [str(number) for number in numbers])
    for column in table.columns:
        for problem in _column(there, table, column):
            yield f"column {column.name} {problem}"
    over = [(key.name, (*key.columns, *key.include)) for key in table.keys]
    over += [(key.name, key.columns) for key in table.foreign_keys]
    for name, columns in over:
        if any(not 0 <= at < len(table.columns) for at in columns):
            yield f"constraint {name} is over a column that is not there"
    for key in table.foreign_keys:
        yield from _foreign_key(there, key)
    if table.feed is not None and not isinstance(there.thing(table.feed.source), SourceDefinition):
        yield f"is fed by the source {table.feed.source}, which is not there"
    view = table.materialized_view
    if view is not None:
        yield from _view(there, view)
    yield from (f"is clustered by column {n}, not there" for n in {*table.clustered} - {*numbers})


def _twice(what: str, found: Collection[str]) -> Iterator[str]:
    for one, count in Counter(found).items():
        if count > 1:
            yield f"has {what} {one} more than once"


def _column(there: _There, table: Table, column: Column) -> Iterator[str]:
    if column.sequence:
        sequence = there.thing(column.sequence)
        if not isinstance(sequence, SequenceDefinition):
            yield f"takes its values of the sequence {column.sequence}, which is not there"
        elif column.identity and (sequence.owner, sequence.owner_field) != (
            table.oid,
            column.field,
        ):
            yield f"is an identity of {sequence.qualified}, which belongs to another column"
    name = column.type.name.removeprefix("_")
    if is_enum(name) and name not in there.enums:
        yield "is of an enum that is not there, or not so"
    domain = column.domain
    if domain is not None and domain not in there.domains:
        yield f"is of the domain {domain.name}, which is not there, or not so"


def _foreign_key(there: _There, key: ForeignKey) -> Iterator[str]:
    """Columns of the other table are known by number, those of its keys by place; any order."""
    other = there.table(key.table)
    if other is None:
        yield f"constraint {key.name} refers to the table {key.table}, which is not there"
        return
    keys = [{other.number_of(at) for at in one.columns} for one in other.keys]
    if {*key.references} not in keys:
        yield f"constraint {key.name} refers to columns of {other.qualified} that are no key"


def _object(there: _There, thing: CatalogObject) -> Iterator[str]:
    match thing:
        case SequenceDefinition(owner=owner) if owner:
            table = there.table(owner)
            if table is None:
                yield f"belongs to the table {owner}, which is not there"
            elif thing.owner_field not in {column.field for column in table.columns}:
                yield f"belongs to a column of {table.qualified} that is not there"
            elif thing.schema != table.schema:
                yield f"is in another schema than {table.qualified}, whose column has it"
        case IndexDefinition(table=oid):
            table = there.table(oid)
            if table is None:
                yield f"is of the table {oid}, which is not there"
            elif thing.schema != table.schema:
                yield f"is in another schema than {table.qualified}, whose rows it is of"
        case StatisticsDefinition(table=oid):
            table = there.table(oid)
            if table is None:
                yield f"is of the table {oid}, which is not there"
            elif any(table.column_numbered(number) is None for number in thing.columns):
                yield f"is of a column of {table.qualified} that is not there"
        case ViewDefinition():
            yield from _view(there, thing)
        case SourceDefinition(connection=oid) if oid:
            if not isinstance(there.thing(oid), ConnectionDefinition):
                yield f"is read by the connection {oid}, which is not there"
        case _:
            pass


def _view(there: _There, view: ViewDefinition) -> Iterator[str]:
    used = [(oid, 0) for _, _, oid, _, _ in view.relations]
    for oid, number in dict.fromkeys([*used, *view.uses]):
        found = there.thing(oid)
        if found is None:
            yield f"uses the relation {oid}, which is not there"
        elif number and isinstance(found, Table) and found.column_numbered(number) is None:
            yield f"uses column {number} of {found.qualified}, which is not there"
    if any(place >= len(view.columns) for place, _ in view.defaults):
        yield "has a default for a column that is not there"


def _said(catalog: Catalog) -> Iterator[str]:
    """Comments and rights (Q1 of `catalog_annotations.py`, U4 of `privilege_changes.py`)."""
    things = (catalog.tables, catalog.objects, {*catalog.schemas}, catalog.roles)
    for subject in catalog.comments:
        if not subject_exists(subject, *things):
            yield f"a comment is on {subject}, which is not there"
    for subject in catalog.rights:
        if not (is_builtin_subject(subject) or subject_exists(subject, *things)):
            yield f"rights are of {subject}, which is not there"
    for scope in catalog.settings:
        if scope.role and scope.role not in catalog.roles and scope.role not in BUILT_IN_ROLES:
            yield f"settings are of the role {scope.role}, which is not there"
    role = missing_role(catalog.roles, catalog.rights)
    if role is not None:
        yield f"the role {role} is named, and not there"
