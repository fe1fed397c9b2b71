"""What ALTER TABLE may not do to columns and keys that foreign keys and views rest on.

A foreign key rests on a key of the other table. When that key is dropped, or a column of it, the
foreign key forbids it (2BP01), or with CASCADE goes along.
"""

from collections.abc import Iterator
from dataclasses import replace

from pglast.enums import DropBehavior

from sql.altering import Altering
from sql.bind_foreign_keys import children, losing, lost_key, lost_notices, without_key
from sql.bind_views import told_views, views_over
from sql.catalog import Table
from sql.definition_statements import Redefinition, cascades
from sql.errors import SqlError, not_supported
from sql.syntax import Node


def let_go(work: Altering, command: Node, after: Table, *, column: bool) -> None:
    """The table becomes `after`, by an action that drops a column or a constraint of it; foreign
    keys that lose what they rest on are 2BP01, or go along.
    """
    lost = losing(work.binding.context.catalog, after, {**work.children, after.oid: after})
    if lost and command.behavior != DropBehavior.DROP_CASCADE:
        name, table = command.name, after.name
        if column:
            column_of = f"column {name} of table {table}"
            raise lost_key(column_of, column_of, lost)
        raise lost_key(f"constraint {name} on table {table}", f"index {name}", lost)
    work.notices += cascades(lost_notices(lost))
    for child, key in lost:
        if child.oid == after.oid:
            after = without_key(after, key)
        else:
            left = work.children.get(child.oid, child)
            work.children[child.oid] = without_key(left, key)
    work.table = after


def check_types(work: Altering) -> None:
    """0A000 for another type of a column that a foreign key has or refers to."""
    before, after = work.before, work.table
    for child, foreign in children(work.binding.context.catalog, before.oid):
        now = after if child.oid == after.oid else work.children.get(child.oid, child)
        if foreign not in now.foreign_keys:
            continue
        numbers = {after.number_of(at): column for at, column in enumerate(after.columns)}
        for number in foreign.references:
            old = before.columns[before.ordinal_of(number)]
            if number in numbers and numbers[number].type != old.type:
                raise not_supported("another type of a column that a foreign key refers to")
    for foreign in after.foreign_keys:
        for ordinal in foreign.columns:
            column = after.columns[ordinal]
            same = [c for c in before.columns if c.field == column.field]
            if foreign in before.foreign_keys and (not same or same[0].type != column.type):
                raise not_supported("another type of a column of a foreign key")


def children_after(work: Altering) -> Iterator[Redefinition]:
    """Other tables, without the foreign keys that CASCADE took."""
    for oid, after in work.children.items():
        before = work.binding.context.catalog.by_oid(oid)
        assert before is not None, "it was found in the catalog"
        yield Redefinition(before, replace(after, version=before.version + 1))


def check_views(work: Altering, command: Node) -> None:
    """2BP01 for a column that a view reads."""
    table = work.table
    number = table.number_of(work.ordinal(command.name))
    catalog = work.binding.context.catalog
    views = [
        view
        for view in catalog.views()
        if (table.oid, number) in view.uses and any(r[2] == table.oid for r in view.relations)
    ]
    if not views:
        return
    if command.behavior == DropBehavior.DROP_CASCADE:
        raise not_supported("DROP COLUMN .. CASCADE of a column that a view uses")
    column = f"column {command.name} of table {table.name}"
    over = {view.oid for view in views}
    told = [f"view {view.name} depends on {column}" for view in views]
    detail = "\n".join([*told, *told_views(catalog, views_over(catalog, over), over)])
    message = f"cannot drop {column} because other objects depend on it"
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    raise SqlError("2BP01", message, detail=detail, hint=hint)
