"""Row values: ROW(..), whole rows as records, row comparison, and field selection.

ROW(a, 'x'), and q of a subquery   a record (`records.py`)
t = u, t IS DISTINCT FROM u        column by column
(t).a, (ROW(1, 2)).f1              the column itself
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binder.expressions.calls import operator
from sql.binder.expressions.row_fields import as_row_type, field_of_record_value, is_record
from sql.binder.expressions.whole_rows import WholeRow, expanded_row_fields, whole_row
from sql.binder.resolve.coercion import coerce_implicitly, zone_arguments
from sql.binder.resolve.row_types import declared_row_type
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, not_supported, undefined_column
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, location, node_position, offset_to_position
from sql.plan.conditions import connect_conditions
from sql.plan.nodes import BoolOp, Call, Case, Const, Distinct, Expr, Logical, Param
from sql.types.limits import check_row_field_count
from sql.types.records import (
    RECORD,
    check_record_field,
    check_record_types_known,
    check_records_comparable,
    record_type,
)
from sql.types.sql_type import BOOL, TEXT, UNKNOWN, RowType, SqlType, format_type

_ROW: Final = "row(any)"
_STYLED_ROW: Final = "styled_row(any)"


def record(
    binding: Binding,
    values: Sequence[Expr],
    names: Sequence[str] | None = None,
    row_type: RowType | None = None,
) -> Call:
    """`ROW(..)` as a value, or a row with names."""
    for value in values:
        check_record_field(value.type)
    # A column of a table keeps its modifier.
    types = [value.type.bare() if row_type is None else value.type for value in values]
    type_ = record_type(types, names, row_type)
    styles = binding.context.styles
    row = function_by_id(_ROW)
    if not any(styles.writes(value.type.name) for value in values):
        return Call(row, (*values, *zone_arguments(binding, row)), type_)
    row = function_by_id(_STYLED_ROW)
    how = Const(styles.packed(), TEXT)
    return Call(row, (*values, how, *zone_arguments(binding, row)), type_)


def comparable_record(binding: Binding, values: Sequence[Expr]) -> Call:
    """`ROW(..)` to compare and sort by; 0A000 for fields that have no order here."""
    row = record(binding, values)
    check_record_types_known(row.type, None)
    return row


def row_value(binding: Binding, scope: Scope, node: Node) -> Expr:
    """A RowExpr as a value; an untyped literal in it becomes text."""
    values: list[Expr] = []
    untyped: set[int] = set()
    for part in expanded_row_fields(binding, scope, node):
        expr = binding.expression(scope, part)
        if isinstance(expr, Param) and expr.type.name == "unknown":
            # PostgreSQL does not say what it is, which is an error in the end.
            binding.undetermined.setdefault(expr.index, part.location)
            expr = Param(expr.index, TEXT)
        unknown = expr.type.name == "unknown"
        if unknown and isinstance(expr, Const):
            untyped.add(len(values))
        values.append(coerce_implicitly(binding, expr, part, TEXT) if unknown else expr)
    check_row_field_count(len(values), offset_to_position(node.location))
    found = record(binding, values)
    if not untyped:
        return found
    fields = enumerate(found.type.fields or ())
    types = tuple([UNKNOWN if index in untyped else type_ for index, type_ in fields])
    return replace(found, type=replace(found.type, precision=0, fields=types))


def cast_row(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """A whole row to be cast, as a record; None for any other expression."""
    whole = whole_row(binding, scope, node)
    return None if whole is None else row_record(binding, whole)


def cast_to_row_type(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """A TypeCast to the row type of a table; None for other types."""
    target = declared_row_type(binding, node.typeName)
    if target is None:
        return None
    if target.element is not None:
        what = f"arrays of {format_type(target.element)}"
        raise not_supported(what, offset_to_position(node.typeName.location))
    expr = cast_row(binding, scope, node.arg) or binding.expression(scope, node.arg)
    cast = node.location if (node.location or -1) >= 0 else location(node.arg)
    return as_row_type(binding, expr, node.arg, target, offset_to_position(cast))


def row_record(binding: Binding, whole: WholeRow) -> Expr:
    """A whole row as a record."""
    row_type = whole.row_type(binding)
    return whole.or_null(binding, record(binding, whole.exprs, whole.names, row_type))


def whole_row_equality(
    binding: Binding, scope: Scope, node: Node, *, equal: bool, null_safe: bool
) -> Expr | None:
    """Whether two whole rows are equal, or differ, with NULLs equal to each other (record_eq).

    None for other operands. `null_safe`: a null-extended row is distinct from a real one; otherwise
    the result is NULL.
    """
    if not is_a(node.lexpr, ast.ColumnRef) or not is_a(node.rexpr, ast.ColumnRef):
        # Sooner than to look for its names.
        return None
    left, right = (whole_row(binding, scope, side) for side in (node.lexpr, node.rexpr))
    if left is None or right is None:
        return None
    check_records_comparable(*(_type_of(whole) for whole in (left, right)))
    parts: list[Expr] = []
    for one, other in zip(left.exprs, right.exprs, strict=True):
        call = operator(binding, "=", [one, other], [node.lexpr, node.rexpr], node.location)
        assert isinstance(call, Call), "an operator yields a call"
        parts.append(Distinct(call.args[0], call.args[1], equal, BOOL))
    compared = connect_conditions(BoolOp.AND if equal else BoolOp.OR, parts)
    if not null_safe:
        return left.or_null(binding, right.or_null(binding, compared))
    return _null_safe(binding, (left, right), compared, equal=equal)


def _null_safe(binding: Binding, rows: Sequence[WholeRow], compared: Expr, *, equal: bool) -> Expr:
    """`compared` where both rows are there, and else whether neither is, or one."""
    asked = [row.present(binding) for row in rows]
    there = [present for present in asked if present is not None]
    if not there:
        return compared
    one = connect_conditions(BoolOp.OR, there) if len(there) == len(rows) else Const(True, BOOL)
    otherwise = Logical(BoolOp.NOT, (one,), BOOL) if equal else one
    return Case(((connect_conditions(BoolOp.AND, there), compared),), otherwise, BOOL)


def _type_of(whole: WholeRow) -> SqlType:
    return replace(RECORD, fields=tuple([expr.type for expr in whole.exprs]))


def field_of_row(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`(t).a`, `(ROW(..)).f1`; if x is not a row, `(x).f` is `f(x)` (ParseFuncOrColumn)."""
    if len(node.indirection) > 1:
        return _part_of_field(binding, scope, node)
    name = node.indirection[0].sval
    if is_a(node.arg, ast.RowExpr):
        return _field(binding, scope, node.arg, name)
    whole = whole_row(binding, scope, node.arg)
    if whole is not None:
        found = [
            expr
            for (own, _), expr in zip(whole.item.columns, whole.exprs, strict=True)
            if own == name
        ]
        if not found:
            raise undefined_column(f"{whole.item.name}.{name}", whole.place)
        if len(found) == 1:
            return found[0]
        raise not_supported("selecting a field", node_position(node))
    row = None if is_a(node.arg, ast.A_Const) else binding.expression(scope, node.arg)
    if row is not None and is_record(row.type):
        return field_of_record_value(binding, row, name, node.arg)
    call = ast.FuncCall(funcname=(ast.String(sval=name),), args=(node.arg,), location=-1)
    try:
        return binding.expression(scope, call)
    except SqlError as error:
        if error.sqlstate != "42883":
            raise
    type_ = binding.expression(scope, node.arg).type
    if type_.name == "record":
        raise not_supported("selecting a field", node_position(node))
    shown = format_type(type_.bare())
    message = f"column notation .{name} applied to type {shown}, which is not a composite type"
    raise SqlError("42809", message, node_position(node.arg))


