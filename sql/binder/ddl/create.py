"""CREATE TABLE and CREATE SCHEMA: bind columns, constraints, keys, indexes and options."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import ConstrType, OnCommitAction

from sql.binder.ddl.checks import bind_checks
from sql.binder.ddl.columns import UNSUPPORTED_CONSTRAINTS, TableParts, bind_column
from sql.binder.ddl.delta_invariants import with_delta_invariants
from sql.binder.ddl.foreign_keys import ForeignKeyNode, bind_foreign_keys
from sql.binder.ddl.generated import with_generated
from sql.binder.ddl.keys import KEY_KINDS, KeyNode, TakenNames, bind_keys
from sql.binder.ddl.like import CopiedParts, like_columns, with_copied_parts
from sql.binder.ddl.physical_layout import UNLOGGED_NOTICE
from sql.binder.ddl.schema_elements import schema_elements
from sql.binder.ddl.schemas import creation_schema
from sql.binder.ddl.storage_options import (
    StorageOptions,
    partition_key,
    storage_options,
    with_storage_options,
    without_oids,
)
from sql.binder.ddl.storage_parameters import refuse_other_tablespace
from sql.binder.resolve.catalog_lookup import refuse_row_type_clash, relation_exists, schema_exists
from sql.binder.resolve.role_names import resolve_role, role_spec_name, roles_of
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS
from sql.binder.state import Binding
from sql.catalog.catalog import SYSTEM_TIMELINE, Column, Table
from sql.catalog.constraint_names import with_free_not_null_names
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, duplicate_constraint, duplicate_table, not_supported
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.statements.bound import CreateSchema, CreateTable
from sql.types.limits import check_column_count

# --- CREATE ------------------------------------------------------------------------------------


def create_table(
    binding: Binding,
    node: Node,
    timeline: str = SYSTEM_TIMELINE.name,
    *,
    columns: Sequence[Column] = (),
) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS]. `columns`: the columns of a query, for CREATE TABLE AS."""
    relation = node.relation
    _refuse_table_forms(node)
    options = _storage_options(node)
    schema = creation_schema(binding, relation)
    on_commit = _on_commit(binding, node, schema)
    exists = relation_exists(binding, schema, relation.relname)
    if exists and not node.if_not_exists:
        raise duplicate_table(relation.relname)
    if exists:
        # The rest is not looked at: its constraints may be those of the table that is there.
        return CreateTable(schema, relation.relname, (), exists=True)
    refuse_row_type_clash(binding, schema, relation.relname)
    columns = list(columns)
    parts, copied = TableParts(schema, relation.relname), CopiedParts()
    for element in node.tableElts or ():
        if is_a(element, ast.Constraint):
            _table_constraint(element, parts)
            continue
        if is_a(element, ast.TableLikeClause):
            columns += like_columns(binding, element, parts, copied)
            continue
        columns.append(bind_column(binding, element, parts))
    if not columns:
        # Neither Parquet nor Arrow's stream can say how many rows of nothing there are.
        raise not_supported("a table without columns", offset_to_position(relation.location))
    _check_names(columns)
    columns = _with_not_nulls(relation.relname, columns, parts.not_nulls)
    _check_not_null_names(relation.relname, columns)
    bare = Table(0, schema, relation.relname, "", tuple(columns))
    checked = _with_keys_and_checks(binding, bare, parts)
    checked = replace(checked, timeline=timeline, on_commit=on_commit)
    checked = with_storage_options(checked, options)
    unlogged = node.relation.relpersistence == "u"
    whole, indexes, comments = with_copied_parts(binding, checked, copied)
    whole = with_delta_invariants(binding, whole)
    foreign, parents = bind_foreign_keys(binding, whole, parts.foreign)
    places = {column.name: place for place, column in enumerate(columns)}
    return CreateTable(
        schema,
        relation.relname,
        whole.columns,
        False,
        timeline,
        checked.history_us,
        whole.keys,
        whole.checks,
        tuple((places[name], sequence) for name, sequence in parts.sequences.items()),
        foreign,
        parents,
        indexes,
        comments,
        on_commit,
        checked.clustered,
        checked.parameters,
        unlogged,
        (*((UNLOGGED_NOTICE,) if unlogged else ()), *options.notices),
        change_feed=checked.change_feed,
    )


def _with_keys_and_checks(binding: Binding, bare: Table, parts: TableParts) -> Table:
    """In PostgreSQL's order, in which their names are chosen: CHECK, NOT NULL, keys."""
    taken = TakenNames(binding.context.catalog, bare.schema)
    whole = replace(bare, columns=with_generated(binding, bare, parts.generated))
    whole = replace(whole, checks=bind_checks(binding, whole, parts.checks))
    whole = with_free_not_null_names(whole, (), taken.constraints_beside(bare))
    columns, keys = bind_keys(taken, whole, parts.keys)
    return replace(whole, columns=columns, keys=keys)


