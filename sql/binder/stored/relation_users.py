"""Find stored expressions that depend on a relation, mostly defaults that call nextval().

    DEFAULT nextval('s')            Column.sequence         'x' || nextval('s')    in its text

Dependent views are in `views.py`, foreign keys in `ddl/foreign_keys.py`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.stored_texts import StoredText, texts_depending_on
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import (
    CatalogObject,
    IndexDefinition,
    SequenceDefinition,
    StatisticsDefinition,
    ViewDefinition,
)
from sql.errors import SqlError, not_supported
from sql.statements.ddl import Redefinition

_HINT = "Use DROP ... CASCADE to drop the dependent objects too."


@dataclass(frozen=True, slots=True)
class StoredUse:
    """A stored expression that depends on a relation.

    `on`: the relation, as messages name it. `kept.column`: the column whose default it is.
    """

    on: str
    kept: StoredText


def stored_uses_of(
    catalog: Catalog, oids: Collection[int], path: Sequence[str] | None = None
) -> list[StoredUse]:
    """The stored expressions that depend on these relations; view queries apart.

    `path`: relations outside these schemas are named with their schema.
    """
    found = [
        (oid, kept)
        for oid, kept in texts_depending_on(catalog, oids)
        if not isinstance(kept.of, ViewDefinition) or kept.column is not None
    ]
    names = _names(catalog, {oid for oid, _ in found}, path)
    found.sort(key=lambda entry: entry[1].of.oid)
    return [StoredUse(names[oid], kept) for oid, kept in found]


def _names(catalog: Catalog, oids: Collection[int], path: Sequence[str] | None) -> dict[int, str]:
    relations: list[Table | CatalogObject] = [*catalog.tables.values(), *catalog.objects.values()]

    def described(thing: Table | CatalogObject) -> str:
        return f"{thing.kind} {relation_display_name(thing, path)}"

    return {thing.oid: described(thing) for thing in relations if thing.oid in oids}


def relation_display_name(thing: Table | CatalogObject, path: Sequence[str] | None) -> str:
    """A relation's name as messages show it."""
    return thing.shown if path is None or thing.schema in path else thing.qualified


def columns_fed_by(
    catalog: Catalog, sequence: SequenceDefinition
) -> Sequence[tuple[Table, Column]]:
    """The columns whose default is just the sequence's next value."""
    return [
        (table, column)
        for table in catalog.tables.values()
        for column in table.columns
        if column.sequence == sequence.oid
    ]


def with_owned_sequences(catalog: Catalog, tables: Collection[int]) -> set[int]:
    """The tables, and the sequences that they own."""
    return {*tables, *(s.oid for s in catalog.sequences() if s.owner in tables)}


def outside_uses_of(catalog: Catalog, tables: Collection[int]) -> list[StoredUse]:
    """Dependencies of other objects on these tables and on the sequences that they own."""
    return [
        use
        for use in stored_uses_of(catalog, with_owned_sequences(catalog, tables))
        if use.kept.of.oid not in tables and not _is_index_of(use.kept.of, tables)
    ]


def _is_index_of(thing: Table | CatalogObject, tables: Collection[int]) -> bool:
    return isinstance(thing, IndexDefinition | StatisticsDefinition) and thing.table in tables


DroppedAlong: TypeAlias = Mapping[int, Sequence[tuple[str, str]]]
"""The objects dropped together with a domain, by its oid: each with the object that it depends
on.
"""


def use_dependency_details(
    used: Sequence[StoredUse], along: DroppedAlong = MappingProxyType({})
) -> Iterator[str]:
    """The lines of DETAIL of 2BP01."""
    for use in used:
        yield f"{use.kept.what} depends on {use.on}"
        yield from (f"{what} depends on {on}" for what, on in along.get(use.kept.of.oid, ()))


def cascade_notices(
    used: Sequence[StoredUse], *, views: bool = False, along: DroppedAlong = MappingProxyType({})
) -> Iterator[str]:
    """The lines of the notice of CASCADE.

    0A000 for anything but a table's default. `views`: view defaults are allowed too; `along`: so
    are domains that are dropped with their columns.
    """
    told: list[str] = []
    for use in used:
        of = use.kept.of
        refused = use.kept.column is None and of.oid not in along
        if refused or (isinstance(of, ViewDefinition) and not views):
            what = f'DROP .. CASCADE while the definition of "{use.kept.what}" names {use.on}'
            raise not_supported(what)
        told += [use.kept.what, *(what for what, _ in along.get(of.oid, ()))]
    yield from (f"drop cascades to {what}" for what in dict.fromkeys(told))


def dependent_objects_still_exist(dropped: Sequence[str], told: Sequence[str]) -> SqlError:
    """2BP01 for objects that others depend on. `dropped`: their descriptions in messages."""
    message = f"cannot drop {dropped[0]} because other objects depend on it"
    if len(dropped) > 1:
        message = "cannot drop desired object(s) because other objects depend on them"
    return SqlError("2BP01", message, detail="\n".join(told), hint=_HINT)


def without_defaults(
    catalog: Catalog, gone: Collection[int], changed: Sequence[Redefinition] = ()
) -> tuple[Redefinition, ...]:
    """The tables without the defaults that use these relations; some tables are `changed`
    already.
    """
    found = {change.before.oid: change for change in changed}
    for table in catalog.tables.values() if gone else ():
        if any(default_uses_relation(column, gone) for column in table.columns):
            known = found.get(table.oid)
            after = replace(table, version=table.version + 1) if known is None else known.after
            columns = tuple(
                without_default(column) if default_uses_relation(column, gone) else column
                for column in after.columns
            )
            found[table.oid] = Redefinition(table, replace(after, columns=columns))
    return tuple(found.values())


def views_without_defaults(catalog: Catalog, gone: Collection[int]) -> tuple[ViewDefinition, ...]:
    """The views without the defaults that use these relations."""
    changed: list[ViewDefinition] = []
    for view in catalog.views():
        left = tuple(d for d in view.defaults if {*gone}.isdisjoint(named_relations(d[1])))
        if left != view.defaults and view.oid not in gone:
            changed.append(replace(view, defaults=left, version=view.version + 1))
    return tuple(changed)


def default_uses_relation(column: Column, relations: Collection[int]) -> bool:
    """Whether a column's own default uses one of these relations."""
    if column.sequence:
        return column.sequence in relations
    if column.expression is None or column.default_of_domain:
        return False
    return not set(relations).isdisjoint(named_relations(column.expression))


def without_default(column: Column) -> Column:
    """The column without its default."""
    return replace(column, sequence=0, has_default=False, default=None, expression=None)
