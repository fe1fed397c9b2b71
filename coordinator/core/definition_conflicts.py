"""Detect DDL conflicts: definitions of concurrent transactions that depend on each other.

    bound ─┬─ own DDL ────────▶ own    made: a view, a check ..      changed: a table, an enum ..
           └─ that of others ─▶ now      └───────── does it depend ──────────┘ ? both ways

A transaction that defines an object reads the objects that the definition depends on, and one that
changes an object reads its dependents. Two transactions that have not seen each other may do both,
and no version number shows it. A stored text would then name a type that is called otherwise now, a
label that does not exist, or an index a missing column.

INVARIANTS
  B1  at every isolation level a definition is committed only if the objects that it depends on are
      as they were when the definition was bound;
  B2  and an object is changed or dropped only if the transaction has seen all of its dependents;
  B3  likewise for names of schemas and constraints, by which comments and privileges refer to them.

Not here: missing references, which can be found without knowing the bound catalog
(`catalog_references.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.core.catalog_annotations import subject_exists
from sql.binder.stored.stored_texts import stored_texts_of, types_named_in
from sql.catalog.catalog import Catalog, Table
from sql.catalog.extensions import calls_extension, installed_extensions
from sql.catalog.objects import (
    CatalogObject,
    IndexDefinition,
    SequenceDefinition,
    StatisticsDefinition,
    Subject,
    ViewDefinition,
    relations_used_by,
)

Thing: TypeAlias = Table | CatalogObject


@dataclass(frozen=True, slots=True)
class _Delta:
    """What is other in a catalog than in the one before, by oid.

    `made`: as it is now. `changed`: as it was before, if it was there.
    """

    made: Mapping[int, Thing]
    changed: Mapping[int, Thing]


def find_definition_conflict(bound: Catalog, own: Catalog, now: Catalog) -> str | None:
    """What was changed beside who has made `own` of `bound`, though one rests on the other."""
    if bound is now or bound is own:
        return None
    ours, theirs = _delta(bound, own), _delta(bound, now)
    found = _below(ours, theirs, bound, own) or _below(theirs, ours, bound, now)
    if found is not None:
        return f'{found.kind} "{found.name}" was changed by a concurrent transaction'
    if _unsaid(bound, own, now) or _unsaid(bound, now, own):
        return "what something is said about was changed by a concurrent transaction"
    return None


def _delta(before: Catalog, after: Catalog) -> _Delta:
    return _Delta(
        {thing.oid: thing for thing in _other_than(before, after)},
        {thing.oid: thing for thing in _other_than(after, before)},
    )


def _other_than(known: Catalog, catalog: Catalog) -> list[Thing]:
    """What a catalog has that another one has not, or not so."""
    table, thing = known.tables.get, known.objects.get
    found: list[Thing] = [one for name, one in catalog.tables.items() if table(name) is not one]
    return found + [one for place, one in catalog.objects.items() if thing(place) is not one]


def _below(makers: _Delta, changers: _Delta, bound: Catalog, catalog: Catalog) -> Thing | None:
    """What one side has changed and the other, which made this catalog, has made something over.

    A part of a definition that was there before was seen by whoever changed what it is made over.
    """
    if not changers.changed:
        return None
    for oid, thing in makers.made.items():
        before = makers.changed.get(oid)
        seen = set[_Rest]() if before is None else {*_rests(bound, before)}
        for part, below in _rests(catalog, thing):
            if below in changers.changed and (part, below) not in seen:
                return changers.changed[below]
    return None


_Rest: TypeAlias = tuple[object, int]
"""A part of a definition, and the oid of a table, view or type that it is made over."""


def _rests(catalog: Catalog, thing: Thing) -> Iterator[_Rest]:
    match thing:
        case Table():
            yield from ((key, key.table) for key in thing.foreign_keys)
            view = thing.materialized_view
            if view is not None:
                yield from _rests_of_view(catalog, view)
        case ViewDefinition():
            yield from _rests_of_view(catalog, thing)
        case IndexDefinition():
            yield (thing.elements, thing.options, thing.predicate, thing.include), thing.table
        case StatisticsDefinition():
            yield (thing.columns, thing.expressions), thing.table
        case SequenceDefinition(owner=owner) if owner:
            yield thing.owner_field, owner
        case _:
            pass
    yield from _named(catalog, thing)


def _rests_of_view(catalog: Catalog, view: ViewDefinition) -> Iterator[_Rest]:
    """Also what the views below it are made over: that is what its columns' types come from."""
    part = view.text, view.columns, view.relations
    views = {found.oid: found for found in catalog.defined_views()}
    waiting, known = [view], {view.oid}
    while waiting:
        one = waiting.pop()
        yield from ((part, oid) for _, oid in _named(catalog, one))
        for oid in relations_used_by(one):
            yield part, oid
            if oid in views and oid not in known:
                known.add(oid)
                waiting.append(views[oid])


def _named(catalog: Catalog, thing: Thing) -> Iterator[_Rest]:
    """The types that its texts name, and the extensions whose functions they call."""
    extensions = [*installed_extensions(catalog)]
    for kept in stored_texts_of(thing):
        for extension in extensions:
            if calls_extension(kept.text, extension.name):
                yield kept.text, extension.oid
        for schema, name in types_named_in(kept):
            found = catalog.type_named(schema, name)
            if found is not None:
                yield kept.text, found.oid


def _unsaid(bound: Catalog, makers: Catalog, changers: Catalog) -> bool:
    """Whether one side says something else about a name that the other has taken away (B3)."""
    return any(
        _has(bound, subject) and not _has(changers, subject)
        for said, before in ((makers.comments, bound.comments), (makers.rights, bound.rights))
        for subject in said.keys() | before.keys()
        if isinstance(subject.of, str) or isinstance(subject.part, str)
        if said.get(subject) != before.get(subject)
    )


def _has(catalog: Catalog, subject: Subject) -> bool:
    return subject_exists(
        subject, catalog.tables, catalog.objects, {*catalog.schemas}, catalog.roles
    )
