"""The sequences that belong to a table's columns, when ALTER TABLE changes these.

INVARIANTS
  Q1  a sequence belongs to a column whatever that is called, and goes with it; what fills a column
      anew under another field takes its sequences along.
  Q2  a sequence that is somebody's default does not go unless CASCADE takes the default, too.
"""

from dataclasses import replace

from pglast.enums import DropBehavior

from sql.altering import Altering
from sql.bind_columns import Parts
from sql.bind_views import told_views, views_over
from sql.catalog import Column, Table
from sql.catalog_objects import SequenceDefinition
from sql.definition_statements import cascades
from sql.errors import SqlError
from sql.kept_texts import default_of
from sql.sequence_users import told_uses, uses, uses_of, without_default
from sql.syntax import Node


def drop_sequences_of(work: Altering, column: Column, command: Node) -> None:
    """The sequences of a column go with it; 2BP01 if they are defaults of others (Q2)."""
    owned = _owned(work, column)
    work.dropped += owned
    gone = {sequence.oid for sequence in owned}
    catalog = work.binding.context.catalog
    used = [use for use in uses_of(catalog, gone) if use.kept.of.oid != work.before.oid]
    views = views_over(catalog, gone)
    own = [user for user in work.table.columns if uses(user, gone) and user.field != column.field]
    if not used and not own and not views:
        return
    told = [default_of(work.table, user, "").what for user in own]
    if not used and not views and command.behavior == DropBehavior.DROP_CASCADE:
        work.notices += cascades([f"drop cascades to {what}" for what in told])
        for user in own:
            work.define(user.name, without_default)
        return
    message = (
        f"cannot drop column {column.name} of table {work.table.name} because other objects "
        "depend on it"
    )
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    if command.behavior == DropBehavior.DROP_CASCADE:
        # It would take defaults from other tables, which this statement does not alter.
        hint = "Drop the defaults that use it first."
    told = [f"{what} depends on sequence {owned[0].name}" for what in told]
    told += [*told_uses(used), *told_views(catalog, views, gone)]
    raise SqlError("2BP01", message, detail="\n".join(told), hint=hint)


def parts_of(work: Altering) -> Parts:
    """For a new column: the names of sequences that are taken by now, and those that are not."""
    freed = [thing.name for thing in work.dropped if isinstance(thing, SequenceDefinition)]
    return Parts(work.table.schema, work.table.name, taken=[*work.sequences.values()], freed=freed)


def follow_columns(work: Altering) -> None:
    """Drop the sequences of columns that are no more; the others follow their columns (Q1)."""
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
            change(work, replace(latest(work, sequence), owner_field=column.field))
    gone = {thing.oid for thing in work.dropped}
    work.changed = [thing for thing in work.changed if thing.oid not in gone]


def latest(work: Altering, sequence: SequenceDefinition) -> SequenceDefinition:
    """A sequence as the actions so far have left it."""
    for thing in work.changed:
        if isinstance(thing, SequenceDefinition) and thing.oid == sequence.oid:
            return thing
    return sequence


def change(work: Altering, after: SequenceDefinition) -> None:
    """Another definition of a sequence; one version more, whatever the number of actions."""
    (known,) = (s for s in work.binding.context.catalog.sequences() if s.oid == after.oid)
    others = [thing for thing in work.changed if thing.oid != after.oid]
    work.changed = [*others, replace(after, version=known.version + 1)]


def _owned(work: Altering, column: Column) -> list[SequenceDefinition]:
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
