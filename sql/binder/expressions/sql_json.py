"""SQL/JSON: constructors, IS JSON, JSON_EXISTS, JSON_VALUE and JSON_QUERY (parse_expr.c).

    JSON_OBJECT(k: v ..)       ─▶ sql_json_object(absent, unique, k, v ..)
    JSON_VALUE(j, path ..)     ─▶ sql_json_value(j, path, variables, on empty, value, on error ..)

INVARIANTS
  Q1  an extracted value is converted by its type's input function; under non-default styles that is
      refused.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pglast import ast
from pglast.enums import (
    JsonEncoding,
    JsonExprOp,
    JsonFormatType,
    JsonQuotes,
    JsonValueType,
    JsonWrapper,
    SetOperation,
    SubLinkType,
)

from sql.binder.expressions.calls import reg_value_as_text
from sql.binder.expressions.json_behaviors import behavior_of, behavior_with_default
from sql.binder.resolve.coercion import (
    ASSIGNMENT,
    EXPLICIT,
    bind_settled,
    coerce,
    coerce_implicitly,
    zone_arguments,
)
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.resolve.type_names import resolve_type
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.functions.table import CastContext, function_by_id
from sql.parser.syntax import Node, is_a, node_position, offset_to_position
from sql.plan.nodes import Call, Const, Expr
from sql.types.sql_type import BOOL, JSON, JSONB, NAME, REG_TYPES, TEXT, SqlType, format_type
from sql.types.styles import DEFAULT_STYLES

_EXPR_SUBLINK: Final = SubLinkType.EXPR_SUBLINK
_JSONPATH: Final = SqlType("jsonpath")
_SERIALIZED: Final = frozenset({"text", "varchar", "bpchar", "name", "bytea"})
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "unknown"})
_JSONS: Final = frozenset({"json", "jsonb"})
_ENCODINGS: Final = {JsonEncoding.JS_ENC_UTF16: "UTF16", JsonEncoding.JS_ENC_UTF32: "UTF32"}
"""What PostgreSQL's grammar knows and convert_from() does not."""


# --- constructors ------------------------------------------------------------------------------


