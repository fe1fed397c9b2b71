"""ALTER COLUMN .. TYPE: decide which changes keep the stored values, and convert the others."""

from dataclasses import replace
from functools import partial

from pglast.stream import RawStream

from sql.binder.ddl.alter.identity import retype_identity
from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.columns import refuse_column_type
from sql.binder.ddl.indexes import recheck_index
from sql.binder.ddl.storage_options import refuse_clustering_column
from sql.binder.resolve.coercion import ASSIGNMENT, coerce, coerce_to_storage
from sql.binder.resolve.operator_classes import check_key_type
from sql.binder.resolve.relations import table_item
from sql.binder.resolve.type_names import declared_type
from sql.binder.state import Scope
from sql.binder.stored.column_expressions import (
    bind_stored,
    bound_check,
    check_scope,
    checked_default,
    parse_stored_expression,
    refuse_subqueries,
)
from sql.binder.stored.domain_checks import with_domain_default
from sql.binder.stored.stored_names import next_value_text
from sql.binder.stored.table_changes import (
    columns_in_check,
    columns_in_index,
    generated_from,
    with_column_definition,
    with_rewritten_column,
)
from sql.binder.stored.views import views_reading_column
from sql.catalog.catalog import Column
from sql.catalog.objects import INT_BOUNDS
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.parser.syntax import Node, offset_to_position, refuse_parameters
from sql.plan.nodes import Const, Expr
from sql.types.sql_type import SqlType, Value, format_type, quoted_name, type_declaration
from sql.types.text_output import format_text


def alter_type(work: AlterTableState, command: Node) -> None:
    """ALTER COLUMN .. TYPE .. [USING ..]."""
    node = command.def_
    try:
        ordinal = work.ordinal(command.name)
    except SqlError as error:
        raise (
            error.at(offset_to_position(node.location)) if error.sqlstate == "0A000" else error
        ) from None
    column = work.table.columns[ordinal]
    refuse_clustering_column(work.table, ordinal, "alter")
    if any(c.name == column.name and c.type != column.type for c in work.before.columns):
        raise SqlError("0A000", f'cannot alter type of column "{column.name}" twice')
    catalog = work.binding.context.catalog
    for view in views_reading_column(catalog, work.table.oid, work.table.number_of(ordinal)):
        message = "cannot alter type of a column used by a view or rule"
        detail = f'rule _RETURN on {view.kind} {view.shown} depends on column "{column.name}"'
        raise SqlError("0A000", message, detail=detail)
    for other in generated_from(work.table, column.name):
        message = "cannot alter type of a column used by a generated column"
        detail = f'Column "{column.name}" is used by generated column "{other.name}".'
        raise SqlError("0A000", message, detail=detail)
    if node.collClause is not None:
        raise not_supported("COLLATE", offset_to_position(node.collClause.location))
    type_, domain = declared_type(work.binding, node.typeName)
    refuse_column_type(node, type_)
    if column.identity or column.generated is not None or column.sequence:
        _refuse_typed(column, type_, node)
    if column.identity and type_ != column.type:
        retype_identity(work, column, node.typeName)
    value = _converted(work, column, type_, node.raw_default, ordinal)
    if column.default_of_domain:
        column = replace(column, has_default=False, default=None, expression=None)
    altered = replace(_with_default_of(work, column, type_), domain=domain, default_of_domain=False)
    altered = replace(altered, collation="")
    altered = with_domain_default(work.binding, altered)
    if domain is not None:
        work.domains.append(column.name)
    if node.raw_default is None and _keeps_values(column.type, type_):
        work.table = with_column_definition(work.table, ordinal, altered)
    else:
        work.table = with_rewritten_column(work.table, ordinal, altered)
        work.values[ordinal] = value
        work.rewrites = True
        if column.not_null:
            work.required.append(column.name)
    work.retyped.append(column.name)


def _refuse_typed(column: Column, type_: SqlType, node: Node) -> None:
    """What a column that makes its own values cannot become."""
    if column.identity and type_.name not in INT_BOUNDS:
        raise SqlError("22023", "identity column type must be smallint, integer, or bigint")
    if column.generated is not None:
        raise not_supported(
            "another type of a generated column", offset_to_position(node.typeName.location)
        )


