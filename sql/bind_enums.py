"""CREATE, ALTER and DROP TYPE of enums.

A change of an enum is one of every table that has columns of it (K5 of
`coordinator/core/catalog.py`): they get another version with the type's new definition. Values are
labels, so a label that gets another name gets it in every row, too.

    ADD VALUE, RENAME TO, SET SCHEMA ─▶ definitions      RENAME VALUE ─▶ definitions and rows

INVARIANTS
  M1  what a kept text says of a type or a label is not changed behind its back: RENAME TO, SET
      SCHEMA and RENAME VALUE are refused while one names the type, or has the label in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast
from pglast.enums import AlterTableType, DropBehavior

from sql.bind_alter_columns import alter_columns
from sql.bind_from import scan
from sql.bind_views import cascades
from sql.binding import Binding
from sql.catalog import Catalog, Column, Table
from sql.catalog_objects import CatalogObject, EnumDefinition
from sql.definition_statements import ChangeObjects, CreateObject, Redefinition, Rewriting
from sql.errors import SqlError, not_supported, undefined_schema
from sql.functions import function_by_id
from sql.kept_texts import naming, quoting
from sql.look_up import SYSTEM_SCHEMAS, look_up_type, row_type_exists, schema_exists
from sql.names import is_builtin
from sql.plan import Call, Case, ColumnRef, Const, Expr, Project, Scan
from sql.syntax import Node, strings
from sql.table_changes import with_definition, with_other_values
from sql.types import BOOL, SqlType, array_of, display, is_type

_LABEL_BYTES_MAX: Final = 63
_HINT: Final = "Use DROP ... CASCADE to drop the dependent objects too."
_TAG: Final = "ALTER TYPE"


# --- CREATE ------------------------------------------------------------------------------------


def create_enum(binding: Binding, node: Node) -> CreateObject:
    """CREATE TYPE .. AS ENUM."""
    *qualifier, name = strings(node.typeName)
    schema = creation_place(binding, qualifier, name)
    if row_type_exists(binding, schema, name):
        raise SqlError("42710", f'type "{name}" already exists')
    labels = strings(node.vals)
    for place, label in enumerate(labels):
        _check_label(label)
        if label in labels[:place]:
            raise _twice()
    return CreateObject(EnumDefinition(0, schema, name, labels), "CREATE TYPE")


def _twice() -> SqlError:
    constraint = "pg_enum_typid_label_index"
    message = f'duplicate key value violates unique constraint "{constraint}"'
    return SqlError("23505", message, schema="pg_catalog", table="pg_enum", constraint=constraint)


def creation_place(binding: Binding, qualifier: Sequence[str], name: str) -> str:
    """The schema that a new type comes to. Raises 3F000, 42501."""
    if not qualifier:
        for schema in binding.context.search_path:
            if schema_exists(binding, schema):
                return schema
        raise SqlError("3F000", "no schema has been selected to create in")
    schema = qualifier[-1]
    if schema in SYSTEM_SCHEMAS:
        message = f'permission denied to create "{schema}.{name}"'
        detail = "System catalog modifications are currently disallowed."
        raise SqlError("42501", message, detail=detail)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    return schema


def _check_label(label: str) -> None:
    if len(label.encode()) > _LABEL_BYTES_MAX:
        detail = "Labels must be 63 bytes or less."
        raise SqlError("42602", f'invalid enum label "{label}"', detail=detail)


# --- ALTER -------------------------------------------------------------------------------------


def alter_enum(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER TYPE .. ADD VALUE and RENAME VALUE."""
    found = found_type(binding, strings(node.typeName))
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
    return _redefined(binding, found, replace(found, labels=labels))


def _place(found: EnumDefinition, label: str) -> int:
    if label not in found.labels:
        raise SqlError("22023", f'"{label}" is not an existing enum label')
    return found.labels.index(label)


def _redefined(binding: Binding, old: EnumDefinition, new: EnumDefinition) -> ChangeObjects:
    """Another definition whose values stay."""
    tables: list[Redefinition] = []
    for table in tables_with(binding.context.catalog, old):
        after = replace(table, version=table.version + 1)
        for ordinal, column in enumerate(table.columns):
            after = with_definition(after, ordinal, _retyped(column, old, new))
        tables.append(Redefinition(table, after))
    made = replace(new, version=old.version + 1)
    return ChangeObjects(_TAG, objects=(made,), tables=tuple(tables))