def json_object(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_OBJECT(key: value ..)`."""
    parts: list[Expr] = []
    values: list[Expr] = []
    for pair in node.exprs or ():
        values.append(_value(binding, scope, pair.value))
        key = bind_settled(binding, scope, pair.key)
        parts += [reg_value_as_text(binding, key, pair.key), values[-1]]
    flags = [Const(bool(node.absent_on_null), BOOL), Const(bool(node.unique), BOOL)]
    return _constructed(binding, scope, node, "object", flags, parts, values)


def json_array(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_ARRAY(value ..)`."""
    values = [_value(binding, scope, part) for part in node.exprs or ()]
    flags = [Const(bool(node.absent_on_null), BOOL)]
    return _constructed(binding, scope, node, "array", flags, values, values)


def _constructed(
    binding: Binding,
    _scope: Scope,
    node: Node,
    what: str,
    flags: Sequence[Expr],
    parts: Sequence[Expr],
    values: Sequence[Expr],
) -> Expr:
    target = _target(binding, node.output, values)
    made = JSONB if target.name == "jsonb" else JSON
    if not parts:
        found: Expr = Const("{}" if what == "object" else "[]", made)
    else:
        places = ",".join(["bool"] * len(flags))
        row = function_by_id(f"sql_{made.name}_{what}({places},any)")
        parts = styled_arguments(binding, row, parts, made.name)
        found = Call(row, (*flags, *parts, *zone_arguments(binding, row)), made)
    return _returned(binding, found, target, node)


def json_array_of_query(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_ARRAY(SELECT ..)`: the aggregate over the rows of the query."""
    if _width(binding, scope, node.query) != 1:
        raise SqlError(
            "42601", "subquery must return only one column", offset_to_position(node.location)
        )
    rows = ast.RangeSubselect(
        subquery=node.query,
        alias=ast.Alias(aliasname="q", colnames=(ast.String(sval="a"),)),
    )
    column = ast.ColumnRef(
        fields=(ast.String(sval="q"), ast.String(sval="a")), location=node.location
    )
    aggregate = ast.JsonArrayAgg(
        constructor=ast.JsonAggConstructor(output=node.output, location=node.location),
        arg=ast.JsonValueExpr(raw_expr=column, format=node.format),
        absent_on_null=node.absent_on_null,
    )
    target = ast.ResTarget(val=aggregate, location=node.location)
    select = ast.SelectStmt(
        targetList=(target,), fromClause=(rows,), op=SetOperation.SETOP_NONE, all=False
    )
    link = ast.SubLink(subLinkType=_EXPR_SUBLINK, subselect=select, location=node.location)
    return binding.expression(scope, link)


def _width(binding: Binding, scope: Scope, query: Node) -> int:
    """How many columns it has; it is bound only if a `*` is among them."""
    first = query
    while first.op != SetOperation.SETOP_NONE:
        first = first.larg
    if first.valuesLists:
        return len(first.valuesLists[0])
    targets = first.targetList or ()
    if not any(_is_star(target.val) for target in targets):
        return len(targets)
    supplied = len(binding.supplied)
    found = len(binding.bind_query(binding, query, scope).columns)
    del binding.supplied[supplied:]  # It is bound once more, and runs once.
    return found


def _is_star(value: Node) -> bool:
    """`*`, `t.*`, `(t).*`."""
    parts: Sequence[Node] = ()
    if is_a(value, ast.ColumnRef):
        parts = value.fields
    elif is_a(value, ast.A_Indirection):
        parts = value.indirection
    return bool(parts) and is_a(parts[-1], ast.A_Star)


def json_parsed(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON(text)`."""
    expr = _settled(binding, scope, node.expr)
    if not node.unique_keys:
        return _cast(binding, expr, node.expr.raw_expr, JSON)
    if expr.type.name not in _TEXTS:
        raise not_supported(
            "WITH UNIQUE KEYS of a value that is no text", offset_to_position(node.location)
        )
    text = coerce_implicitly(binding, expr, node.expr.raw_expr, TEXT)
    return Call(function_by_id("json_unique(text)"), (text,), JSON)


def json_scalar(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_SCALAR(value)`."""
    expr = reg_value_as_text(binding, bind_settled(binding, scope, node.expr), node.expr)
    if expr.type.name in _JSONS:
        return _cast(binding, expr, node.expr, JSON)
    row = function_by_id("to_json(anyelement)")
    args = styled_arguments(binding, row, (expr,), "json")
    return Call(row, (*args, *zone_arguments(binding, row)), JSON)


def json_serialized(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_SERIALIZE(json)`."""
    expr = _settled(binding, scope, node.expr)
    if expr.type.name == "jsonb":
        raise not_supported("JSON_SERIALIZE of a jsonb", offset_to_position(node.location))
    found = _cast(binding, expr, node.expr.raw_expr, JSON)
    target = TEXT if node.output is None else _type(binding, node.output)
    if target.name not in _SERIALIZED:
        message = f"cannot use type {format_type(target.bare())} in RETURNING clause of "
        hint = "Try returning a string type or bytea."
        raise datatype_mismatch(f"{message}JSON_SERIALIZE()", hint=hint)
    return _returned(binding, found, target, node)


def json_array_aggregate(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_ARRAYAGG(value)`."""
    ending = "_agg_strict" if node.absent_on_null else "_agg"
    return _aggregate(binding, scope, node, ending, (), node.arg)


def json_object_aggregate(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`JSON_OBJECTAGG(key: value)`."""
    ending = "_object_agg" + ("_unique" if node.unique else "")
    ending += "_strict" if node.absent_on_null else ""
    return _aggregate(binding, scope, node, ending, (node.arg.key,), node.arg.value)


def _aggregate(
    binding: Binding, scope: Scope, node: Node, ending: str, keys: tuple[Node, ...], value: Node
) -> Expr:
    made, argument = node.constructor, _argument(value)
    inside, scope.in_aggregate = scope.in_aggregate, True
    try:
        if value.format is not None and value.format.encoding:
            _settled(binding, scope, value)
        values = [binding.expression(scope, argument)]
    finally:
        scope.in_aggregate = inside
    if values[0].type.name == "unknown":
        argument = _cast_node(argument, "text")
    target = _target(binding, made.output, values)
    base = "jsonb" if target.name == "jsonb" else "json"
    call = ast.FuncCall(
        funcname=(ast.String(sval=base + ending),),
        args=(*keys, argument),
        agg_order=made.agg_order,
        agg_filter=made.agg_filter,
        over=made.over,
        funcformat=0,
        location=made.location,
    )
    return _returned(binding, binding.expression(scope, call), target, made)


def _argument(value: Node) -> Node:
    """The value as an argument of a function: FORMAT JSON is a cast."""
    if not _is_json(value):
        return value.raw_expr
    return _cast_node(value.raw_expr, "json")


def _cast_node(node: Node, type_: str) -> Node:
    name = ast.TypeName(names=(ast.String(sval=type_),), typemod=-1, location=-1)
    return ast.TypeCast(arg=node, typeName=name, location=-1)


def _is_json(value: Node) -> bool:
    return value.format is not None and value.format.format_type == JsonFormatType.JS_FORMAT_JSON


def _settled(binding: Binding, scope: Scope, value: Node) -> Expr:
    """The value, whose bytes have no encoding unless they are bytes."""
    expr = bind_settled(binding, scope, value.raw_expr)
    if value.format is not None and value.format.encoding and expr.type.name != "bytea":
        message = "JSON ENCODING clause is only allowed for bytea input type"
        raise SqlError("42804", message, offset_to_position(value.format.location))
    return expr


def _type(binding: Binding, output: Node) -> SqlType:
    """What RETURNING names."""
    made = resolve_type(binding, output.typeName)
    said = None if output.returning is None else output.returning.format
    if said is not None and said.encoding and made.name != "bytea":
        message = "cannot set JSON encoding for non-bytea output types"
        raise SqlError("0A000", message, offset_to_position(said.location))
    return made


def _value(binding: Binding, scope: Scope, value: Node) -> Expr:
    expr = reg_value_as_text(binding, _settled(binding, scope, value), value.raw_expr)
    if _is_json(value) and expr.type.name not in _JSONS:
        if expr.type.name == "bytea":
            row = function_by_id("convert_from(bytea,name)")
            encoding = _ENCODINGS.get(value.format.encoding, "UTF8")
            expr = Call(row, (expr, Const(encoding, NAME)), TEXT)
        return _cast(binding, expr, value.raw_expr, JSON)
    return expr


def _target(binding: Binding, output: Node | None, values: Sequence[Expr]) -> SqlType:
    """What RETURNING says; without it jsonb if a value is one."""
    if output is None:
        return JSONB if any(value.type.name == "jsonb" for value in values) else JSON
    return _type(binding, output)


def _returned(binding: Binding, expr: Expr, target: SqlType, node: Node) -> Expr:
    if expr.type.name == target.name:
        return expr
    if target.name not in ("text", "varchar", "bpchar", *_JSONS):
        if target.name == "bytea":
            raise not_supported("RETURNING bytea", offset_to_position(node.location))
        shown = f"{format_type(expr.type)} to {format_type(target)}"
        raise SqlError("42846", f"cannot cast type {shown}")
    # A text that is too long for it is an error, where a cast would cut it off.
    return _cast(binding, expr, node, target, ASSIGNMENT)


def _cast(
    binding: Binding, expr: Expr, node: Node, target: SqlType, context: CastContext = EXPLICIT
) -> Expr:
    done = coerce(binding, expr, node, target, context)
    if done is None:
        shown = f"{format_type(expr.type.bare())} to {format_type(target)}"
        raise SqlError("42846", f"cannot cast type {shown}", node_position(node))
    return done


# --- IS JSON -----------------------------------------------------------------------------------

_KINDS: Final = {
    JsonValueType.JS_TYPE_ANY: "any",
    JsonValueType.JS_TYPE_OBJECT: "object",
    JsonValueType.JS_TYPE_ARRAY: "array",
    JsonValueType.JS_TYPE_SCALAR: "scalar",
}


def is_json(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`value IS JSON ..`; the caller adds NOT."""
    expr = bind_settled(binding, scope, node.expr)
    if expr.type.name == "bytea":
        raise not_supported("IS JSON of bytea", offset_to_position(node.location))
    if expr.type.name not in _TEXTS and expr.type.name not in _JSONS:
        message = f"cannot use type {format_type(expr.type.bare())} in IS JSON predicate"
        raise datatype_mismatch(message)
    text = _cast(binding, expr, node.expr, TEXT)
    kind, unique = Const(_KINDS[node.item_type], TEXT), Const(bool(node.unique_keys), BOOL)
    return Call(function_by_id("is_json(text,text,bool)"), (text, kind, unique), BOOL)


# --- JSON_EXISTS, JSON_VALUE, JSON_QUERY -------------------------------------------------------


def json_function(binding: Binding, scope: Scope, node: Node) -> Expr:
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY."""
    if binding.context.styles != DEFAULT_STYLES:
        raise not_supported(
            "SQL/JSON under this DateStyle or IntervalStyle", offset_to_position(node.location)
        )
    document = document_of(binding, scope, node.context_item)
    path = path_of(binding, scope, node.pathspec)
    variables = variables_of(binding, scope, node.passing or ())
    return function_over(binding, scope, node, (document, path, variables))


def function_over(
    binding: Binding, scope: Scope, node: Node, given: tuple[Expr, Expr, Expr]
) -> Expr:
    """The function over a document, a path and its variables."""
    target = _JSON_FUNCTIONS[node.op](binding, node)
    if node.op == JsonExprOp.JSON_EXISTS_OP:
        word = behavior_of(node, node.on_error, "ON ERROR", "false")
        return _called("sql_json_exists(jsonb,jsonpath,jsonb,text)", given, [word], BOOL)
    empty = behavior_with_default(binding, scope, node, node.on_empty, "ON EMPTY", target)
    error = behavior_with_default(binding, scope, node, node.on_error, "ON ERROR", target)
    if node.op == JsonExprOp.JSON_VALUE_OP:
        row = function_by_id("sql_json_value(jsonb,jsonpath,jsonb,text,any,text,any)")
        args = (*given, *empty, *error, *zone_arguments(binding, row))
        return Call(row, args, target)
    wrapper = {JsonWrapper.JSW_UNCONDITIONAL: "always", JsonWrapper.JSW_CONDITIONAL: "several"}
    how = wrapper.get(node.wrapper, "never")
    omits = node.quotes == JsonQuotes.JS_QUOTES_OMIT
    row = function_by_id("sql_json_query(jsonb,jsonpath,jsonb,text,bool,text,any,text,any)")
    args = (*given, Const(how, TEXT), Const(omits, BOOL), *empty, *error)
    return Call(row, args, target)


def _called(id_: str, given: Sequence[Expr], words: Sequence[str], type_: SqlType) -> Expr:
    return Call(function_by_id(id_), (*given, *(Const(word, TEXT) for word in words)), type_)


def document_of(binding: Binding, scope: Scope, value: Node) -> Expr:
    """A context item as jsonb."""
    expr = _settled(binding, scope, value)
    if expr.type.name in _TEXTS or expr.type.name in _JSONS:
        return _cast(binding, expr, value.raw_expr, JSONB)
    shown = format_type(expr.type.bare())
    raise SqlError("42846", f"cannot cast type {shown} to jsonb", node_position(value.raw_expr))


def path_of(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A path expression as jsonpath."""
    expr = binding.expression(scope, node)
    done = coerce(binding, expr, node, _JSONPATH, EXPLICIT)
    if done is None:
        message = (
            f"JSON path expression must be of type jsonpath, not of type {format_type(expr.type)}"
        )
        raise datatype_mismatch(message, node_position(node))
    return done


def variables_of(binding: Binding, scope: Scope, passing: Sequence[Node]) -> Expr:
    """The variables of PASSING, as a JSON object."""
    if not passing:
        return Const("{}", JSONB)
    parts: list[Expr] = []
    for argument in passing:
        value = _value(binding, scope, argument.val)
        if value.type.category in ("D", "T"):
            # A path tells them from texts.
            what = f"PASSING a value of type {format_type(value.type.bare())}"
            raise not_supported(what, node_position(argument.val))
        parts += [Const(argument.name, TEXT), value]
    row = function_by_id("jsonb_build_object(any)")
    return Call(row, (*parts, *zone_arguments(binding, row)), JSONB)


def _exists_type(binding: Binding, node: Node) -> SqlType:
    if node.output is not None and _type(binding, node.output).name != "bool":
        raise not_supported("RETURNING of JSON_EXISTS", offset_to_position(node.location))
    return BOOL


def _value_type(binding: Binding, node: Node) -> SqlType:
    said = None if node.output is None else node.output.returning.format
    if said is not None and said.format_type != JsonFormatType.JS_FORMAT_DEFAULT:
        message = "cannot specify FORMAT JSON in RETURNING clause of JSON_VALUE()"
        raise SqlError("42601", message, offset_to_position(said.location))
    target = TEXT if node.output is None else _type(binding, node.output)
    refused = target.element is not None or target.name in ("record", "void", *REG_TYPES)
    if refused:
        raise not_supported(f"RETURNING {format_type(target)}", offset_to_position(node.location))
    return target


def _query_type(binding: Binding, node: Node) -> SqlType:
    wraps = node.wrapper in (JsonWrapper.JSW_CONDITIONAL, JsonWrapper.JSW_UNCONDITIONAL)
    if wraps and node.quotes == JsonQuotes.JS_QUOTES_OMIT:
        message = "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used"
        raise SqlError("42601", message, offset_to_position(node.location))
    target = JSONB if node.output is None else _type(binding, node.output)
    if target.name not in ("json", "jsonb", "text") or target.typmod != -1:
        raise not_supported(
            f"JSON_QUERY RETURNING {format_type(target)}", offset_to_position(node.location)
        )
    return target


_JSON_FUNCTIONS: Final[dict[JsonExprOp, Callable[[Binding, Node], SqlType]]] = {
    JsonExprOp.JSON_EXISTS_OP: _exists_type,
    JsonExprOp.JSON_VALUE_OP: _value_type,
    JsonExprOp.JSON_QUERY_OP: _query_type,
}