def _keeps_values(old: SqlType, new: SqlType) -> bool:
    """Whether every value of the old type is stored as one of the new, and is one."""
    if old == new:
        return True
    if old.name not in ("varchar", "text") or new.name not in ("varchar", "text"):
        return False
    return new.length is None or (old.length is not None and old.length <= new.length)


def _converted(
    work: AlterTableState, column: Column, type_: SqlType, using: Node | None, ordinal: int
) -> Expr:
    """The new value of a row, as its column stores it."""
    binding, expr = work.binding, work.values[ordinal]
    if using is not None:
        refuse_parameters(using)
        refuse_subqueries(using, "transform expression")
        item = table_item(work.source, work.before, None)
        scope = Scope(clause="transform expressions", items=[item])
        expr = binding.expression(scope, using)
    done = coerce(binding, expr, using, type_, ASSIGNMENT)
    if done is not None:
        return coerce_to_storage(binding, done, type_)
    shown = format_type(SqlType(type_.name))
    if using is None:
        message = f'column "{column.name}" cannot be cast automatically to type {shown}'
        hint = (
            f'You might need to specify "USING {quoted_name(column.name)}::{format_type(type_)}".'
        )
    else:
        message = (
            f'result of USING clause for column "{column.name}" cannot be cast automatically '
            f"to type {shown}"
        )
        hint = "You might need to add an explicit cast."
    raise datatype_mismatch(message, hint=hint)


def _with_default_of(work: AlterTableState, column: Column, type_: SqlType) -> Column:
    """The column with another type, and its default converted from what was written: as in
    PostgreSQL, what an earlier type has made of it is forgotten.
    """
    if column.sequence and type_.name not in INT_BOUNDS:
        text = next_value_text(column.sequence)
        column = replace(column, sequence=0, has_default=True, expression=text)
    altered = replace(column, type=type_)
    if not column.has_default or column.sequence:
        return altered
    bare = SqlType(column.type.name)
    done = coerce(work.binding, Const(column.default, bare), None, type_, ASSIGNMENT)
    if column.expression is None and isinstance(done, Const) and done.value == column.default:
        return replace(altered, default=done.value, default_text="")
    text = column.expression or _literal(column.default, bare)
    try:
        bind_stored(
            work.binding,
            partial(checked_default, work.binding, altered, parse_stored_expression(text)),
        )
    except SqlError as error:
        if error.sqlstate != "42804":
            raise
        message = (
            f'default for column "{column.name}" cannot be cast automatically to type '
            f"{format_type(SqlType(type_.name))}"
        )
        raise datatype_mismatch(message) from None
    return replace(altered, default=None, expression=text)


def _literal(value: Value, type_: SqlType) -> str:
    """A constant as it would be kept."""
    if value is None or type_.name in (*INT_BOUNDS, "bool"):
        return "NULL" if value is None else str(value).lower()
    literal = "'" + format_text(value, type_).replace("'", "''") + "'"
    return str(
        RawStream()(parse_stored_expression(f"CAST({literal} AS {type_declaration(type_)})"))
    )


def recheck_retyped_columns(work: AlterTableState) -> None:
    """Bind the indexes, keys and checks over retyped columns again, and validate the checks.

    An error has no position, because the client did not send the text.
    """
    binding, table, retyped = work.binding, work.table, set(work.retyped)
    for index in binding.context.catalog.indexes(table.oid) if retyped else ():
        if index not in work.dropped and not retyped.isdisjoint(columns_in_index(index)):
            bind_stored(binding, partial(recheck_index, binding, table, index))
    for key in table.keys if retyped else ():
        for column in (table.columns[ordinal] for ordinal in key.columns):
            if column.name in retyped:
                check_key_type(column.type, None)
    for check in table.checks if retyped else ():
        if not retyped.isdisjoint(columns_in_check(check)):
            _, scope = check_scope(binding, table)
            node = parse_stored_expression(check.expression)
            bind_stored(binding, partial(bound_check, binding, scope, node))
            if check.validated:
                work.checks.append(check.name)
