"""Bind an expression: dispatch a syntax node to its binder and return a typed expression.

Follows PostgreSQL's transformExpr.

    expression(binding, scope, node) ──▶ Expr, every name resolved, every conversion explicit

Operators, functions and subqueries have modules of their own; `_BINDERS` maps each node type to its
binder.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeAlias

from pglast import ast
from pglast.enums import BoolExprType, BoolTestType, MinMaxOp, NullTestType, SQLValueFunctionOp

from sql.binder.expressions import sql_json
from sql.binder.expressions.alike_comparisons import ALIKE_MIN, AlikeComparisons
from sql.binder.expressions.arrays import array_constructor, array_subscript, cast_constructor
from sql.binder.expressions.calls import cannot_cast
from sql.binder.expressions.catalog_casts import as_held, cast_to_catalog_type
from sql.binder.expressions.catalog_vectors import cast_vector, is_vector
from sql.binder.expressions.function_calls import function_call
from sql.binder.expressions.grouping_sets import grouping_call
from sql.binder.expressions.operators import (
    case_expression,
    operator_expression,
)
from sql.binder.expressions.row_fields import null_test_of_record
from sql.binder.expressions.rows import cast_row, cast_to_row_type, row_record, row_value
from sql.binder.expressions.session_calls import TRANSACTION_START, clock_value
from sql.binder.expressions.subqueries import negated_subquery, subquery
from sql.binder.expressions.system_sets import field_of_system_set
from sql.binder.expressions.whole_rows import expanded_row_fields, whole_row
from sql.binder.resolve.catalog_lookup import existing_schemas
from sql.binder.resolve.coercion import (
    EXPLICIT,
    apply_modifier,
    coerce,
    decimal_constant,
    float_literal,
    reg_parameter,
    to_boolean,
)
from sql.binder.resolve.collations import check_collation, set_collation
from sql.binder.resolve.column_lookup import (
    find_column,
    find_item,
    missing_column,
    qualified_column,
)
from sql.binder.resolve.expression_domain import domain_of
from sql.binder.resolve.type_names import declared_type, schema_domain
from sql.binder.resolve.unified_types import to_common_type
from sql.binder.state import Binding, Scope
from sql.binder.stored.domain_checks import checked_value
from sql.errors import SqlError, not_supported
from sql.functions.table import find_cast
from sql.parser.syntax import (
    Node,
    is_a,
    location,
    node_position,
    offset_to_position,
    unsupported_at,
    value_function_name,
)
from sql.plan.bpchar_calls import bpchar_extreme
from sql.plan.conditions import connect_conditions
from sql.plan.constant_rows import conditions_as_rows
from sql.plan.nodes import (
    BoolOp,
    Call,
    Coalesce,
    Const,
    Expr,
    IsTest,
    Logical,
    Param,
    Test,
    is_null,
)
from sql.types.comparability import check_greatest_least
from sql.types.datetime.typmods import time_typmod
from sql.types.limits import check_row_field_count
from sql.types.sql_type import (
    BOOL,
    INT4,
    INT8,
    NAME,
    TEXT,
    UNKNOWN,
    SqlType,
)

ExpressionBinder: TypeAlias = Callable[[Binding, Scope, Node], Expr]


def expression(binding: Binding, scope: Scope, node: Node) -> Expr:
    """Bind one expression. An untyped literal or parameter stays untyped."""
    binder = _BINDERS.get(type(node))
    if binder is None:
        raise unsupported_at(_describe(node), node)
    return binder(binding, scope, node)


def condition(binding: Binding, scope: Scope, node: Node, what: str) -> Expr:
    """Bind a condition: boolean, or 42804 with the clause's name."""
    return to_boolean(binding, expression(binding, scope, node), node, what)


_DESCRIPTIONS: Final = {
    ast.RowExpr: "a row value",
    ast.CurrentOfExpr: "WHERE CURRENT OF",
    ast.NamedArgExpr: "a named argument",
    ast.XmlExpr: "an XML expression",
    ast.XmlSerialize: "an XML expression",
}


def _describe(node: Node) -> str:
    return _DESCRIPTIONS.get(type(node), "a JSON expression")


# --- leaves ------------------------------------------------------------------------------------


def _constant(binding: Binding, _scope: Scope, node: Node) -> Expr:
    value: Node = node.val
    match node.val:
        case None:
            return Const(None, UNKNOWN)
        case ast.Integer():
            return Const(value.ival or 0, INT4)
        case ast.String():
            literal = Const(value.sval or "", UNKNOWN)
            binding.literals[id(literal)] = literal, node
            return literal
        case ast.Float():
            return _number(value.fval, node)
        case ast.Boolean():
            return Const(bool(value.boolval), BOOL)
        case _:
            raise unsupported_at("a bit string", node)


