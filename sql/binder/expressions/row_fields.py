"""Row values that are computed: their fields, whether they are NULL, casts to row types.

    (q.row).a        record_part(q.row, 1), or the field itself where the row is made right here
    q.row IS NULL    whether all fields are; IS NOT NULL: whether none is
    row(1, 'a')::t   a row of the table's type, field by field; '(1,a)'::t is parsed

INVARIANTS
  F1  a field is read back from the row's text. It is refused where the session's styles change how
      values of its type are shown.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from pglast import ast

from sql.binder.resolve.coercion import EXPLICIT, coerce, zone_arguments
from sql.binder.resolve.function_choice import find_function
from sql.binder.resolve.visible_names import shown_type_name
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, location, node_position, offset_to_position
from sql.plan.nodes import Call, Case, Coalesce, Const, Expr, IsTest, Test
from sql.types.record_text import parse_record, styles_change_fields
from sql.types.records import field_names
from sql.types.sql_type import BOOL, INT4, TEXT, SqlType, format_type

_ROWS: Final = ("row(any)", "styled_row(any)")


def is_record(type_: SqlType) -> bool:
    """Whether it is the type of rows whose fields are known."""
    return type_.name == "record" and type_.fields is not None


def field_of_record_value(binding: Binding, row: Expr, name: str, node: Node) -> Expr:
    """`(row).name`. Raises 42703, 42702."""
    names = field_names(row.type)
    found = [number for number, each in enumerate(names, 1) if each == name]
    place = node_position(node)
    if not found:
        if row.type.row is None:
            message = f'could not identify column "{name}" in record data type'
            raise SqlError("42703", message, place)
        shown = _shown(binding, row.type)
        raise SqlError("42703", f'column "{name}" not found in data type {shown}', place)
    if len(found) > 1:
        raise not_supported("selecting one of several fields of that name", place)
    return part_of_record(binding, row, found[0], place)


def field_by_call(
    binding: Binding, names: Sequence[str], exprs: Sequence[Expr], node: Node
) -> Expr | None:
    """`a(row)` where no function of this name takes a row: the row's field (ParseFuncOrColumn)."""
    if len(names) != 1 or len(exprs) != 1 or not is_record(exprs[0].type):
        return None
    plain = not (node.agg_distinct or node.agg_order or node.agg_filter or node.over)
    if not plain or names[0] not in field_names(exprs[0].type):
        return None
    try:
        find_function(names[0], exprs, names[0], node.location)
    except SqlError as error:
        if error.sqlstate != "42883":
            raise
        return field_of_record_value(binding, exprs[0], names[0], node)
    return None


def part_of_record(binding: Binding, row: Expr, number: int, place: int | None) -> Expr:
    """A field of a row, counted from 1 (F1)."""
    assert row.type.fields is not None, "the fields are known"
    if isinstance(row, Call) and row.function.id in _ROWS:
        return row.args[number - 1]
    type_ = row.type.fields[number - 1]
    type_ = TEXT if type_.name == "unknown" else type_
    refuse_styled_fields(binding, type_, place)
    part = function_by_id("record_part(record,int4)")
    zone = zone_arguments(binding, part)
    return Call(part, (row, Const(number, INT4), *zone), type_)


def refuse_styled_fields(binding: Binding, type_: SqlType, place: int | None) -> None:
    """0A000 for a type whose values cannot be read back from their text (F1)."""
    styles = binding.context.styles
    if styles.writes(type_.name) or styles_change_fields(styles, type_):
        raise not_supported("a field of a row under this DateStyle or IntervalStyle", place)


def null_test_of_record(test: Test, row: Expr) -> Expr:
    """Whether all fields of a row are NULL, or none is."""
    name = "record_is_null(record)" if test is Test.IS_NULL else "record_is_not_null(record)"
    return Call(function_by_id(name), (row,), BOOL)


# --- casts to row types ------------------------------------------------------------------------


def as_row_type(
    binding: Binding, expr: Expr, node: Node, target: SqlType, cast: int | None
) -> Expr:
    """An expression as a row of a table's type. Raises 42846, 22P02. `cast`: where `::` stands."""
    assert target.fields is not None, "the fields are known"
    place = offset_to_position(location(node))
    if isinstance(expr, Const) and expr.value is None:
        return Const(None, target)
    if expr.type.name == "unknown" and isinstance(expr, Const):
        refuse_styled_fields(binding, target, place)
        try:
            return Const(parse_record(str(expr.value), target, binding.context.timezone), target)
        except SqlError as error:
            raise error.at(place) from None
    if expr.type.name in ("unknown", "text", "varchar"):
        refuse_styled_fields(binding, target, place)
        text = coerce(binding, expr, node, TEXT, EXPLICIT)
        assert text is not None, "a text is one"
        parse = function_by_id("record_in(text)")
        return Call(parse, (text, *zone_arguments(binding, parse)), target)
    if expr.type.row == target.row:
        return expr
    if not is_record(expr.type) or expr.type.row is not None:
        raise _cannot_cast(binding, expr.type.bare(), target, cast)
    if expr.type.fields == target.fields:
        return Coalesce((expr,), target)
    return _converted(binding, expr, node, target, cast)


def _converted(binding: Binding, row: Expr, node: Node, target: SqlType, cast: int | None) -> Expr:
    """A row with its fields cast one by one (coerce_record_to_complex)."""
    fields = row.type.fields or ()
    assert target.fields is not None, "the fields are known"
    nodes = node.args if is_a(node, ast.RowExpr) and len(node.args or ()) == len(fields) else None
    if len(fields) != len(target.fields):
        few = "few" if len(fields) < len(target.fields) else "many"
        detail = f"Input has too {few} columns."
        raise _cannot_cast(binding, row.type, target, cast, detail)
    made: list[Expr] = []
    for number, (source, wanted) in enumerate(zip(fields, target.fields, strict=True), 1):
        part = part_of_record(binding, row, number, cast)
        written = node if nodes is None else nodes[number - 1]
        if isinstance(part, Const) and source.name == "unknown":
            part = Const(part.value, source)
        done = coerce(binding, part, written, wanted, EXPLICIT)
        if done is None:
            types = _shown_types(binding, source.bare(), wanted.bare())
            detail = f"Cannot cast type {types} in column {number}."
            raise _cannot_cast(binding, row.type, target, cast, detail)
        made.append(done)
    return _whole(binding, row, made, target)


def _cannot_cast(
    binding: Binding,
    source: SqlType,
    target: SqlType,
    place: int | None,
    detail: str | None = None,
) -> SqlError:
    message = f"cannot cast type {_shown_types(binding, source, target)}"
    return SqlError("42846", message, place, detail=detail)


def _shown_types(binding: Binding, source: SqlType, target: SqlType) -> str:
    return f"{_shown(binding, source)} to {_shown(binding, target)}"


def _shown(binding: Binding, type_: SqlType) -> str:
    context = binding.context
    return format_type(type_, partial(shown_type_name, context.catalog, context.search_path))


def _whole(binding: Binding, row: Expr, made: Sequence[Expr], target: SqlType) -> Expr:
    call = function_by_id("row(any)")
    found = Call(call, (*made, *zone_arguments(binding, call)), target)
    if isinstance(row, Call) and row.function.id in _ROWS:
        return found
    there = IsTest(Test.IS_NOT_NULL, row, BOOL)
    return Case(((there, found),), Const(None, target), target)
