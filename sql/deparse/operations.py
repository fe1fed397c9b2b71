"""Analyze operators: A_Expr of every kind (parse_oper.c, transformAExpr* of parse_expr.c)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import A_Expr_Kind

from sql.deparse.coercion import UnknownShape, common_type, converted
from sql.deparse.nodes import (
    ArrayOperation,
    Boolean,
    Constant,
    Listed,
    NullOrBooleanTest,
    Operation,
    RowComparison,
    TypedExpr,
    Var,
)
from sql.deparse.overloads import called_operator
from sql.deparse.state import Analysis, Level
from sql.deparse.types import Type
from sql.parser.syntax import Node, is_a

_DISTINCT: Final = "IS DISTINCT FROM"


def operation(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    """An A_Expr."""
    analyze = _KINDS.get(node.kind)
    if analyze is None:
        raise UnknownShape(str(node.kind))
    return analyze(analysis, level, node)


def make_operation(analysis: Analysis, name: str, *operands: TypedExpr) -> Operation:
    """An operator over analyzed operands (make_op)."""
    wanted, result = called_operator(name, tuple([operand.type.name for operand in operands]))
    done = [
        converted(operand, _wanted(operand, type_), analysis.zone)
        for operand, type_ in zip(operands, wanted, strict=True)
    ]
    return Operation(name, tuple(done), Type(result))


def _wanted(operand: TypedExpr, name: str) -> Type:
    """The operand's own type where the operator takes any."""
    return operand.type if name == operand.type.name and not operand.type.domain else Type(name)