def _number(text: str, node: Node) -> Const:
    try:
        whole = int(text, 0) if text[:1].isdigit() or text[:1] == "-" else None
    except ValueError:
        whole = None
    if whole is not None and -(1 << 63) <= whole < 1 << 63:
        return Const(whole, INT4 if -(1 << 31) <= whole < 1 << 31 else INT8)
    exact = Decimal(text.replace("_", "")) if whole is None else Decimal(whole)
    if exact.adjusted() > 200 or exact.adjusted() < -200:
        detail = "A numeric holds at most 38 digits."
        raise SqlError(
            "22003", "value overflows numeric format", node_position(node), detail=detail
        )
    return decimal_constant(exact, node_position(node))


def _parameter(binding: Binding, _scope: Scope, node: Node) -> Expr:
    if binding.substitutes:
        return binding.substitutes[-1][(node.number or 1) - 1]
    return reg_parameter(binding, binding.parameter(node.number or 0, node.location), node)


def _column(binding: Binding, scope: Scope, node: Node) -> Expr:
    fields = node.fields
    if is_a(fields[-1], ast.A_Star):
        raise SqlError(
            "0A000",
            'row expansion via "*" is not supported here',
            offset_to_position(node.location),
        )
    if scope.clause == "DEFAULT":
        message = "cannot use column reference in DEFAULT expression"
        raise SqlError("0A000", message, offset_to_position(node.location))
    if len(fields) > 1:
        qualifier = [field.sval for field in fields[:-1]]
        return qualified_column(binding, scope, qualifier, fields[-1].sval, node.location)
    name = fields[0].sval
    found = find_column(binding, scope, name, node.location)
    if found is not None:
        return found
    item = find_item(scope, None, name, node.location)
    if item is not None and item.whole is not None:
        return item.whole
    whole = None if item is None else whole_row(binding, scope, node)
    if whole is not None:
        if whole.item.again:
            raise not_supported("a reference to a whole row", offset_to_position(node.location))
        return row_record(binding, whole)
    raise missing_column(scope, name, node.location)


def _value_function(binding: Binding, scope: Scope, node: Node) -> Expr:
    """CURRENT_DATE and its kin; those with digits are rounded to them."""
    found = _current_value(binding, scope, node)
    if node.typmod < 0:
        return found
    typmod = time_typmod(found.type.name, [node.typmod], offset_to_position(node.location))
    return apply_modifier(found, replace(found.type, typmod=typmod), EXPLICIT)


def _current_value(binding: Binding, _scope: Scope, node: Node) -> Expr:
    match node.op:
        case SQLValueFunctionOp.SVFOP_CURRENT_DATE:
            return _local_now(binding, "date")
        case (
            SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP
            | SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP_N
        ):
            return clock_value(binding, TRANSACTION_START)
        case SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP | SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP_N:
            return _local_now(binding, "timestamp")
        case SQLValueFunctionOp.SVFOP_CURRENT_TIME | SQLValueFunctionOp.SVFOP_CURRENT_TIME_N:
            return _local_now(binding, "timetz")
        case SQLValueFunctionOp.SVFOP_LOCALTIME | SQLValueFunctionOp.SVFOP_LOCALTIME_N:
            return _local_now(binding, "time")
        case _:
            return _session_name(binding, node)


def _session_name(binding: Binding, node: Node) -> Expr:
    context = binding.context
    binding.uses_session = True
    match node.op:
        case (
            SQLValueFunctionOp.SVFOP_CURRENT_ROLE
            | SQLValueFunctionOp.SVFOP_CURRENT_USER
            | SQLValueFunctionOp.SVFOP_USER
        ):
            return Const(context.user, NAME)
        case SQLValueFunctionOp.SVFOP_SESSION_USER:
            return Const(context.session_user or context.user, NAME)
        case SQLValueFunctionOp.SVFOP_CURRENT_CATALOG:
            return Const(context.database, NAME)
        case SQLValueFunctionOp.SVFOP_CURRENT_SCHEMA:
            return Const(next(existing_schemas(context, context.creation_path), None), NAME)
        case _:
            raise unsupported_at(value_function_name(node).upper(), node)


def _local_now(binding: Binding, target: str) -> Expr:
    """The transaction's start in the session's zone."""
    row = find_cast("timestamptz", target)
    assert row is not None, "timestamptz casts to date and timestamp"
    zone = Const(binding.context.timezone, TEXT)
    return Call(row, (clock_value(binding, TRANSACTION_START), zone), SqlType(target))


def _default(_binding: Binding, _scope: Scope, node: Node) -> Expr:
    raise SqlError(
        "42601", "DEFAULT is not allowed in this context", offset_to_position(node.location)
    )


# --- casts -------------------------------------------------------------------------------------


