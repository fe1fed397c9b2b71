"""CREATE TYPE .. AS ENUM, and ALTER TYPE .. ADD VALUE and RENAME VALUE.

A change of an enum changes every table that has columns of it (K5 of
`coordinator/core/catalog.py`): they get a new version with the type's new definition. Values are
stored as labels, so renaming a label rewrites the rows.

    ADD VALUE, RENAME TO, SET SCHEMA ─▶ definitions      RENAME VALUE ─▶ definitions and rows

INVARIANTS
  M1  a stored text never changes its meaning through a type or label that it names. RENAME TO, SET
      SCHEMA and RENAME VALUE are refused while a stored text names the type or contains the label.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.binder.resolve.catalog_lookup import row_type_exists
from sql.binder.resolve.relations import table_scan
from sql.binder.state import Binding
from sql.binder.stored.stored_texts import texts_quoting
from sql.binder.stored.table_changes import with_column_definition, with_rewritten_column
from sql.binder.stored.type_users import (
    find_type,
    is_column_of_type,
    tables_with,
    type_creation_schema,
)
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import EnumDefinition
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, string_values
from sql.plan.nodes import Call, Case, ColumnRef, Const, Expr, Project, Scan
from sql.statements.ddl import ChangeObjects, CreateObject, Redefinition, TableRewrite
from sql.types.sql_type import BOOL, SqlType, array_of

_LABEL_BYTES_MAX: Final = 63
_HINT: Final = "Use DROP ... CASCADE to drop the dependent objects too."
_TAG: Final = "ALTER TYPE"


# --- CREATE ------------------------------------------------------------------------------------


def create_enum(binding: Binding, node: Node) -> CreateObject:
    """CREATE TYPE .. AS ENUM."""
    *qualifier, name = string_values(node.typeName)
    schema = type_creation_schema(binding, qualifier, name)
    if row_type_exists(binding, schema, name):
        raise SqlError("42710", f'type "{name}" already exists')
    labels = string_values(node.vals)
    for place, label in enumerate(labels):
        _check_label(label)
        if label in labels[:place]:
            raise _twice()
    return CreateObject(EnumDefinition(0, schema, name, labels), "CREATE TYPE")


def _twice() -> SqlError:
    constraint = "pg_enum_typid_label_index"
    message = f'duplicate key value violates unique constraint "{constraint}"'
    return SqlError("23505", message, schema="pg_catalog", table="pg_enum", constraint=constraint)


def _check_label(label: str) -> None:
    if len(label.encode()) > _LABEL_BYTES_MAX:
        detail = "Labels must be 63 bytes or less."
        raise SqlError("42602", f'invalid enum label "{label}"', detail=detail)


# --- ALTER -------------------------------------------------------------------------------------


def alter_enum(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER TYPE .. ADD VALUE and RENAME VALUE."""
    found = find_type(binding, string_values(node.typeName), "an enum")
    if not isinstance(found, EnumDefinition):
        raise SqlError("42809", f"{found.name} is not an enum")
    return _renamed_value(binding, found, node) if node.oldVal else _added(binding, found, node)


def _added(binding: Binding, found: EnumDefinition, node: Node) -> ChangeObjects:
    label: str = node.newVal
    _check_label(label)
    if label in found.labels:
        message = f'enum label "{label}" already exists'
        if not node.skipIfNewValExists:
            raise SqlError("42710", message)
        return ChangeObjects(_TAG, notices=(("42710", f"{message}, skipping", None),))
    place = len(found.labels)
    if node.newValNeighbor is not None:
        place = _place(found, node.newValNeighbor) + bool(node.newValIsAfter)
    labels = (*found.labels[:place], label, *found.labels[place:])
    return redefined_enum(binding, found, replace(found, labels=labels))


def _place(found: EnumDefinition, label: str) -> int:
    if label not in found.labels:
        raise SqlError("22023", f'"{label}" is not an existing enum label')
    return found.labels.index(label)


