"""Record-returning JSON functions in FROM: json_to_record, json_populate_record and their kin.

    json_to_recordset(j) AS x(a int, b text)  ─▶  unnest(json_records(j, ..)) as row
                                                  record_field(row, 1), record_field(row, 2)

INVARIANTS
  R1  one call converts all fields of all rows, whether they are read or not. An invalid value is
      therefore reported as in PostgreSQL.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.binder.expressions.calls import converted_arguments
from sql.binder.resolve.catalog_lookup import look_up_table
from sql.binder.resolve.coercion import coerce, zone_arguments
from sql.binder.resolve.function_choice import find_function
from sql.binder.resolve.type_names import resolve_type
from sql.binder.state import Binding, Scope
from sql.catalog.catalog import Table, definition_of
from sql.errors import SqlError, not_supported
from sql.functions.table import CastContext, function_by_id
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, string_values
from sql.plan.nodes import Call, Const, Expr
from sql.types.sql_type import INT4, JSON, JSONB, TEXT, SqlType, array_of

POPULATE_RECORD_FUNCTIONS: Final = frozenset({
    "json_populate_record", "json_populate_recordset", "jsonb_populate_record",
    "jsonb_populate_recordset",
})  # fmt: skip
"""Their columns are those of the first argument's row type; the argument must be NULL here."""
RECORD_FUNCTIONS: Final = POPULATE_RECORD_FUNCTIONS | {
    "json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset"
}  # fmt: skip
_OUT_PARAMETERS: Final = frozenset({"json_each", "json_each_text", "jsonb_each", "jsonb_each_text"})


def column_definitions_of(node: Node) -> list[Sequence[Node]]:
    """The column definition list of each function of a RangeFunction. Raises 42601."""
    if not node.coldeflist:
        return [function[1] or () for function in node.functions]
    place = offset_to_position(node.coldeflist[0].location)
    if len(node.functions) > 1:
        what, hint = "ROWS FROM() with multiple functions", None
        if node.is_rowsfrom:
            hint = "Put a separate column definition list for each function inside ROWS FROM()."
        else:
            what = "UNNEST() with multiple arguments"
        message = f"{what} cannot have a column definition list"
        raise SqlError("42601", message, place, hint=hint)
    if node.ordinality:
        message = "WITH ORDINALITY cannot be used with a column definition list"
        hint = "Put the column definition list inside ROWS FROM()."
        raise SqlError("42601", message, place, hint=hint)
    return [node.coldeflist]


def check_column_definitions(name: str, definitions: Sequence[Node]) -> None:
    """42601 for a column definition list on a function that has columns of its own."""
    if not definitions:
        return
    if name in _OUT_PARAMETERS:
        message = "a column definition list is redundant for a function with OUT parameters"
    else:
        message = 'a column definition list is only allowed for functions returning "record"'
    raise SqlError("42601", message, offset_to_position(definitions[0].location))


def rows_of_record(
    binding: Binding, scope: Scope, node: Node, definitions: Sequence[Node]
) -> tuple[Call, list[tuple[str, SqlType]]]:
    """The rows as an array of texts, from which `field_of_record` extracts, and the columns."""
    name = node.funcname[-1].sval
    if name in POPULATE_RECORD_FUNCTIONS:
        document, columns = _populating(binding, scope, node, definitions)
    else:
        nodes = list(node.args or ())
        exprs = [binding.expression(scope, arg) for arg in nodes]
        choice = find_function(name, exprs, ".".join(string_values(node.funcname)), node.location)
        (document,) = converted_arguments(binding, choice, exprs, nodes)
        columns = _defined(binding, node, definitions)
    names = [column for column, _ in columns]
    for index, column in enumerate(names):
        if column in names[:index]:
            raise SqlError("42701", f'column name "{column}" specified more than once')
    row = function_by_id("json_records(any,_text,text,any)")
    types: list[Expr] = [Const(None, type_) for _, type_ in columns]
    keys = Const(tuple(names), array_of(TEXT))
    args = (document, keys, Const(name, TEXT), *types, *zone_arguments(binding, row))
    return Call(row, args, array_of(TEXT)), columns


def _defined(
    binding: Binding, node: Node, definitions: Sequence[Node]
) -> list[tuple[str, SqlType]]:
    if not definitions:
        message = 'a column definition list is required for functions returning "record"'
        raise SqlError("42601", message, node_position(node))
    return [_column(binding, each) for each in definitions]


def _populating(
    binding: Binding, scope: Scope, node: Node, definitions: Sequence[Node]
) -> tuple[Expr, list[tuple[str, SqlType]]]:
    """The document, and the columns of `NULL::table` or of the definition list of a record."""
    name, nodes = node.funcname[-1].sval, list(node.args or ())
    base = nodes[0] if len(nodes) == 2 else None
    if base is None or not is_a(base, ast.TypeCast) or not _is_null(base.arg):
        raise not_supported(
            f"{name}() of anything but NULL::table and a document", node_position(node)
        )
    document = coerce(
        binding,
        binding.expression(scope, nodes[1]),
        nodes[1],
        JSONB if name.startswith("jsonb") else JSON,
        CastContext.IMPLICIT,
    )
    if document is None:
        raise not_supported(f"{name}() of such a document", node_position(nodes[1]))
    *qualifier, type_name = string_values(base.typeName.names)
    if qualifier in ([], ["pg_catalog"]) and type_name == "record":
        return document, _defined(binding, node, definitions)
    table = look_up_table(binding, type_name, schema=qualifier[-1] if qualifier else None)
    if not isinstance(table, Table) or base.typeName.arrayBounds:
        resolve_type(binding, base.typeName)
        raise not_supported(f"{name}() of such a row", node_position(node))
    # Nobody may read or write its rows, so that its definition is watched here.
    binding.uses.add(definition_of(table))
    if definitions:
        message = "a column definition list is redundant for a function returning a named composite"
        raise SqlError("42601", f"{message} type", offset_to_position(definitions[0].location))
    if any(column.domain is not None for column in table.columns):
        raise not_supported(f"{name}() of a row with domains", node_position(node))
    return document, [(column.name, column.type) for column in table.columns]


def _is_null(node: Node) -> bool:
    return is_a(node, ast.A_Const) and bool(node.isnull)


def field_of_record(binding: Binding, row: Expr, number: int, type_: SqlType) -> Expr:
    """A field of a row of `rows_of_record`, counted from 1."""
    function = function_by_id("record_field(text,int4)")
    return Call(function, (row, Const(number, INT4), *zone_arguments(binding, function)), type_)


def _column(binding: Binding, node: Node) -> tuple[str, SqlType]:
    place = offset_to_position(node.location)
    if node.collClause is not None:
        raise not_supported("COLLATE in a column definition list", place)
    if node.typeName.setof:
        raise SqlError("42P16", f'column "{node.colname}" cannot be declared SETOF', place)
    type_ = resolve_type(binding, node.typeName)
    if binding.context.styles.reads(type_.name):
        raise not_supported("a column definition list under this DateStyle or IntervalStyle", place)
    return node.colname, type_
