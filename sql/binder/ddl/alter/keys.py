"""ADD CONSTRAINT .. UNIQUE and PRIMARY KEY: new keys, and unique indexes that become keys."""

from collections.abc import Sequence
from dataclasses import replace

from pglast.enums import ConstrType

from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.comments import comments_of_renamed_constraint
from sql.binder.ddl.foreign_keys import dangling_foreign_keys
from sql.binder.ddl.keys import KeyNode, TakenNames, bind_keys
from sql.binder.resolve.catalog_lookup import refuse_taken_name
from sql.binder.stored.unique_indexes import unique_indexes_of
from sql.catalog.catalog import Key, Table
from sql.catalog.constraint_names import (
    ConstraintsBeside,
    constraint_names,
    not_null_columns,
    with_free_not_null_names,
)
from sql.catalog.objects import IndexDefinition
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.types.sql_type import quoted_name


def name_new_not_nulls(work: AlterTableState) -> None:
    """Names of the NOT NULLs that the statement has added so far."""
    beside = ConstraintsBeside(work.binding.context.catalog, work.table)
    work.table = with_free_not_null_names(work.table, not_null_columns(work.before), beside)


def add_keys(work: AlterTableState, nodes: Sequence[KeyNode]) -> None:
    """Add the keys of an action.

    Unlike in CREATE TABLE, a key that repeats a key of another action is a separate key.
    """
    table = work.table
    if any(node.primary for node in nodes):
        _refuse_second(work)
    try:
        columns, keys = bind_keys(_taken_names(work), table, nodes)
    except SqlError as error:
        if error.sqlstate == "42703":
            # PostgreSQL looks for the columns when it makes the index.
            error.position = None
        raise
    was = {column.name for column in table.columns if not column.not_null}
    work.required += [c.name for c in columns if c.not_null and c.name in was]
    _put(work, (*table.keys, *keys))
    work.table = replace(work.table, columns=columns)


def _taken_names(work: AlterTableState) -> TakenNames:
    """Of the table's schema, as the actions so far have left it."""
    freed = {*(key.name for key in work.before.keys), *(thing.name for thing in work.dropped)}
    taken = {sequence.name for sequence in work.sequences.values()}
    taken |= {key.name for key in work.table.keys}
    return TakenNames(work.binding.context.catalog, work.table.schema, taken=taken, freed=freed)


def _no_key(table: Table, index: IndexDefinition, place: int | None, detail: str) -> SqlError:
    """42809 for a unique index that cannot be a constraint."""
    names = {quoted_name(column.name) for column in table.columns}
    if not names.issuperset(index.elements):
        message = f'index "{index.name}" contains expressions'
        return SqlError("42809", message, place, detail=detail)
    if index.predicate:
        return SqlError("42809", f'"{index.name}" is a partial index', place, detail=detail)
    return not_supported("a constraint with INCLUDE", place)


def unique_indexes_left(work: AlterTableState) -> tuple[IndexDefinition, ...]:
    """The unique indexes that are no keys and that the statement does not drop."""
    indexes = unique_indexes_of(work.binding.context.catalog, work.before)
    return tuple(index for index in indexes if index not in work.dropped)


def _put(work: AlterTableState, keys: tuple[Key, ...]) -> None:
    ordered = sorted(keys, key=lambda key: not key.primary)
    work.table = replace(work.table, keys=tuple(ordered))


def _refuse_second(work: AlterTableState) -> None:
    if any(key.primary for key in work.table.keys):
        message = f'multiple primary keys for table "{work.table.name}" are not allowed'
        raise SqlError("42P16", message)


def use_index(work: AlterTableState, node: Node) -> None:
    """ADD CONSTRAINT .. USING INDEX: rows were validated when the index was created."""
    table, place = work.table, offset_to_position(node.location)
    found = _unique_index(work, node.indexname, place)
    name = node.conname or found.name
    primary = node.contype == ConstrType.CONSTR_PRIMARY
    if primary:
        _refuse_second(work)
        if not found.nulls_distinct:
            message = "primary keys cannot use NULLS NOT DISTINCT indexes"
            raise SqlError("42P16", message)
    if name != found.name:
        words = "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index"
        work.notices.append(("00000", f'{words} "{found.name}" to "{name}"', None))
        refuse_taken_name(work.binding, table.schema, name)
        if name in constraint_names(table):
            raise duplicate_constraint(name, table.name)
        said = comments_of_renamed_constraint(work.binding.context.catalog, table, found.name, name)
        work.comments += said
    made = replace(found, name=name, index=False, primary=primary, orders=())
    made = replace(made, deferrable=bool(node.deferrable), deferred=bool(node.initdeferred))
    _put(work, tuple(made if key is found else key for key in table.keys))
    if dangling_foreign_keys(
        work.binding.context.catalog, work.table, {**work.children, table.oid: work.table}
    ):
        raise not_supported("USING INDEX .. DEFERRABLE of what a foreign key rests on", place)
    for ordinal in made.columns if primary else ():
        if not table.columns[ordinal].not_null:
            column = table.columns[ordinal].name
            work.define(column, lambda c: replace(c, not_null=True))
            work.required.append(column)


def _unique_index(work: AlterTableState, name: str, place: int | None) -> Key:
    """The index, if it may become a key."""
    catalog, table = work.binding.context.catalog, work.table
    detail = "Cannot create a primary key or unique constraint using such an index."
    found = next((key for key in table.keys if key.name == name), None)
    if found is None:
        other = catalog.relation(table.schema, name)
        tables = [t for t in catalog.tables.values() if t.schema == table.schema]
        elsewhere = any(key.name == name for other in tables for key in other.keys)
        if elsewhere or (isinstance(other, IndexDefinition) and other.table != table.oid):
            message = f'index "{name}" does not belong to table "{table.name}"'
            raise SqlError("55000", message, place)
        if isinstance(other, IndexDefinition) and other.unique:
            raise _no_key(table, other, place, detail)
        if isinstance(other, IndexDefinition):
            raise SqlError("42809", f'"{name}" is not a unique index', place, detail=detail)
        if other is not None or any(table.name == name for table in tables):
            raise SqlError("42809", f'"{name}" is not an index')
        raise SqlError("42704", f'index "{name}" does not exist', place)
    if not found.index:
        raise SqlError("55000", f'index "{name}" is already associated with a constraint', place)
    for number, order in enumerate(found.orders, 1):
        if order:
            message = (
                f'index "{name}" column number {number} does not have default sorting behavior'
            )
            raise SqlError("42809", message, place, detail=detail)
    return found