def _retyped(column: Column, old: EnumDefinition, new: EnumDefinition) -> Column:
    """The column, of the new definition if it was of the old one."""
    types = {old.type: new.type, array_of(old.type): array_of(new.type)}
    return replace(column, type=types.get(column.type, column.type))


def tables_with(catalog: Catalog, found: EnumDefinition) -> list[Table]:
    """The tables with columns of a type, or of arrays of it."""
    return [
        table
        for table in catalog.tables.values()
        if any(is_of(column, found) for column in table.columns)
    ]


def is_of(column: Column, found: EnumDefinition) -> bool:
    """Whether a column's values are of the type, or arrays of it."""
    return column.type.name.removeprefix("_") == found.type.name


def _renamed_value(binding: Binding, found: EnumDefinition, node: Node) -> ChangeObjects:
    old, new = node.oldVal, node.newVal
    _check_label(new)
    place = _place(found, old)
    if new in found.labels:
        raise SqlError("42710", f'enum label "{new}" already exists')
    kept = quoting(binding.context.catalog, old)
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

    def of(self, table: Table) -> Rewriting:
        """A table with the new definition, and its rows."""
        source = scan(self.binding, table, identity=True)
        changed = replace(table, version=table.version + 1)
        values: list[Expr] = []
        for ordinal, column in enumerate(table.columns):
            value: Expr = ColumnRef(source.columns[ordinal].id, column.type)
            if is_of(column, self.before):
                column = _retyped(column, self.before, self.after)  # noqa: PLW2901
                column = self._with_default(column)  # noqa: PLW2901
                changed = with_other_values(changed, ordinal, column)
                value = self._relabelled(value, column.type)
            values.append(value)
        return Rewriting(Redefinition(table, changed), self._plan(source, values, changed))

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


def rename_type(binding: Binding, names: Sequence[str], new: str) -> ChangeObjects:
    """ALTER TYPE .. RENAME TO."""
    found = found_type(binding, names)
    if row_type_exists(binding, found.schema, new):
        raise SqlError("42710", f'type "{new}" already exists')
    _refuse_named(binding, found, "RENAME")
    return _redefined(binding, found, replace(found, name=new))


def move_type(binding: Binding, names: Sequence[str], schema: str) -> ChangeObjects:
    """ALTER TYPE .. SET SCHEMA."""
    found = found_type(binding, names)
    if schema in SYSTEM_SCHEMAS:
        raise SqlError("42501", f"permission denied for schema {schema}")
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    if schema == found.schema:
        return ChangeObjects(_TAG)
    if row_type_exists(binding, schema, found.name):
        raise SqlError("42710", f'type "{found.name}" already exists in schema "{schema}"')
    _refuse_named(binding, found, "SET SCHEMA")
    return _redefined(binding, found, replace(found, schema=schema))


def _refuse_named(binding: Binding, found: EnumDefinition, what: str) -> None:
    named = naming(binding.context.catalog, found)
    if named:
        raise not_supported(f'{what} of a type that the definition of "{named[0]}" names')


def found_type(binding: Binding, names: Sequence[str]) -> EnumDefinition:
    """The type that a statement changes. Raises 42704, 3F000."""
    *qualifier, name = names
    schema = qualifier[-1] if qualifier else None
    found = look_up_type(binding, name, schema=schema)
    if found is not None:
        return found
    if schema == "pg_catalog" or (schema is None and is_builtin(name)):
        raise SqlError("42809", f"{name} is not an enum")
    if schema is not None and schema not in binding.context.catalog.schemas:
        raise undefined_schema(schema)
    raise SqlError("42704", f'type "{".".join(names)}" does not exist')


# --- DROP --------------------------------------------------------------------------------------