def _cast(binding: Binding, scope: Scope, node: Node) -> Expr:
    rare = cast_to_row_type(binding, scope, node) or cast_to_catalog_type(binding, scope, node)
    if rare is not None:
        return rare
    theirs = schema_domain(node.typeName)
    if theirs is not None:
        return checked_value(binding, _cast_to(binding, scope, node, theirs.type), theirs.domain)
    target, domain = declared_type(binding, node.typeName)
    done = _cast_to(binding, scope, node, target)
    if domain is not None:
        done = checked_value(binding, done, domain)
    # A cast that computes nothing leaves the expression what it was, but of another type.
    binding.casts[id(done)] = done, domain
    return done


def _cast_to(binding: Binding, scope: Scope, node: Node, target: SqlType) -> Expr:
    built = cast_constructor(binding, scope, node.arg, target)
    if built is not None:
        return built
    expr = cast_row(binding, scope, node.arg) or float_literal(binding, node.arg, target)
    expr = expr or expression(binding, scope, node.arg)
    if is_vector(binding, expr):
        expr = cast_vector(binding, expr, target)
    done = coerce(binding, expr, node.arg, target, EXPLICIT)
    done = as_held(binding, expr, done)
    if done is None:
        # The place of a cast is that of `::`, or of the keyword CAST; without one, of the argument.
        place = node.location if (node.location or -1) >= 0 else location(node.arg)
        raise cannot_cast(expr.type, target, offset_to_position(place))
    return done if target.typmod != -1 else _without_modifier(done, target)


def _without_modifier(expr: Expr, target: SqlType) -> Expr:
    """What a cast to a bare type leaves of varchar(5)."""
    if expr.type.typmod == -1 or expr.type.name != target.name:
        return expr
    bare = expr.type.bare()
    return replace(expr, type=bare) if isinstance(expr, Const) else Coalesce((expr,), bare)


def _collate(binding: Binding, scope: Scope, node: Node) -> Expr:
    expr = expression(binding, scope, node.arg)
    collation = check_collation(binding, node, expr.type)
    # Not the same expression to DISTINCT, GROUP BY and ORDER BY, though the same value.
    made = expr if isinstance(expr, Const | Param) else Coalesce((expr,), expr.type)
    return set_collation(binding, made, collation)


# --- logic -------------------------------------------------------------------------------------

_BOOL_WORDS: Final = {
    BoolExprType.AND_EXPR: (BoolOp.AND, "AND"),
    BoolExprType.OR_EXPR: (BoolOp.OR, "OR"),
    BoolExprType.NOT_EXPR: (BoolOp.NOT, "NOT"),
}


def _logical(binding: Binding, scope: Scope, node: Node) -> Expr:
    op, word = _BOOL_WORDS[node.boolop]
    if op is BoolOp.NOT:
        negated = negated_subquery(binding, scope, node.args[0])
        if negated is not None:
            return negated
        return Logical(op, (condition(binding, scope, node.args[0], word),), BOOL)
    parts: list[Expr] = []
    alike = AlikeComparisons(is_on=len(node.args) >= ALIKE_MIN)
    for arg in node.args:
        part = alike.bound(arg)
        if part is None:
            part = condition(binding, scope, arg, word)
            alike.note(arg, part)
        # Long chains stay flat, however they were nested in the text.
        if isinstance(part, Logical) and part.op is op:
            parts.extend(part.args)
        else:
            parts.append(part)
    return connect_conditions(op, conditions_as_rows(op, parts))


_BOOL_TESTS: Final = {
    BoolTestType.IS_TRUE: (Test.IS_TRUE, "IS TRUE"),
    BoolTestType.IS_NOT_TRUE: (Test.IS_NOT_TRUE, "IS NOT TRUE"),
    BoolTestType.IS_FALSE: (Test.IS_FALSE, "IS FALSE"),
    BoolTestType.IS_NOT_FALSE: (Test.IS_NOT_FALSE, "IS NOT FALSE"),
    BoolTestType.IS_UNKNOWN: (Test.IS_NULL, "IS UNKNOWN"),
    BoolTestType.IS_NOT_UNKNOWN: (Test.IS_NOT_NULL, "IS NOT UNKNOWN"),
}


def _boolean_test(binding: Binding, scope: Scope, node: Node) -> Expr:
    test, word = _BOOL_TESTS[node.booltesttype]
    return IsTest(test, condition(binding, scope, node.arg, word), BOOL)


def _null_test(binding: Binding, scope: Scope, node: Node) -> Expr:
    test = Test.IS_NULL if node.nulltesttype == NullTestType.IS_NULL else Test.IS_NOT_NULL
    if is_a(node.arg, ast.RowExpr):
        # A row is NULL if all of its columns are, and not NULL if none is.
        fields = expanded_row_fields(binding, scope, node.arg)
        parts = [_tested(binding, scope, part, test) for part in fields]
        check_row_field_count(len(parts), offset_to_position(node.arg.location))
        return connect_conditions(BoolOp.AND, parts) if parts else Const(True, BOOL)
    whole = whole_row(binding, scope, node.arg)
    if whole is not None:
        return connect_conditions(BoolOp.AND, [IsTest(test, expr, BOOL) for expr in whole.exprs])
    return _tested(binding, scope, node.arg, test)


