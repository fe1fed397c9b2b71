"""JSON_TABLE: rows of the items that a path finds (parse_jsontable.c).

    JSON_TABLE(j, path COLUMNS (..))  ─▶  unnest of the items, lateral, and over each of them
                                          JSON_VALUE, JSON_QUERY or JSON_EXISTS for every column

Not here: NESTED PATH, which is refused.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast
from pglast.enums import (
    JsonBehaviorType,
    JsonExprOp,
    JsonQuotes,
    JsonTableColumnType,
    JsonWrapper,
)

from sql.bind_sets import unnested
from sql.bind_sql_json import document_of, function_over, path_of, variables_of
from sql.bind_types import type_named
from sql.binding import Binding
from sql.coerce import EXPLICIT, coerce
from sql.errors import SqlError, not_supported
from sql.functions import function_by_id
from sql.plan import Call, ColumnRef, Const, Expr, Plan, PlanColumn, Project, SetScan
from sql.scope import Item, Scope
from sql.syntax import Node, at, strings
from sql.types import INT4, INT8, JSONB, TEXT, SqlType, array_of

_ITEMS: Final = "sql_json_items(jsonb,jsonpath,jsonb,text)"


def json_table(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[Item]]:
    """The rows, and the columns by their names."""
    _check_columns(node)
    active, clause = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = True, "FROM"
    try:
        rows, variables, item, number = _rows(binding, scope, node)
        exprs = [_value(binding, scope, c, item, number, variables) for c in node.columns]
    finally:
        scope.lateral_active, scope.clause = active, clause
    names = [column.name for column in node.columns]
    made = [binding.new_column(name, e.type) for name, e in zip(names, exprs, strict=True)]
    scope.ids.update([column.id for column in made])
    given = strings(node.alias.colnames) if node.alias is not None else ()
    shown = "json_table" if node.alias is None else node.alias.aliasname
    if len(given) > len(names):
        message = (
            f'table "{shown}" has {len(names)} columns available but {len(given)} columns specified'
        )
        raise SqlError("42P10", message)
    names = [*given, *names[len(given) :]]
    refs: list[Expr] = [ColumnRef(column.id, column.type) for column in made]
    plan = Project(rows, tuple(made), tuple(exprs))
    return plan, [Item(shown, list(zip(names, refs, strict=True)))]


def _check_columns(node: Node) -> None:
    names = {node.pathspec.name or "json_table_path_0"}
    for column in node.columns:
        if column.coltype == JsonTableColumnType.JTC_NESTED:
            raise not_supported("NESTED PATH of JSON_TABLE", at(column.location))
        if column.name in names:
            message = f"duplicate JSON_TABLE column or path name: {column.name}"
            raise SqlError("42712", message, at(column.location))
        names.add(column.name)


def _rows(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, Expr, Expr, Expr]:
    """The items in order, the variables of the paths, and an item with its number."""
    document = document_of(binding, scope, node.context_item)
    path = path_of(binding, scope, node.pathspec.string)
    variables = variables_of(binding, scope, node.passing or ())
    how = Const("error" if _raises(node) else "empty", TEXT)
    items = Call(function_by_id(_ITEMS), (document, path, variables, how), array_of(JSONB))
    item, number = binding.new_column("item", JSONB), binding.new_column("number", INT8)
    # What the columns' paths refer to is kept beside each item.
    kept = binding.new_column("variables", JSONB)
    scan = SetScan((unnested(items),), (item,), number)
    columns: tuple[PlanColumn, ...] = (item, number, kept)
    again = [binding.new_column(column.name, column.type) for column in columns]
    exprs: Sequence[Expr] = (*(ColumnRef(c.id, c.type) for c in columns[:2]), variables)
    refs = [ColumnRef(column.id, column.type) for column in again]
    return Project(scan, tuple(again), tuple(exprs)), refs[2], refs[0], refs[1]


def _raises(node: Node) -> bool:
    behavior = node.on_error
    if behavior is None:
        return False
    if behavior.btype == JsonBehaviorType.JSON_BEHAVIOR_ERROR:
        return True
    kinds = (JsonBehaviorType.JSON_BEHAVIOR_EMPTY, JsonBehaviorType.JSON_BEHAVIOR_EMPTY_ARRAY)
    if behavior.btype not in kinds:
        raise SqlError("42601", "invalid ON ERROR behavior", at(behavior.location))
    return False


def _value(
    binding: Binding,
    scope: Scope,
    column: Node,
    item: Expr,
    number: Expr,
    variables: Expr,
) -> Expr:
    if column.coltype == JsonTableColumnType.JTC_FOR_ORDINALITY:
        return coerce(binding, number, column, INT4, EXPLICIT) or number
    target = type_named(binding, column.typeName)
    op, output = _operation(column, target)
    function = ast.JsonFuncExpr(
        op=op,
        output=output,
        on_empty=column.on_empty,
        on_error=column.on_error,
        wrapper=column.wrapper,
        quotes=column.quotes,
        location=column.location,
    )
    if column.pathspec is not None:
        path = path_of(binding, scope, column.pathspec.string)
    else:
        quoted = column.name.replace("\\", "\\\\").replace('"', '\\"')
        path = Const(f'$."{quoted}"', SqlType("jsonpath"))
    found = function_over(binding, scope, function, (item, path, variables))
    if op != JsonExprOp.JSON_EXISTS_OP or target.name == "bool":
        return found
    done = coerce(binding, found, column, target, EXPLICIT) if target.name == "int4" else None
    if done is None:
        raise not_supported("an EXISTS column of such a type", at(column.location))
    return done


def _operation(column: Node, target: SqlType) -> tuple[JsonExprOp, Node | None]:
    if column.coltype == JsonTableColumnType.JTC_EXISTS:
        return JsonExprOp.JSON_EXISTS_OP, None
    returning = ast.JsonReturning(format=column.format)
    output = ast.JsonOutput(typeName=column.typeName, returning=returning)
    formatted = (
        column.coltype == JsonTableColumnType.JTC_FORMATTED
        or column.wrapper != JsonWrapper.JSW_UNSPEC
        or column.quotes != JsonQuotes.JS_QUOTES_UNSPEC
    )
    if formatted or target.name in ("json", "jsonb"):
        return JsonExprOp.JSON_QUERY_OP, output
    return JsonExprOp.JSON_VALUE_OP, output
