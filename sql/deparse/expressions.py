"""Analyze an expression: raw syntax tree to typed nodes (parse_expr.c)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import BoolExprType, BoolTestType, MinMaxOp, NullTestType, SubLinkType

from sql.deparse.calls import analyze_call
from sql.deparse.coercion import (
    UnknownShape,
    add_coercion,
    common_type,
    common_typmod,
    converted,
    settled,
    to_common,
)
from sql.deparse.nodes import (
    Boolean,
    CaseExpr,
    Collate,
    Constant,
    GroupingExpr,
    Keyword,
    Listed,
    NullOrBooleanTest,
    SubLink,
    Subscript,
    TypedExpr,
)
from sql.deparse.operations import operation, row_of
from sql.deparse.overloads import called_operator
from sql.deparse.state import Analysis, Level, named_column
from sql.deparse.types import (
    BOOL_TYPE,
    INT4_TYPE,
    INT8_TYPE,
    NUMERIC_TYPE,
    RECORD_TYPE,
    TEXT_TYPE,
    UNKNOWN_TYPE,
    Type,
)
from sql.parser.syntax import Node, is_a, string_values, value_function_name
from sql.types.sql_type import REG_TYPES

_INT4_MAX: Final = (1 << 31) - 1
_INT8_MAX: Final = (1 << 63) - 1
_BOOLEAN_TESTS: Final = {
    BoolTestType.IS_TRUE: "IS TRUE",
    BoolTestType.IS_NOT_TRUE: "IS NOT TRUE",
    BoolTestType.IS_FALSE: "IS FALSE",
    BoolTestType.IS_NOT_FALSE: "IS NOT FALSE",
    BoolTestType.IS_UNKNOWN: "IS UNKNOWN",
    BoolTestType.IS_NOT_UNKNOWN: "IS NOT UNKNOWN",
}
_VALUE_TYPES: Final = {
    "current_date": "date",
    "current_time": "timetz",
    "current_timestamp": "timestamptz",
    "localtime": "time",
    "localtimestamp": "timestamp",
}


def expression(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    """One expression; untyped literals stay untyped."""
    analyze = _ANALYZERS.get(type(node))
    if analyze is None:
        raise UnknownShape(type(node).__name__)
    return analyze(analysis, level, node)


def boolean_condition(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    """A condition: boolean."""
    return converted(analysis.expression(level, node), BOOL_TYPE, analysis.zone)


def _constant(_analysis: Analysis, _level: Level, node: Node) -> TypedExpr:
    if node.isnull:
        return Constant(None, UNKNOWN_TYPE)
    value = node.val
    if is_a(value, ast.Integer):
        return Constant(str(value.ival or 0), INT4_TYPE)
    if is_a(value, ast.Float):
        return _number(value.fval)
    if is_a(value, ast.Boolean):
        return Constant("t" if value.boolval else "f", BOOL_TYPE)
    if is_a(value, ast.String):
        return Constant(value.sval or "", UNKNOWN_TYPE)
    raise UnknownShape(type(value).__name__)


def _number(text: str) -> Constant:
    digits = text.replace("_", "")
    if digits.removeprefix("-").isdecimal():
        number = int(digits)
        if -_INT4_MAX - 1 <= number <= _INT4_MAX:
            return Constant(str(number), INT4_TYPE)
        fits = -_INT8_MAX - 1 <= number <= _INT8_MAX
        return Constant(str(number), INT8_TYPE if fits else NUMERIC_TYPE)
    made = converted(Constant(digits, UNKNOWN_TYPE), NUMERIC_TYPE, "UTC")
    assert isinstance(made, Constant), "a literal stays one"
    return made


def _column(_analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    if not all(is_a(field, ast.String) for field in node.fields):
        raise UnknownShape("*")
    return named_column(level, list(string_values(node.fields)))


def _cast(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    target = analysis.declared(node.typeName)
    arg = node.arg
    if is_a(arg, ast.A_ArrayExpr) and target.is_array:
        return add_coercion(
            _array_of(analysis, level, arg, target), target, analysis.zone, explicit=True
        )
    if (
        target.name in REG_TYPES
        and is_a(arg, ast.A_Const)
        and is_a(arg.val, ast.String)
        and not node.typeName.arrayBounds
    ):
        return Constant(analysis.reg_text(target.name, arg.val.sval), target)
    if is_a(arg, ast.RowExpr):
        raise UnknownShape("ROW()::type")
    return add_coercion(analysis.expression(level, arg), target, analysis.zone, explicit=True)


def _array(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    return _array_of(analysis, level, node, None)


def _array_of(analysis: Analysis, level: Level, node: Node, target: Type | None) -> TypedExpr:
    """ARRAY[..]; under a cast to an array its elements are cast (transformArrayExpr)."""
    if any(is_a(part, ast.A_ArrayExpr) for part in node.elements or ()):
        raise UnknownShape("an array of arrays")
    items = [analysis.expression(level, part) for part in node.elements or ()]
    if target is not None:
        element = Type(target.name[1:], target.typmod)
        done = tuple(add_coercion(item, element, analysis.zone, explicit=True) for item in items)
        return Listed("ARRAY", done, target if not done else Type(target.name, target.typmod))
    done, type_ = to_common(items, analysis.zone)
    return Listed("ARRAY", done, Type(f"_{type_.name}", type_.typmod))


def _boolean(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    names = {
        BoolExprType.AND_EXPR: "AND",
        BoolExprType.OR_EXPR: "OR",
        BoolExprType.NOT_EXPR: "NOT",
    }
    args = tuple([boolean_condition(analysis, level, arg) for arg in node.args])
    return Boolean(names[node.boolop], args)


def _null_test(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    arg = analysis.expression(level, node.arg)
    is_null = node.nulltesttype == NullTestType.IS_NULL
    return NullOrBooleanTest("IS NULL" if is_null else "IS NOT NULL", arg)


def _boolean_test(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    return NullOrBooleanTest(
        _BOOLEAN_TESTS[node.booltesttype], boolean_condition(analysis, level, node.arg)
    )


def _coalesce(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    items = [analysis.expression(level, arg) for arg in node.args]
    return Listed("COALESCE", *to_common(items, analysis.zone))


def _extreme(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    items = [analysis.expression(level, arg) for arg in node.args]
    name = "GREATEST" if node.op == MinMaxOp.IS_GREATEST else "LEAST"
    return Listed(name, *to_common(items, analysis.zone))


def _case(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    zone = analysis.zone
    arg = None if node.arg is None else settled(analysis.expression(level, node.arg), zone)
    tests: list[TypedExpr] = []
    for when in node.args:
        test = analysis.expression(level, when.expr)
        if arg is None:
            test = converted(test, BOOL_TYPE, zone)
        else:
            (_, wanted), _ = called_operator("=", (arg.type.name, test.type.name))
            test = converted(test, Type(wanted), zone)
        tests.append(test)
    results = [analysis.expression(level, when.result) for when in node.args]
    last = Constant(None, UNKNOWN_TYPE)
    otherwise = last if node.defresult is None else analysis.expression(level, node.defresult)
    type_ = common_type([otherwise, *results])
    done = [converted(result, type_, zone) for result in (otherwise, *results)]
    type_ = replace(type_, typmod=common_typmod(done, type_))
    return CaseExpr(arg, tuple(zip(tests, done[1:], strict=True)), done[0], type_)


def _row(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    items = [settled(item, analysis.zone) for item in row_of(analysis, level, node)]
    return Listed("ROW", tuple(items), RECORD_TYPE)


def _value_function(_analysis: Analysis, _level: Level, node: Node) -> TypedExpr:
    name = value_function_name(node)
    typmod = -1 if node.typmod is None else node.typmod
    text = name.upper() if typmod < 0 else f"{name.upper()}({typmod})"
    return Keyword(text, Type(_VALUE_TYPES.get(name, "name"), typmod))


def _collate(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    arg = settled(analysis.expression(level, node.arg), analysis.zone)
    return Collate(arg, node.collname[-1].sval, arg.type)


def _indirection(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    made = analysis.expression(level, node.arg)
    parts: list[tuple[TypedExpr | None, ...]] = []
    for part in node.indirection:
        if not is_a(part, ast.A_Indices):
            raise UnknownShape("field selection")
        bounds = (part.lidx, part.uidx) if part.is_slice else (part.uidx,)
        parts.append(tuple([_bound(analysis, level, made, bound) for bound in bounds]))
    if made.type.name == "jsonb":
        return Subscript(made, tuple(parts), made.type)
    if not made.type.is_array:
        raise UnknownShape("a subscript of something else")
    is_slice = any(len(part) > 1 for part in parts)
    return Subscript(made, tuple(parts), made.type if is_slice else made.type.element)


def _bound(analysis: Analysis, level: Level, arg: TypedExpr, node: Node) -> TypedExpr | None:
    if node is None:
        return None
    bound = analysis.expression(level, node)
    if arg.type.name == "jsonb":
        return converted(bound, TEXT_TYPE, analysis.zone) if bound.type.name == "unknown" else bound
    return add_coercion(bound, INT4_TYPE, analysis.zone)


def _grouping(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    return GroupingExpr(tuple([analysis.expression(level, arg) for arg in node.args]))


def _sublink(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    query = analysis.query(node.subselect, level)
    columns = query.columns
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            return SubLink("EXISTS", query, BOOL_TYPE)
        case SubLinkType.EXPR_SUBLINK:
            return SubLink("EXPR", query, columns[0].expr.type)
        case SubLinkType.ARRAY_SUBLINK:
            element = columns[0].expr.type
            return SubLink("ARRAY", query, Type(f"_{element.name}", element.typmod))
        case SubLinkType.ANY_SUBLINK | SubLinkType.ALL_SUBLINK:
            pass
        case _:
            raise UnknownShape("sublink")
    name = node.operName[-1].sval if node.operName else "="
    is_row = is_a(node.testexpr, ast.RowExpr)
    left = (
        row_of(analysis, level, node.testexpr)
        if is_row
        else [analysis.expression(level, node.testexpr)]
    )
    done: list[TypedExpr] = []
    for item, column in zip(left, columns, strict=True):
        (wanted, _), _ = called_operator(name, (item.type.name, column.expr.type.name))
        done.append(converted(item, Type(wanted), analysis.zone))
    kind = "ANY" if node.subLinkType == SubLinkType.ANY_SUBLINK else "ALL"
    return SubLink(kind, query, BOOL_TYPE, tuple(done), name)


_ANALYZERS: Final[Mapping[type, Callable[[Analysis, Level, Node], TypedExpr]]] = {
    ast.A_Const: _constant,
    ast.ColumnRef: _column,
    ast.TypeCast: _cast,
    ast.A_Expr: operation,
    ast.BoolExpr: _boolean,
    ast.NullTest: _null_test,
    ast.BooleanTest: _boolean_test,
    ast.FuncCall: analyze_call,
    ast.CoalesceExpr: _coalesce,
    ast.MinMaxExpr: _extreme,
    ast.CaseExpr: _case,
    ast.A_ArrayExpr: _array,
    ast.RowExpr: _row,
    ast.SQLValueFunction: _value_function,
    ast.CollateClause: _collate,
    ast.A_Indirection: _indirection,
    ast.GroupingFunc: _grouping,
    ast.SubLink: _sublink,
}