def _tested(binding: Binding, scope: Scope, node: Node, test: Test) -> Expr:
    arg = expression(binding, scope, node)
    if arg.type.name == "unknown" and isinstance(arg, Const):
        arg = Const(arg.value, TEXT)
    elif arg.type.name == "unknown":
        # PostgreSQL leaves such a parameter undetermined, which is an error in the end.
        index, place = arg.index if isinstance(arg, Param) else 0, location(node) or 0
        arg = binding.parameter(index, place)
        binding.undetermined.setdefault(index, place)
    elif arg.type.name == "record":
        return null_test_of_record(test, arg)
    return IsTest(test, arg, BOOL)


# --- conditionals ------------------------------------------------------------------------------


def _coalesce(binding: Binding, scope: Scope, node: Node) -> Expr:
    args = [expression(binding, scope, arg) for arg in node.args]
    exprs, type_ = to_common_type(binding, args, node.args, "COALESCE")
    # PostgreSQL's planner leaves NULLs out: what is alone then keeps its modifier.
    there = [index for index, expr in enumerate(exprs) if not is_null(expr)]
    if not there or any(domain_of(binding, args[index]) is not None for index in there):
        # A NULL beside values of a domain makes them values of its base type (D5).
        return Coalesce(tuple(exprs), type_)
    if len(there) == 1 and args[there[0]].type.name == type_.name:
        return args[there[0]]
    return Coalesce(tuple([exprs[index] for index in there]), type_)


def _extreme(binding: Binding, scope: Scope, node: Node) -> Expr:
    greatest = node.op == MinMaxOp.IS_GREATEST
    args = [expression(binding, scope, arg) for arg in node.args]
    exprs, type_ = to_common_type(binding, args, node.args, "GREATEST" if greatest else "LEAST")
    check_greatest_least(type_)
    return bpchar_extreme(greatest, exprs, type_)


def _merge_action(_binding: Binding, scope: Scope, node: Node) -> Expr:
    for level in scope.levels():
        if level.merge_action is not None:
            return level.merge_action
    message = "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command"
    raise SqlError("42601", message, offset_to_position(node.location))


def _without_sets(binder: ExpressionBinder, what: str) -> ExpressionBinder:
    """The binder, for an expression that must not have set-returning functions in it."""

    def bound(binding: Binding, scope: Scope, node: Node) -> Expr:
        saved, scope.without_sets = scope.without_sets, what
        try:
            return binder(binding, scope, node)
        finally:
            scope.without_sets = saved

    return bound


def _indirection(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A subscript, or a field of a row."""
    written = field_of_system_set(node)
    if written is not None:
        return binding.expression(scope, written)
    return array_subscript(binding, scope, node)


_BINDERS: Final[dict[type, ExpressionBinder]] = {
    ast.A_ArrayExpr: array_constructor,
    ast.A_Const: _constant,
    ast.ColumnRef: _column,
    ast.ParamRef: _parameter,
    ast.A_Expr: operator_expression,
    ast.A_Indirection: _indirection,
    ast.BoolExpr: _logical,
    ast.FuncCall: function_call,
    ast.GroupingFunc: grouping_call,
    ast.TypeCast: _cast,
    ast.NullTest: _null_test,
    ast.BooleanTest: _boolean_test,
    ast.CaseExpr: _without_sets(case_expression, "CASE"),
    ast.CoalesceExpr: _without_sets(_coalesce, "COALESCE"),
    ast.MinMaxExpr: _extreme,
    ast.SubLink: subquery,
    ast.SQLValueFunction: _value_function,
    ast.CollateClause: _collate,
    ast.SetToDefault: _default,
    ast.RowExpr: row_value,
    ast.MergeSupportFunc: _merge_action,
    ast.JsonObjectConstructor: sql_json.json_object,
    ast.JsonArrayConstructor: sql_json.json_array,
    ast.JsonArrayQueryConstructor: sql_json.json_array_of_query,
    ast.JsonParseExpr: sql_json.json_parsed,
    ast.JsonScalarExpr: sql_json.json_scalar,
    ast.JsonSerializeExpr: sql_json.json_serialized,
    ast.JsonArrayAgg: sql_json.json_array_aggregate,
    ast.JsonObjectAgg: sql_json.json_object_aggregate,
    ast.JsonIsPredicate: sql_json.is_json,
    ast.JsonFuncExpr: sql_json.json_function,
}
