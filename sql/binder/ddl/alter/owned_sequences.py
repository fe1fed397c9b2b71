"""Keep the sequences that a table's columns own in step with ALTER TABLE.

INVARIANTS
  Q1  a sequence belongs to a column under any name, and is dropped with it. A column whose values
      are rewritten under another field keeps its sequences.
  Q2  a sequence that is used by another default is dropped only if CASCADE drops the default, too.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from pglast.enums import DropBehavior

from sql.binder.ddl.alter.dependents import drop_views_cascading
from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.columns import TableParts
from sql.binder.ddl.dropped_domains import domains_dropped_with
from sql.binder.stored.relation_users import (
    cascade_notices,
    default_uses_relation,
    stored_uses_of,
    use_dependency_details,
    views_without_defaults,
    without_default,
    without_defaults,
)
from sql.binder.stored.stored_names import named_relations
from sql.binder.stored.stored_texts import default_text_of
from sql.binder.stored.views import view_dependency_details, views_over
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import SequenceDefinition
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.statements.ddl import Redefinition, drop_cascade_notices

_CASCADE: Final = "drop cascades to "


def drop_owned_sequences(work: AlterTableState, column: Column, command: Node) -> None:
    """Drop the sequences that a column owns.

    If others use them, 2BP01; CASCADE drops those uses, too (Q2).
    """
    owned = _owned(work, column)
    # What used these has gone with an action before.
    left = {thing.oid for thing in work.dropped}
    work.dropped += owned
    gone = {sequence.oid for sequence in owned}
    catalog = work.binding.context.catalog
    used = [
        use
        for use in stored_uses_of(catalog, gone)
        if use.kept.of.oid != work.before.oid and left.isdisjoint(named_relations(use.kept.text))
    ]
    views = [view for view in views_over(catalog, gone) if view not in work.dropped]
    own = [
        user
        for user in work.table.columns
        if default_uses_relation(user, gone) and user.field != column.field
    ]
    if not used and not own and not views:
        return
    told = [default_text_of(work.table, user, "").what for user in own]
    if command.behavior == DropBehavior.DROP_CASCADE:
        told += [what.removeprefix(_CASCADE) for what in cascade_notices(used, views=True)]
        work.notices += drop_cascade_notices(
            [_CASCADE + what for what in told] + drop_views_cascading(work, views)
        )
        _without_defaults(work, gone)
        for user in own:
            work.define(user.name, without_default)
        return
    message = (
        f"cannot drop column {column.name} of table {work.table.shown} because other objects "
        "depend on it"
    )
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    told = [f"{what} depends on sequence {owned[0].shown}" for what in told]
    along = domains_dropped_with(catalog, used).told
    told += [*use_dependency_details(used, along), *view_dependency_details(catalog, views, gone)]
    raise SqlError("2BP01", message, detail="\n".join(told), hint=hint)


def _without_defaults(work: AlterTableState, gone: Collection[int]) -> None:
    """Other tables, and views, lose the defaults that use these sequences."""
    catalog = work.binding.context.catalog
    tables = {table.oid: table for table in catalog.tables.values()}
    known = [Redefinition(tables[oid], after) for oid, after in work.children.items()]
    for change in without_defaults(catalog, gone, known):
        if change.before.oid != work.before.oid:
            work.children[change.before.oid] = change.after
    # A view is made anew from the catalog's by each action: it loses what all of them take.
    views = views_without_defaults(catalog, {thing.oid for thing in work.dropped})
    known_views = {view.oid for view in views}
    others = [thing for thing in work.changed if thing.oid not in known_views]
    work.changed = [*others, *views]


def added_column_parts(work: AlterTableState) -> TableParts:
    """For a new column: sequence names that earlier actions have taken or freed."""
    freed = [thing.name for thing in work.dropped if isinstance(thing, SequenceDefinition)]
    taken = [*work.sequences.values()]
    return TableParts(work.table.schema, work.table.name, taken=taken, altered=True, freed=freed)


def sync_owned_sequences(work: AlterTableState) -> None:
    """Drop the sequences of dropped columns; the others follow their columns (Q1)."""
    before, after = work.before, work.table
    numbers = {after.number_of(at): column for at, column in enumerate(after.columns)}
    for sequence in work.binding.context.catalog.sequences():
        place = _place(before, sequence)
        if place is None or sequence in work.dropped:
            continue
        column = numbers.get(before.number_of(place))
        if column is None:
            work.dropped.append(sequence)
        elif column.field != sequence.owner_field:
            change_sequence(
                work, replace(latest_sequence(work, sequence), owner_field=column.field)
            )
    gone = {thing.oid for thing in work.dropped}
    work.changed = [thing for thing in work.changed if thing.oid not in gone]


def latest_sequence(work: AlterTableState, sequence: SequenceDefinition) -> SequenceDefinition:
    """A sequence as earlier actions have left it."""
    for thing in work.changed:
        if isinstance(thing, SequenceDefinition) and thing.oid == sequence.oid:
            return thing
    return sequence


def change_sequence(work: AlterTableState, after: SequenceDefinition) -> None:
    """Replace the definition of a sequence; its version grows by one, however many actions change
    it.
    """
    (known,) = (s for s in work.binding.context.catalog.sequences() if s.oid == after.oid)
    others = [thing for thing in work.changed if thing.oid != after.oid]
    work.changed = [*others, replace(after, version=known.version + 1)]


def _owned(work: AlterTableState, column: Column) -> list[SequenceDefinition]:
    place = next(
        (at for at, other in enumerate(work.before.columns) if other.field == column.field), None
    )
    sequences = work.binding.context.catalog.sequences()
    return [s for s in sequences if place is not None and _place(work.before, s) == place]


def _place(table: Table, sequence: SequenceDefinition) -> int | None:
    """Of the column that a sequence belongs to."""
    if sequence.owner != table.oid:
        return None
    fields = [column.field for column in table.columns]
    if sequence.owner_field in fields:
        return fields.index(sequence.owner_field)
    # Once a sequence did not follow a column that got another type: its default still tells.
    uses = (at for at, column in enumerate(table.columns) if column.sequence == sequence.oid)
    return next(uses, None)
