"""JSON_TABLE: rewrite it to lateral unnests and SQL/JSON functions (parse_jsontable.c).

    JSON_TABLE(j, path COLUMNS (..))  ─▶  unnest of the items, lateral, and over each of them
                                          JSON_VALUE, JSON_QUERY or JSON_EXISTS for every column
    NESTED PATH path COLUMNS (..)     ─▶  left join of the items in each item

INVARIANTS
  T1  sibling nested paths form one list of items, in the order of the paths. A row belongs to one
      of them; the items of the others, and the columns computed from them, are NULL in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast
from pglast.enums import (
    JsonBehaviorType,
    JsonExprOp,
    JsonQuotes,
    JsonTableColumnType,
    JsonWrapper,
)

from sql.binder.expressions.set_returning import unnest_array
from sql.binder.expressions.sql_json import document_of, function_over, path_of, variables_of
from sql.binder.resolve.coercion import EXPLICIT, coerce
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.resolve.type_names import resolve_type
from sql.binder.state import Binding, FromItem, Scope
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import (
    Call,
    ColumnRef,
    Const,
    Expr,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    SetScan,
    output_columns,
)
from sql.types.sql_type import BOOL, INT4, INT8, JSONB, TEXT, SqlType, array_of

_ITEMS: Final = "sql_json_items(jsonb,jsonpath,jsonb,text)"


def json_table(binding: Binding, scope: Scope, node: Node) -> tuple[Plan, list[FromItem]]:
    """The rows, and the columns with their names."""
    _check_names(node)
    active, clause = scope.lateral_active, scope.clause
    scope.lateral_active, scope.clause = True, "FROM"
    try:
        rows, exprs = _columns(binding, scope, node.columns, _rows(binding, scope, node))
    finally:
        scope.lateral_active, scope.clause = active, clause
    names = [column.name for column in _in_order(node.columns)]
    made = [binding.new_column(name, e.type) for name, e in zip(names, exprs, strict=True)]
    scope.ids.update([column.id for column in made])
    given = string_values(node.alias.colnames) if node.alias is not None else ()
    shown = "json_table" if node.alias is None else node.alias.aliasname
    if len(given) > len(names):
        message = (
            f'table "{shown}" has {len(names)} columns available but {len(given)} columns specified'
        )
        raise SqlError("42P10", message)
    names = [*given, *names[len(given) :]]
    refs: list[Expr] = [ColumnRef(column.id, column.type) for column in made]
    plan = Project(rows.plan, tuple(made), tuple(exprs))
    return plan, [FromItem(shown, list(zip(names, refs, strict=True)))]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows, an item in each with its number, the variables of the paths, and `empty` or `error`."""

    plan: Plan
    item: Expr
    number: Expr
    variables: Expr
    on_error: Const


def _in_order(columns: Sequence[Node]) -> Iterator[Node]:
    """Columns as they are shown: those of nested paths behind the others."""
    yield from (column for column in columns if not _is_nested(column))
    for column in filter(_is_nested, columns):
        yield from _in_order(column.columns)


def _is_nested(column: Node) -> bool:
    return bool(column.coltype == JsonTableColumnType.JTC_NESTED)


def _check_names(node: Node) -> None:
    names: set[str] = set() if node.pathspec.name else {"json_table_path_0"}
    for name, place in _names(node):
        if name in names:
            message = f"duplicate JSON_TABLE column or path name: {name}"
            raise SqlError("42712", message, offset_to_position(place))
        names.add(name)


def _names(node: Node) -> Iterator[tuple[str, int]]:
    """Of a path, its columns and the paths in it."""
    if node.pathspec is not None and node.pathspec.name is not None:
        yield node.pathspec.name, node.pathspec.name_location
    for column in node.columns:
        if _is_nested(column):
            yield from _names(column)
        else:
            yield column.name, column.location


def _columns(
    binding: Binding, scope: Scope, columns: Sequence[Node], rows: _Rows
) -> tuple[_Rows, list[Expr]]:
    """The columns over the rows, and the rows with those of nested paths."""
    _check_counted_once(columns)
    found = [_value(binding, scope, column, rows) for column in columns if not _is_nested(column)]
    nested = list(filter(_is_nested, columns))
    if not nested:
        return rows, found
    parts, plan = _nested(binding, scope, nested, rows)
    for column, part in zip(nested, parts, strict=True):
        made, exprs = _columns(binding, scope, column.columns, replace(part, plan=plan))
        plan = made.plan
        found += exprs
    return replace(rows, plan=plan), found


