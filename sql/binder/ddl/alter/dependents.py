"""Foreign keys and views that depend on a column or key which ALTER TABLE drops or retypes.

A foreign key depends on a key of the other table. A view depends on a primary key if it shows
columns that its GROUP BY does not name. Dropping such a key, or a column of it, fails with 2BP01;
with CASCADE the dependents are dropped, too. When a column of either side of a foreign key changes
its type, the foreign key is validated again, whichever table it belongs to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto

from pglast.enums import DropBehavior

from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.foreign_keys import (
    check_foreign_key_types,
    dangling_foreign_keys,
    dropped_foreign_key_notices,
    foreign_key_dependency_details,
    foreign_key_validation,
    match_full_validations,
    without_foreign_key,
)
from sql.binder.stored.relation_users import dependent_objects_still_exist, stored_uses_of
from sql.binder.stored.table_changes import with_column_mapping
from sql.binder.stored.views import (
    view_can_be_bound,
    view_dependency_details,
    views_over,
    views_reading_column,
)
from sql.catalog.catalog import ForeignKey, Table
from sql.catalog.foreign_keys import is_reference_to_key, referencing_keys
from sql.catalog.objects import ViewDefinition
from sql.errors import not_supported
from sql.parser.syntax import Node
from sql.statements.ddl import Redefinition, Validation, drop_cascade_notices
from sql.types.sql_type import quoted_name


def apply_drop(work: AlterTableState, command: Node, after: Table, *, column: bool) -> None:
    """Make `after` the current table, which lacks a column or a constraint.

    Foreign keys and views that depend on it raise 2BP01, or are dropped with CASCADE.
    """
    lost = dangling_foreign_keys(
        work.binding.context.catalog, after, {**work.children, after.oid: after}
    )
    views = [] if column else _ungrouped_views(work, after)
    if (lost or views) and command.behavior != DropBehavior.DROP_CASCADE:
        name, table = command.name, after.shown
        if column:
            told = [
                line
                for child, key in lost
                for line in foreign_key_dependency_details(
                    _reason(work.table, name, key), [(child, key)]
                )
            ]
            raise dependent_objects_still_exist([f"column {name} of table {table}"], told)
        constraint = f"constraint {name} on table {table}"
        told = [
            *foreign_key_dependency_details(f"index {quoted_name(name)}", lost),
            *_told_views(work, views, constraint),
        ]
        raise dependent_objects_still_exist([constraint], told)
    work.notices += drop_cascade_notices(
        [*dropped_foreign_key_notices(lost), *drop_views_cascading(work, views)]
    )
    for child, key in lost:
        if child.oid == after.oid:
            after = without_foreign_key(after, key)
        else:
            left = work.children.get(child.oid, child)
            work.children[child.oid] = without_foreign_key(left, key)
    work.table = after


def _reason(table: Table, name: str, foreign: ForeignKey) -> str:
    """What a foreign key loses with a column: that, or an index which only includes it."""
    ordinal = next(at for at, column in enumerate(table.columns) if column.name == name)
    if table.number_of(ordinal) in foreign.references:
        return f"column {name} of table {table.shown}"
    key = next(key for key in table.keys if is_reference_to_key(table, foreign, key))
    return f"index {quoted_name(key.name)}"


def foreign_key_revalidations(
    work: AlterTableState, after: Table
) -> tuple[list[Validation], list[Table]]:
    """Validations of the foreign keys over columns whose values change, on either side.

    Also the tables other than `after` that they read. Raises 42804 for types that do not compare.
    """
    looked: list[Validation] = []
    beside: dict[int, Table] = {}
    for child, foreign in _touching(work, after):
        parent = after if foreign.table == after.oid else _in_catalog(work, foreign.table)
        own = {child.number_of(at) for at in foreign.columns} if child is after else set[int]()
        numbers = own | ({*foreign.references} if parent is after else set())
        changed = [_change(work, after, number) for number in sorted(numbers)]
        if not any(changed):
            continue
        check_foreign_key_types(child, parent, foreign.name, foreign.columns, foreign.references)
        if _Change.VALUES not in changed:
            continue
        beside |= {table.oid: table for table in (child, parent) if table is not after}
        if foreign.validated:
            looked += match_full_validations(work.binding, child, foreign)
            looked.append(foreign_key_validation(work.binding, child, parent, foreign))
    return looked, [*beside.values()]


def _touching(work: AlterTableState, after: Table) -> Iterator[tuple[Table, ForeignKey]]:
    """The foreign keys of a table and those that refer to it, which were there before and still
    are, each with its table.
    """
    kept = {key.name for key in work.before.foreign_keys}
    yield from ((after, key) for key in after.foreign_keys if key.name in kept)
    for child, foreign in referencing_keys(work.binding.context.catalog, after.oid):
        now = work.children.get(child.oid, child)
        if child.oid != after.oid and foreign in now.foreign_keys:
            yield now, foreign


def _in_catalog(work: AlterTableState, oid: int) -> Table:
    found = work.binding.context.catalog.by_oid(oid)
    assert found is not None, "a table that is referred to is there"
    return found


class _Change(Enum):
    TYPE = auto()
    VALUES = auto()


def _change(work: AlterTableState, after: Table, number: int) -> _Change | None:
    """What has happened to a column."""
    old = work.before.columns[work.before.ordinal_of(number)]
    new = after.columns[after.ordinal_of(number)]
    # A table that has been altered first now calls its fields so.
    first = with_column_mapping(work.before).columns[work.before.ordinal_of(number)]
    if new.field not in (old.field, first.field):
        return _Change.VALUES
    return None if new.type == old.type else _Change.TYPE


def altered_children(work: AlterTableState) -> Iterator[Redefinition]:
    """Other tables, without the foreign keys that CASCADE dropped."""
    for oid, after in work.children.items():
        before = work.binding.context.catalog.by_oid(oid)
        assert before is not None, "it was found in the catalog"
        yield Redefinition(before, replace(after, version=before.version + 1))


def drop_views_reading(work: AlterTableState, command: Node, name: str) -> list[str]:
    """Drop the views that read a dropped column and return their notices; 2BP01 without CASCADE."""
    table = work.table
    number = table.number_of(work.ordinal(name))
    catalog = work.binding.context.catalog
    reading = views_reading_column(catalog, table.oid, number)
    views = sorted([v for v in reading if v not in work.dropped], key=lambda view: view.oid)
    if not views:
        return []
    if command.behavior == DropBehavior.DROP_CASCADE:
        return drop_views_cascading(work, views)
    column = f"column {name} of table {table.shown}"
    raise dependent_objects_still_exist([column], _told_views(work, views, column))


def _ungrouped_views(work: AlterTableState, after: Table) -> list[ViewDefinition]:
    """The views whose GROUP BY names a primary key and needs that it is one: those that cannot
    be bound to the table without it.
    """
    primary = [key for key in work.table.keys if key.primary]
    if all(key in after.keys for key in primary):
        return []
    binding = work.binding
    catalog = binding.context.catalog
    tables = {**catalog.tables, (after.schema, after.name): after}
    context = replace(binding.context, catalog=replace(catalog, tables=tables))
    fresh = binding.fresh(context)
    views = sorted(catalog.defined_views(), key=lambda view: view.oid)
    return [
        view
        for view in views
        if view not in work.dropped
        and any(relation[2] == after.oid for relation in view.relations)
        and not view_can_be_bound(fresh, view)
    ]


def _told_views(work: AlterTableState, views: Sequence[ViewDefinition], rest: str) -> list[str]:
    """`view v depends on ..`, each with the views over it, for the detail of 2BP01."""
    catalog = work.binding.context.catalog
    told: list[str] = []
    for view in views:
        over = views_over(catalog, [view.oid])
        told += [
            f"{view.kind} {view.shown} depends on {rest}",
            *view_dependency_details(catalog, over, [view.oid]),
        ]
    return list(dict.fromkeys(told))


def drop_views_cascading(work: AlterTableState, views: Sequence[ViewDefinition]) -> list[str]:
    """Drop views and the views over them, each after its base; returns the notices."""
    catalog = work.binding.context.catalog
    gone: dict[int, ViewDefinition] = {}
    for view in views:
        for found in (view, *views_over(catalog, [view.oid])):
            if found not in work.dropped:
                gone.setdefault(found.oid, found)
    if stored_uses_of(catalog, gone):
        raise not_supported("DROP .. CASCADE of a view that a default names")
    work.dropped += gone.values()
    return [f"drop cascades to {view.kind} {view.shown}" for view in gone.values()]