def redefined_enum(binding: Binding, old: EnumDefinition, new: EnumDefinition) -> ChangeObjects:
    """A new definition of the enum that leaves stored values unchanged."""
    tables: list[Redefinition] = []
    for table in tables_with(binding.context.catalog, old):
        after = replace(table, version=table.version + 1)
        for ordinal, column in enumerate(table.columns):
            after = with_column_definition(after, ordinal, _retyped(column, old, new))
        tables.append(Redefinition(table, after))
    made = replace(new, version=old.version + 1)
    return ChangeObjects(_TAG, objects=(made,), tables=tuple(tables))


def _retyped(column: Column, old: EnumDefinition, new: EnumDefinition) -> Column:
    """The column, of the new definition if it was of the old one."""
    types = {old.type: new.type, array_of(old.type): array_of(new.type)}
    return replace(column, type=types.get(column.type, column.type))


def _renamed_value(binding: Binding, found: EnumDefinition, node: Node) -> ChangeObjects:
    old, new = node.oldVal, node.newVal
    _check_label(new)
    place = _place(found, old)
    if new in found.labels:
        raise SqlError("42710", f'enum label "{new}" already exists')
    kept = texts_quoting(binding.context.catalog, old)
    if kept:
        raise not_supported(f'renaming a label that stands in the definition of "{kept[0]}"')
    labels = (*found.labels[:place], new, *found.labels[place + 1 :])
    made = replace(found, labels=labels, version=found.version + 1)
    tables = tables_with(binding.context.catalog, found)
    rewritings = [_Relabelling(binding, found, made, old, new).of(table) for table in tables]
    return ChangeObjects(_TAG, objects=(made,), rewritings=tuple(rewritings))


@dataclass(frozen=True, slots=True)
class _Relabelling:
    """A label that gets another name, in the rows of tables."""

    binding: Binding
    before: EnumDefinition
    after: EnumDefinition
    old: str
    new: str

    def of(self, table: Table) -> TableRewrite:
        """A table with the new definition, and its rows."""
        source = table_scan(self.binding, table, identity=True)
        changed = replace(table, version=table.version + 1)
        values: list[Expr] = []
        for ordinal, column in enumerate(table.columns):
            value: Expr = ColumnRef(source.columns[ordinal].id, column.type)
            if is_column_of_type(column, self.before):
                column = _retyped(column, self.before, self.after)  # noqa: PLW2901
                column = self._with_default(column)  # noqa: PLW2901
                changed = with_rewritten_column(changed, ordinal, column)
                value = self._relabelled(value, column.type)
            values.append(value)
        return TableRewrite(Redefinition(table, changed), self._plan(source, values, changed))

    def _plan(self, source: Scan, values: Sequence[Expr], after: Table) -> Project:
        assert source.identity is not None, "the table is scanned with its rows' identities"
        new = self.binding.new_column
        who = [new(column.name, column.type) for column in source.identity]
        refs = [ColumnRef(column.id, column.type) for column in source.identity]
        made = [new(column.name, column.type) for column in after.columns]
        return Project(source, (*who, *made), (*refs, *values))

    def _with_default(self, column: Column) -> Column:
        value = column.default
        if isinstance(value, tuple):
            items = [self.new if item == self.old else item for item in value]
            return replace(column, default=tuple(items))
        return replace(column, default=self.new) if value == self.old else column

    def _relabelled(self, value: Expr, type_: SqlType) -> Expr:
        """The value in the new definition."""
        old, new = (Const(label, self.before.type) for label in (self.old, self.new))
        if value.type.element is not None:
            row = function_by_id("array_replace(anycompatiblearray,anycompatible,anycompatible)")
            return Call(row, (value, old, new), type_)
        same = Call(function_by_id("anyenum = anyenum"), (value, old), BOOL)
        return Case(((same, new),), value, type_)