def _plain(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    name = node.name[-1].sval
    left, right = node.lexpr, node.rexpr
    if is_a(left, ast.RowExpr) and is_a(right, ast.RowExpr):
        return _rows(analysis, level, name, left, right)
    if is_a(left, ast.RowExpr) or is_a(right, ast.RowExpr):
        raise UnknownShape("a row and something else")
    operands = [analysis.expression(level, part) for part in (left, right) if part is not None]
    return make_operation(analysis, name, *operands)


def row_of(analysis: Analysis, level: Level, node: Node) -> list[TypedExpr]:
    """The fields of a row."""
    return [analysis.expression(level, part) for part in node.args or ()]


def _rows(analysis: Analysis, level: Level, name: str, left: Node, right: Node) -> TypedExpr:
    """make_row_comparison_op."""
    pairs = zip(row_of(analysis, level, left), row_of(analysis, level, right), strict=True)
    made = [make_operation(analysis, name, *pair) for pair in pairs]
    if len(made) == 1:
        return made[0]
    if name in ("=", "<>"):
        return Boolean("AND" if name == "=" else "OR", tuple(made))
    lefts, rights = zip(*(one.args for one in made), strict=True)
    return RowComparison(name, lefts, rights)


def _of_array(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    left = analysis.expression(level, node.lexpr)
    right = analysis.expression(level, node.rexpr)
    is_any = node.kind == A_Expr_Kind.AEXPR_OP_ANY
    return _array_operation(analysis, node.name[-1].sval, left, right, is_any=is_any)


def _array_operation(
    analysis: Analysis, name: str, left: TypedExpr, right: TypedExpr, *, is_any: bool
) -> TypedExpr:
    """make_scalar_array_op."""
    element = "unknown" if right.type.name == "unknown" else right.type.name[1:]
    (one, other), _ = called_operator(name, (left.type.name, element))
    return ArrayOperation(
        name,
        is_any,
        converted(left, _wanted(left, one), analysis.zone),
        converted(right, Type(f"_{other}"), analysis.zone),
    )


def _distinct(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    left, right = (analysis.expression(level, part) for part in (node.lexpr, node.rexpr))
    negated = node.kind == A_Expr_Kind.AEXPR_NOT_DISTINCT
    for one, other in ((right, left), (left, right)):
        if isinstance(one, Constant) and one.text is None and one.type.name == "unknown":
            return NullOrBooleanTest("IS NULL" if negated else "IS NOT NULL", other)
    made: TypedExpr = replace(make_operation(analysis, "=", left, right), name=_DISTINCT)
    return Boolean("NOT", (made,)) if negated else made


def _nullif(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    left, right = (analysis.expression(level, part) for part in (node.lexpr, node.rexpr))
    made = make_operation(analysis, "=", left, right)
    return Listed("NULLIF", made.args, made.args[0].type)


def _in(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    """TransformAExprIn."""
    name = node.name[-1].sval
    joined = "OR" if name == "=" else "AND"
    if is_a(node.lexpr, ast.RowExpr):
        rows = [_rows(analysis, level, name, node.lexpr, part) for part in node.rexpr]
        return _chained(joined, rows)
    left = analysis.expression(level, node.lexpr)
    rights = [analysis.expression(level, part) for part in node.rexpr]
    alone = [right for right in rights if not _has_column(right, level)]
    others = [right for right in rights if _has_column(right, level)]
    done: list[TypedExpr] = []
    if len(alone) > 1:
        type_ = common_type([left, *alone])
        items = tuple([converted(right, type_, analysis.zone) for right in alone])
        array = Listed("ARRAY", items, Type(f"_{type_.name}"))
        done.append(_array_operation(analysis, name, left, array, is_any=name == "="))
    else:
        others = rights
    done += (make_operation(analysis, name, left, right) for right in others)
    return _chained(joined, done)


def _chained(name: str, conditions: Sequence[TypedExpr]) -> TypedExpr:
    made, *others = conditions
    for other in others:
        made = Boolean(name, (made, other))
    return made


def _has_column(expr: object, level: Level) -> bool:
    if isinstance(expr, Var):
        return any(entry is expr.entry for entry in level.query.table)
    if isinstance(expr, tuple):
        return any(_has_column(part, level) for part in expr)
    slots: Sequence[str] = getattr(expr, "__slots__", ())
    parts = (getattr(expr, name) for name in slots if name not in ("type", "query"))
    return any(_has_column(part, level) for part in parts if not isinstance(part, str | Type))


def _between(analysis: Analysis, level: Level, node: Node) -> TypedExpr:
    value = analysis.expression(level, node.lexpr)
    low, high = (analysis.expression(level, part) for part in node.rexpr)

    def inside(one: TypedExpr, other: TypedExpr) -> TypedExpr:
        first = make_operation(analysis, ">=", value, one)
        return Boolean("AND", (first, make_operation(analysis, "<=", value, other)))

    def outside(one: TypedExpr, other: TypedExpr) -> TypedExpr:
        first = make_operation(analysis, "<", value, one)
        return Boolean("OR", (first, make_operation(analysis, ">", value, other)))

    match node.kind:
        case A_Expr_Kind.AEXPR_BETWEEN:
            return inside(low, high)
        case A_Expr_Kind.AEXPR_NOT_BETWEEN:
            return outside(low, high)
        case A_Expr_Kind.AEXPR_BETWEEN_SYM:
            return Boolean("OR", (inside(low, high), inside(high, low)))
        case _:
            return Boolean("AND", (outside(low, high), outside(high, low)))


_KINDS: Final[Mapping[A_Expr_Kind, Callable[[Analysis, Level, Node], TypedExpr]]] = {
    A_Expr_Kind.AEXPR_OP: _plain,
    A_Expr_Kind.AEXPR_OP_ANY: _of_array,
    A_Expr_Kind.AEXPR_OP_ALL: _of_array,
    A_Expr_Kind.AEXPR_DISTINCT: _distinct,
    A_Expr_Kind.AEXPR_NOT_DISTINCT: _distinct,
    A_Expr_Kind.AEXPR_NULLIF: _nullif,
    A_Expr_Kind.AEXPR_IN: _in,
    A_Expr_Kind.AEXPR_LIKE: _plain,
    A_Expr_Kind.AEXPR_ILIKE: _plain,
    A_Expr_Kind.AEXPR_SIMILAR: _plain,
    A_Expr_Kind.AEXPR_BETWEEN: _between,
    A_Expr_Kind.AEXPR_NOT_BETWEEN: _between,
    A_Expr_Kind.AEXPR_BETWEEN_SYM: _between,
    A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM: _between,
}