def _part_of_field(binding: Binding, scope: Scope, node: Node) -> Expr:
    """`(t).a.b`, `(t).a[1]`."""
    first, *rest = node.indirection
    inner = ast.A_Indirection(arg=node.arg, indirection=(first,))
    if not all(is_a(part, ast.A_Indices) or is_a(part, ast.String) for part in rest):
        raise not_supported("selecting a part of a field", node_position(node))
    return binding.expression(scope, ast.A_Indirection(arg=inner, indirection=tuple(rest)))


def _field(binding: Binding, scope: Scope, row: Node, name: str) -> Expr:
    parts = expanded_row_fields(binding, scope, row)
    exprs = [binding.expression(scope, part) for part in parts]
    number = int(name[1:]) if name[:1] == "f" and name[1:].isdecimal() else 0
    if not 1 <= number <= len(exprs) or f"f{number}" != name:
        message = f'could not identify column "{name}" in record data type'
        raise SqlError("42703", message, offset_to_position(row.location))
    found = exprs[number - 1]
    unknown = found.type.name == "unknown"
    return coerce_implicitly(binding, found, parts[number - 1], TEXT) if unknown else found


def counted_whole_row(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """The argument of count() for a whole row of this level; None for any other expression."""
    whole = whole_row(binding, scope, node)
    if whole is None or whole.item not in scope.items:
        return None
    return whole_row_presence(binding, scope, node)


def whole_row_presence(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """True, or NULL in a null-extended row; None if the expression is not a whole row."""
    whole = whole_row(binding, scope, node)
    return None if whole is None else whole.or_null(binding, Const(True, BOOL))