def _nested(
    binding: Binding, scope: Scope, nested: Sequence[Node], rows: _Rows
) -> tuple[list[_Rows], Plan]:
    """The rows with those that nested paths find in them, and the items of each path (T1)."""
    lists = [binding.new_column("items", array_of(JSONB)) for _ in nested]
    calls = [_items(rows, path_of(binding, scope, column.pathspec.string)) for column in nested]
    passed = output_columns(rows.plan)
    refs = [ColumnRef(column.id, column.type) for column in passed]
    below = Project(rows.plan, (*passed, *lists), (*refs, *calls))
    of_path: list[Expr] = [ColumnRef(column.id, column.type) for column in lists]
    every, *others = of_path
    for more in others:
        every = inline_sql_function(binding, "$1 || $2", (every, more))
    item, number = binding.new_column("item", JSONB), binding.new_column("number", INT8)
    scan = SetScan((unnest_array(every),), (item,), number)
    plan = Join(JoinKind.LEFT, below, scan, Const(True, BOOL), lateral=True)
    value, place = ColumnRef(item.id, JSONB), ColumnRef(number.id, INT8)
    if not others:
        return [replace(rows, item=value, number=place)], plan
    parts: list[_Rows] = []
    before: Expr = Const(0, INT8)
    for items in of_path:
        args = (before, items, place, value)
        own = "case when $3 > $1 and $3 <= $1 + cardinality($2) then {} end"
        found, nth = (
            inline_sql_function(binding, own.format(text), args) for text in ("$4", "$3 - $1")
        )
        parts.append(replace(rows, item=found, number=nth))
        before = inline_sql_function(binding, "$1 + cardinality($2)", (before, items))
    return parts, plan


def _items(rows: _Rows, path: Expr) -> Call:
    args = (rows.item, path, rows.variables, rows.on_error)
    return Call(function_by_id(_ITEMS), args, array_of(JSONB))


def _rows(binding: Binding, scope: Scope, node: Node) -> _Rows:
    """The items in order."""
    document = document_of(binding, scope, node.context_item)
    path = path_of(binding, scope, node.pathspec.string)
    variables = variables_of(binding, scope, node.passing or ())
    how = Const("error" if _raises(node) else "empty", TEXT)
    items = Call(function_by_id(_ITEMS), (document, path, variables, how), array_of(JSONB))
    item, number = binding.new_column("item", JSONB), binding.new_column("number", INT8)
    # What the columns' paths refer to is kept beside each item.
    kept = binding.new_column("variables", JSONB)
    scan = SetScan((unnest_array(items),), (item,), number)
    columns: tuple[PlanColumn, ...] = (item, number, kept)
    again = [binding.new_column(column.name, column.type) for column in columns]
    exprs: Sequence[Expr] = (*(ColumnRef(c.id, c.type) for c in columns[:2]), variables)
    found, nth, passed = (ColumnRef(column.id, column.type) for column in again)
    return _Rows(Project(scan, tuple(again), tuple(exprs)), found, nth, passed, how)


def _raises(node: Node) -> bool:
    behavior = node.on_error
    if behavior is None:
        return False
    if behavior.btype == JsonBehaviorType.JSON_BEHAVIOR_ERROR:
        return True
    kinds = (JsonBehaviorType.JSON_BEHAVIOR_EMPTY, JsonBehaviorType.JSON_BEHAVIOR_EMPTY_ARRAY)
    if behavior.btype not in kinds:
        raise SqlError("42601", "invalid ON ERROR behavior", offset_to_position(behavior.location))
    return False


def _check_counted_once(columns: Sequence[Node]) -> None:
    ordinality = JsonTableColumnType.JTC_FOR_ORDINALITY
    for column in [column for column in columns if column.coltype == ordinality][1:]:
        raise SqlError(
            "42601",
            "only one FOR ORDINALITY column is allowed",
            offset_to_position(column.location),
        )


def _value(binding: Binding, scope: Scope, column: Node, rows: _Rows) -> Expr:
    if column.coltype == JsonTableColumnType.JTC_FOR_ORDINALITY:
        return coerce(binding, rows.number, column, INT4, EXPLICIT) or rows.number
    target = resolve_type(binding, column.typeName)
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
    found = function_over(binding, scope, function, (rows.item, path, rows.variables))
    if op != JsonExprOp.JSON_EXISTS_OP or target.name == "bool":
        return found
    done = coerce(binding, found, column, target, EXPLICIT) if target.name == "int4" else None
    if done is None:
        raise not_supported("an EXISTS column of such a type", offset_to_position(column.location))
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