def _storage_options(node: Node) -> StorageOptions:
    """Those of WITH, and what PARTITION BY says."""
    options, key = storage_options(without_oids(node.options or ())), partition_key(node)
    return options if key is None else replace(options, cluster_by=key)


def _table_constraint(element: Node, parts: TableParts) -> None:
    """A constraint that stands beside the columns."""
    match element.contype:
        case kind if kind in KEY_KINDS:
            parts.keys.append(KeyNode(element))
        case ConstrType.CONSTR_CHECK:
            parts.checks.append(element)
        case ConstrType.CONSTR_FOREIGN:
            parts.foreign.append(ForeignKeyNode(element))
        case ConstrType.CONSTR_NOTNULL:
            if element.skip_validation or element.is_no_inherit:
                what = "NOT VALID" if element.skip_validation else "NO INHERIT"
                raise not_supported(f"NOT NULL .. {what}", offset_to_position(element.location))
            parts.not_nulls.append(element)
        case kind:
            raise not_supported(
                UNSUPPORTED_CONSTRAINTS.get(kind, "this constraint"),
                offset_to_position(element.location),
            )


def _with_not_nulls(table: str, columns: Sequence[Column], nodes: Sequence[Node]) -> list[Column]:
    """The columns, NOT NULL where a constraint of the table says so, and with the name it gives."""
    by_name = {column.name: column for column in columns}
    for node in nodes:
        (name,) = string_values(node.keys)
        if name not in by_name:
            raise SqlError("42703", f'column "{name}" of relation "{table}" does not exist')
        known, given = by_name[name].not_null_name, node.conname or ""
        if known and given and known != given:
            names = f'"{known}" and "{given}"'
            raise SqlError("42601", f"conflicting not-null constraint names {names}")
        by_name[name] = replace(by_name[name], not_null=True, not_null_name=known or given)
    return [*by_name.values()]


def _refuse_table_forms(node: Node) -> None:
    place = offset_to_position(node.relation.location)
    refused = (
        (node.inhRelations and not node.partbound, "INHERITS"),
        (node.ofTypename, "CREATE TABLE OF"),
        (node.accessMethod, "USING in CREATE TABLE"),
    )
    for used, what in refused:
        if used:
            raise not_supported(what, place)
    refuse_other_tablespace(node.tablespacename)


_ON_COMMIT: Final = {
    OnCommitAction.ONCOMMIT_DELETE_ROWS: "delete",
    OnCommitAction.ONCOMMIT_DROP: "drop",
}


def _on_commit(binding: Binding, node: Node, schema: str) -> str:
    """ON COMMIT, of temporary tables only."""
    if node.oncommit in (None, OnCommitAction.ONCOMMIT_NOOP):
        return ""
    if schema != binding.context.temporary:
        raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
    return _ON_COMMIT.get(node.oncommit, "")


def _check_names(columns: Sequence[Column]) -> None:
    check_column_count(len(columns))
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SqlError("42701", f'column "{column.name}" specified more than once')
        if column.name in SYSTEM_COLUMNS:
            message = f'column name "{column.name}" conflicts with a system column name'
            raise SqlError("42701", message)
        seen.add(column.name)


def _check_not_null_names(table: str, columns: Sequence[Column]) -> None:
    given = [column.not_null_name for column in columns if column.not_null_name]
    for place, name in enumerate(given):
        if name in given[:place]:
            raise duplicate_constraint(name, table)


def create_schema(binding: Binding, node: Node) -> CreateSchema:
    """CREATE SCHEMA [IF NOT EXISTS] [elements]."""
    owner: int | None = None
    name: str = node.schemaname
    if node.authrole is not None:
        role = resolve_role(binding, roles_of(binding.context), node.authrole)
        owner, name = role.oid, name or role_spec_name(binding, node.authrole)
    check_schema_name(name)
    exists = name in SYSTEM_SCHEMAS or schema_exists(binding, name)
    if exists and not node.if_not_exists:
        raise SqlError("42P06", f'schema "{name}" already exists')
    if node.schemaElts and owner is not None:
        raise not_supported("CREATE SCHEMA AUTHORIZATION with elements", None)
    return CreateSchema(name, exists, owner, schema_elements(name, node.schemaElts or ()))


def check_schema_name(name: str) -> None:
    """42939 for a reserved schema name."""
    if name.startswith("pg_"):
        detail = 'The prefix "pg_" is reserved for system schemas.'
        raise SqlError("42939", f'unacceptable schema name "{name}"', detail=detail)


# --- DROP --------------------------------------------------------------------------------------