def drop_types(binding: Binding, node: Node) -> ChangeObjects:
    """DROP TYPE [IF EXISTS] .. [CASCADE]."""
    notices: list[tuple[str, str, str | None]] = []
    dropped: dict[int, EnumDefinition] = {}
    for item in node.objects:
        found = _to_drop(binding, strings(item.names), node, notices)
        if found is not None:
            dropped[found.oid] = found
    catalog, types = binding.context.catalog, [*dropped.values()]
    using = [(table, column, of) for of in types for table, column in _columns(catalog, of)]
    named = [(where, of) for of in types for where in naming(catalog, of)]
    if (using or named) and node.behavior != DropBehavior.DROP_CASCADE:
        told = [
            f"column {c.name} of table {t.name} depends on type {display(c.type)}"
            for t, c, _ in using
        ]
        told += [f"{where} depends on type {display(of.type)}" for where, of in named]
        raise _needed(types, told)
    changed, objects = _without_columns(binding, using)
    left = _left(catalog, changed, objects)
    others = [where for of in types for where in naming(left, of)]
    if others:
        raise not_supported(f'DROP TYPE .. CASCADE while the definition of "{others[0]}" names it')
    told = [f"drop cascades to column {c.name} of table {t.name}" for t, c, _ in using]
    notices += cascades(told)
    return ChangeObjects(
        "DROP TYPE", dropped=(*types, *objects), tables=changed, notices=tuple(notices)
    )


def _left(
    catalog: Catalog, changed: Sequence[Redefinition], gone: Sequence[CatalogObject]
) -> Catalog:
    """The catalog when columns have gone, and what goes with them."""
    tables = {**catalog.tables} | {(c.after.schema, c.after.name): c.after for c in changed}
    objects = {key: thing for key, thing in catalog.objects.items() if thing not in gone}
    return replace(catalog, tables=tables, objects=objects)


def _to_drop(
    binding: Binding,
    names: Sequence[str],
    node: Node,
    notices: list[tuple[str, str, str | None]],
) -> EnumDefinition | None:
    *qualifier, name = names
    schema = qualifier[-1] if qualifier else None
    found = look_up_type(binding, name, schema=schema)
    if found is not None:
        return found
    if schema == "pg_catalog" or (schema is None and is_builtin(name)):
        shown = display(SqlType(name)) if is_type(name) else name
        message = f"cannot drop type {shown} because it is required by the database system"
        raise SqlError("2BP01", message)
    gone = schema is not None and schema not in binding.context.catalog.schemas
    what = f'schema "{schema}"' if gone else f'type "{".".join(names)}"'
    if not node.missing_ok:
        raise SqlError("3F000" if gone else "42704", f"{what} does not exist")
    notices.append(("00000", f"{what} does not exist, skipping", None))
    return None


def _columns(catalog: Catalog, found: EnumDefinition) -> list[tuple[Table, Column]]:
    """The columns of a type; arrays come first, as PostgreSQL finds them."""
    columns = [
        (table, column)
        for table in tables_with(catalog, found)
        for column in table.columns
        if is_of(column, found)
    ]
    return sorted(columns, key=lambda entry: entry[1].type.element is None)


def _needed(types: Sequence[EnumDefinition], told: Sequence[str]) -> SqlError:
    message = f"cannot drop type {display(types[0].type)} because other objects depend on it"
    if len(types) > 1:
        message = "cannot drop desired object(s) because other objects depend on them"
    return SqlError("2BP01", message, detail="\n".join(told), hint=_HINT)


def _without_columns(
    binding: Binding, using: Sequence[tuple[Table, Column, EnumDefinition]]
) -> tuple[tuple[Redefinition, ...], tuple[CatalogObject, ...]]:
    """The tables without these columns, and what goes with them."""
    commands: dict[int, tuple[Table, list[Node]]] = {}
    for table, column, _ in using:
        drop = ast.AlterTableCmd(
            subtype=AlterTableType.AT_DropColumn,
            name=column.name,
            behavior=DropBehavior.DROP_CASCADE,
        )
        commands.setdefault(table.oid, (table, []))[1].append(drop)
    altered = [alter_columns(binding, table, drops) for table, drops in commands.values()]
    return (
        tuple(change for one in altered for change in one.tables),
        tuple(thing for one in altered for thing in one.dropped),
    )
