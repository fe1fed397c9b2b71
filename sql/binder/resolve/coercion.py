"""Type conversions: which are allowed in which context, and the expressions that perform them.

    unknown literal   parsed at once into a constant of the target type
    untyped $n        gets the target type
    anything else     a `Call` of the cast's row; casts of constants that cannot fail are folded

Follows parse_coerce.c: contexts (implicit, assignment, explicit). Not here: common types
(`unified_types.py`).

INVARIANTS
  K1  the result of `coerce` has the target's type name and, if the target has a modifier, its
      modifier.
  K2  a numeric keeps its computed precision and scale unless the target has a modifier; only
      `coerce_to_storage` gives it the exact precision and scale of a column.
  K3  folding never raises for a typed constant: a conversion that would fail is left to run time,
      as in PostgreSQL.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from typing import Final

from pglast import ast

from sql.binder.resolve.reg_literals import fold_reg_call, reg_literal, regtype_display_text
from sql.binder.resolve.setting_literals import record_literal_value
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.state import Binding, Scope
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.functions.table import CastContext, Function, find_cast, function_by_id
from sql.parser.syntax import Node, is_a, location, node_position, offset_to_position
from sql.plan import bpchar_calls as char_blanks
from sql.plan.array_calls import element_cast
from sql.plan.nodes import Call, Case, Coalesce, ColumnRef, Const, Expr, Extreme, Param
from sql.types import bpchar as char_blanks_bpchar
from sql.types import numeric
from sql.types.datetime.typmods import apply_time_typmod
from sql.types.enums import created_cast_context, is_enum, storage_type_name
from sql.types.sql_type import (
    NUMERIC,
    REG_TYPES,
    SECONDS_PRECISION_TYPES,
    TEXT,
    SqlType,
    Value,
    array_of,
    format_type,
    is_reg_array,
    plain_type,
)
from sql.types.styles import DEFAULT_STYLES
from sql.types.text_input import apply_typmod, parse_text

IMPLICIT: Final = CastContext.IMPLICIT
ASSIGNMENT: Final = CastContext.ASSIGNMENT
EXPLICIT: Final = CastContext.EXPLICIT
_OF_CREATED: Final = {"i": IMPLICIT, "a": ASSIGNMENT, "e": EXPLICIT}
"""By `castcontext` of pg_cast."""
_RANK: Final = {IMPLICIT: 0, ASSIGNMENT: 1, EXPLICIT: 2}
_POLYMORPHIC: Final = frozenset(
    {
        "any", "anyelement", "anyarray", "anynonarray",
        "anycompatible", "anycompatiblearray", "anycompatiblenonarray",
    }
)  # fmt: skip
_INTEGERS: Final = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
_TEXTS: Final = frozenset({"text", "varchar"})
_WIDE: Final = Context(prec=80)
_ADJUSTED_MAX: Final = 200


@cache
def can_coerce(source: str, target: str, context: CastContext) -> bool:
    """Whether a value of one type may become another in that context."""
    if source in (target, "unknown") or target in _POLYMORPHIC:
        return True
    if target == "anyenum":
        return is_enum(source)
    if source.startswith("_") and target.startswith("_"):
        return can_coerce(source[1:], target[1:], context)
    row = find_cast(source, target)
    if row is None or row.context is None:
        return False
    created = created_cast_context(source, target)
    needed = row.context if created is None else _OF_CREATED[created]
    return _RANK[needed] <= _RANK[context]


def coerce(
    binding: Binding, expr: Expr, node: Node, target: SqlType, context: CastContext
) -> Expr | None:
    """The expression as `target` (K1), or None if the context does not allow it."""
    source = expr.type
    if source.name == "unknown":
        expr = _typed(binding, expr, node, target)
    elif source.name == "void" and target.name in _TEXTS and context == EXPLICIT:
        shown = _shown_void(expr)
        if shown is None:
            return None
        expr = shown
    elif source.name != target.name:
        if not can_coerce(source.name, target.name, context):
            return None
        row = find_cast(source.name, target.name)
        assert row is not None, "can_coerce found a row"
        expr = _converted(binding, expr, row, target)
    return apply_modifier(expr, target, context)


def _shown_void(expr: Expr) -> Expr | None:
    """What void shows, the empty text: that is how its values are held. None if not of a call."""
    return replace(expr, type=TEXT) if isinstance(expr, Call | Param) else None


def coerce_implicitly(binding: Binding, expr: Expr, node: Node, target: SqlType) -> Expr:
    """`coerce` for a conversion that overload or common-type resolution has already allowed."""
    done = coerce(binding, expr, node, target, IMPLICIT)
    assert done is not None, f"no implicit cast from {expr.type.name} to {target.name}"
    return done


def bind_settled(binding: Binding, scope: Scope, node: Node) -> Expr:
    """Bind an expression; an untyped literal becomes text."""
    expr = binding.expression(scope, node)
    return coerce_implicitly(binding, expr, node, TEXT) if expr.type.name == "unknown" else expr


def _typed(binding: Binding, expr: Expr, node: Node, target: SqlType) -> Expr:
    bare = plain_type(target.name)
    if isinstance(expr, Param):
        return reg_parameter(binding, binding.resolve_parameter(expr, bare), node)
    # A column of a subquery is never unknown: `SelectResult.settle` has seen to it.
    assert isinstance(expr, Const), f"an unknown expression that is no literal: {expr}"
    if expr.value is None:
        return Const(None, bare)
    assert isinstance(expr.value, str), "an unknown literal is text"
    if is_reg_array(bare):
        names = _typed(binding, expr, node, array_of(TEXT))
        return coerce(binding, names, node, bare, EXPLICIT) or names
    if bare.name in REG_TYPES:
        return reg_literal(binding, expr.value, bare, offset_to_position(location(node)))
    typmod = target.typmod if target.name == "interval" else -1
    made = typed_literal(binding, expr.value, bare.name, offset_to_position(location(node)), typmod)
    record_literal_value(binding, expr, made)
    return made


def reg_parameter(binding: Binding, param: Param, node: Node) -> Expr:
    """A parameter of a reg type, for which the client sends a name, or a number as text.

    The name is looked up when the statement runs. Any other parameter is returned unchanged.
    """
    type_ = param.type
    if is_reg_array(type_):
        names = Param(param.index, array_of(TEXT))
        return coerce(binding, names, node, type_, EXPLICIT) or names
    if type_.name not in REG_TYPES:
        return param
    # The cast of a name takes numbers, as input does; that of a text to regclass does not.
    row = find_cast("name", type_.name)
    if row is None:
        raise not_supported(f"a parameter of type {type_.name}", node_position(node))
    return _converted(binding, Param(param.index, TEXT), row, type_)


def typed_literal(
    binding: Binding, text: str, type_name: str, place: int | None, typmod: int = -1
) -> Const:
    """A text constant as a constant of a type, by the type's input function (sql/text_input T2)."""
    styles = DEFAULT_STYLES if binding.of_kept_text else binding.context.styles
    zone, clock = binding.context.timezone, binding.clock
    try:
        value = parse_text(
            type_name, text, timezone=zone, styles=styles, typmod=typmod, clock=clock
        )
    except SqlError as error:
        raise error.at(place) from None
    if isinstance(value, Decimal):
        return decimal_constant(value, place)
    type_ = plain_type(type_name)
    if char_blanks_bpchar.is_bpchar(type_):
        return char_blanks.bpchar_literal(value, type_name)
    if type_name == "_numeric":
        value = _held(value, type_, place)
    return Const(value, type_)


def _held(value: Value, type_: SqlType, place: int | None) -> Value:
    """The elements as numeric without modifier holds them, or 22003."""
    try:
        return apply_typmod(value, type_, explicit=True)
    except SqlError as error:
        raise error.at(place) from None


def float_literal(binding: Binding, node: Node, target: SqlType) -> Const | None:
    """A numeric literal as a float, if it exceeds our numeric (1e300); without a position."""
    is_float = target.name in ("float4", "float8")
    if not is_float or not is_a(node, ast.A_Const) or not is_a(node.val, ast.Float):
        return None
    text: str = node.val.fval.replace("_", "")
    try:
        exact = Decimal(text)
    except ArithmeticError:
        return None  # hexadecimal and its kin
    if abs(exact.adjusted()) <= _ADJUSTED_MAX and numeric.fits_engine_precision(
        numeric.numeric_literal_type(exact)
    ):
        return None
    return typed_literal(binding, text, target.name, None)


def decimal_constant(value: Decimal, place: int | None) -> Const:
    """A numeric constant with the precision and scale of its own digits."""
    if value.as_tuple().exponent > 0:  # type: ignore[operator] # finite values have an integer
        value = Decimal(int(value))
    if not value:
        value = abs(value)  # a numeric has no -0, so (-0.0)::float8 is 0
    type_ = numeric.numeric_literal_type(value)
    if not numeric.fits_engine_precision(type_):
        detail = "A numeric holds at most 38 digits."
        raise SqlError("22003", "value overflows numeric format", place, detail=detail)
    return Const(value, type_)


def _reg_array_cast(expr: Expr, target: SqlType) -> str | None:
    """The SQL that casts an array whose elements are looked up by name, or shown by it."""
    if not (is_reg_array(expr.type) or is_reg_array(target)):
        return None
    source, wanted = expr.type.element, target.element
    if source is None or wanted is None:
        return f"$1::text[]::{target.name}"
    row = find_cast(source.name, wanted.name)
    if source.name == wanted.name or row is None or row.rewrite is None:
        return None
    items = f"select x.v::{wanted.name} from unnest($1) with ordinality x(v, n) order by x.n"
    return f"case when $1 is not null then array({items}) end"


def _converted(binding: Binding, expr: Expr, row: Function, target: SqlType) -> Expr:
    by_elements = _reg_array_cast(expr, target)
    if by_elements is not None:
        return inline_sql_function(binding, by_elements, (expr,))
    (shown,) = styled_arguments(binding, row, (expr,), target.name)
    if shown is not expr:
        further = find_cast(shown.type.name, target.name)
        if further is None or shown.type.name == target.name:
            return shown
        return _converted(binding, shown, further, target)
    if row.rewrite is not None and isinstance(expr, Const):
        known = regtype_display_text(expr)
        if known is not None:
            return Const(known, SqlType(target.name))
    if row.rewrite is not None:
        found = fold_reg_call(binding, row, (expr,)) or inline_sql_function(
            binding, row.rewrite, (expr,)
        )
        further = find_cast(found.type.name, target.name)
        # A rewriting gives text where the row is of several types of texts.
        if found.type.name == target.name or further is None:
            return found
        return _converted(binding, found, further, target)
    expr, row = char_blanks.bpchar_cast_source(expr, row, target)
    type_ = char_blanks_bpchar.cast_type(expr.type, target.name)
    if target.name in ("numeric", "_numeric"):
        # A text holds the array; what its elements are, nothing tells.
        made_of_text = target.element is not None and expr.type.element is None
        type_ = array_of(NUMERIC) if made_of_text else numeric.numeric_cast_type(expr.type)
    if isinstance(expr, Const):
        folded = _folded(expr.value, expr.type.name, type_)
        if folded is not None:
            return folded
    zoned = row
    if expr.type.element is not None and type_.element is not None:
        zoned = element_cast(expr.type.name[1:], type_.name[1:])
    return Call(row, (expr, *zone_arguments(binding, zoned)), type_)


def zone_arguments(binding: Binding, row: Function) -> tuple[Const, ...]:
    """The session's time zone, for a function that depends on it (F3 of `functions/table.py`)."""
    return (Const(binding.context.timezone, TEXT),) if row.zone else ()


def _folded(value: Value, source: str, target: SqlType) -> Const | None:
    if value is None:
        return Const(None, target)
    name = target.name
    if isinstance(value, tuple):
        return _folded_array(value, source, target)
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and source in _INTEGERS:
        return _folded_integer(value, target)
    if isinstance(value, Decimal):
        if name == "float8":
            return Const(float(value), target)
        if name in _INTEGERS:
            whole = int(value.quantize(Decimal(1), ROUND_HALF_UP, _WIDE))
            return Const(whole, target) if _in_range(whole, name) else None
    if isinstance(value, str) and name in _TEXTS and storage_type_name(source) in _TEXTS:
        return Const(value, target)
    return None


def _folded_array(value: tuple[Value, ...], source: str, target: SqlType) -> Const | None:
    element = target.element
    if element is None:
        return None
    items = [_folded(item, source[1:], element) for item in value]
    known = [item for item in items if item is not None]
    return Const(tuple([item.value for item in known]), target) if known == items else None


def _folded_integer(value: int, target: SqlType) -> Const | None:
    name = target.name
    if name in _INTEGERS:
        return Const(value, target) if _in_range(value, name) else None
    if name == "numeric":
        return Const(Decimal(value), numeric.numeric_literal_type(Decimal(value)))
    if name == "float8":
        return Const(float(value), target)
    return None


def _in_range(value: int, name: str) -> bool:
    return -_INTEGERS[name] <= value < _INTEGERS[name]


def bare_name(type_: SqlType) -> str:
    """The type's name in messages, without its modifier."""
    return format_type(SqlType(type_.name))


# --- modifiers and shapes ----------------------------------------------------------------------


def apply_modifier(expr: Expr, target: SqlType, context: CastContext) -> Expr:
    """Apply the target's modifier to an expression that has the target's type (K1)."""
    if target.typmod < 0 or expr.type.typmod == target.typmod:
        return expr
    if isinstance(expr, Const):
        folded = _fitted(expr.value, target, context)
        if folded is not None:
            return folded
    return Call(_modifier_row(target.name, context), (expr,), target)


def _modifier_row(name: str, context: CastContext) -> Function:
    if name.startswith("_"):
        assigned = name in ("_varchar", "_bpchar") and context is not EXPLICIT
        return function_by_id("assign(anyarray)" if assigned else "anyarray::anyarray")
    if name == "numeric" or name in SECONDS_PRECISION_TYPES or context is EXPLICIT:
        row = find_cast(name, name)
        assert row is not None, f"no row applies a modifier of {name}"
        return row
    return function_by_id(f"assign({name})")


def _fitted(value: Value, target: SqlType, context: CastContext) -> Const | None:
    if value is None:
        return Const(None, target)
    if isinstance(value, tuple):
        return _fitted_array(value, target, context)
    if isinstance(value, Decimal):
        assert target.scale is not None, "Y1"
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _WIDE)
        shape = numeric.numeric_literal_type(rounded)
        fits = (shape.precision or 0) <= (target.precision or 0) or rounded == 0
        return Const(rounded, target) if fits else None
    length = target.length
    if isinstance(value, str) and length is not None:
        return _fitted_text(value, length, target, context)
    return (
        Const(apply_time_typmod(value, target), target)
        if target.name in SECONDS_PRECISION_TYPES
        else None
    )


def _fitted_array(value: tuple[Value, ...], target: SqlType, context: CastContext) -> Const | None:
    element = target.element
    assert element is not None, "a tuple is an array"
    items = [_fitted(item, element, context) for item in value]
    known = [item for item in items if item is not None]
    return Const(tuple([item.value for item in known]), target) if known == items else None


def _fitted_text(value: str, length: int, target: SqlType, context: CastContext) -> Const | None:
    kept = value[:length]
    if len(value) > length and context is not EXPLICIT and value[length:].strip(" "):
        return None
    return Const(kept.rstrip(" ") if target.name == "bpchar" else kept, target)


def same_storage(left: SqlType, right: SqlType) -> bool:
    """Whether two types have the same storage representation."""
    return left.name == right.name and (
        "numeric" not in left.name or (left.precision, left.scale) == (right.precision, right.scale)
    )


def rescale_numeric(binding: Binding, expr: Expr, target: SqlType) -> Expr:
    """A numeric in another precision and scale, without loss of exact digits (N2 of
    `numeric.py`).
    """
    if same_storage(expr.type, target):
        return expr
    if isinstance(expr, Const):
        moved = _moved(expr.value, target)
        if moved is not None:
            return moved
    narrower = (target.scale or 0) < (expr.type.scale or 0)
    kind = "numeric" if target.element is None else "anyarray"
    if narrower and is_exact(binding, expr):
        return Call(function_by_id(f"narrow({kind})"), (expr,), target)
    row = find_cast(target.name, target.name)
    assert row is not None, "the row that changes precision and scale (F4 of `functions/table.py`)"
    return Call(row, (expr,), target)


def _moved(value: Value, target: SqlType) -> Const | None:
    if value is None:
        return Const(None, target)
    if isinstance(value, tuple):
        element = target.element
        assert element is not None, "a tuple is an array"
        items = [_moved(item, element) for item in value]
        return None if None in items else Const(value, target)
    assert isinstance(value, Decimal), "a numeric constant"
    own = numeric.numeric_literal_type(value)
    digits = (target.precision or 0) - (target.scale or 0)
    fits = (own.scale or 0) <= (target.scale or 0) and (own.precision or 0) - (
        own.scale or 0
    ) <= digits
    return Const(value, target) if fits else None


def is_exact(binding: Binding, expr: Expr) -> bool:
    """Whether an engine has not rounded the numeric value yet (N2 of `numeric.py`)."""
    match expr:
        case Call():
            if expr.function.numeric in ("divide", "inexact"):
                return False
            numerics = [arg for arg in expr.args if arg.type.name == "numeric"]
            if not numerics and expr.args and expr.args[0].type.name in ("float4", "float8"):
                return False
            return all(is_exact(binding, arg) for arg in numerics)
        case ColumnRef():
            return expr.id not in binding.inexact
        case Case():
            branches: Iterable[Expr] = (result for _, result in expr.whens)
            return all(is_exact(binding, arg) for arg in (*branches, expr.otherwise))
        case Coalesce() | Extreme():
            return all(is_exact(binding, arg) for arg in expr.args)
        case _:
            return True


def coerce_to_storage(binding: Binding, expr: Expr, target: SqlType) -> Expr:
    """An assigned value in exactly its column's type and modifier (K2)."""
    if char_blanks_bpchar.is_bpchar(target):
        return char_blanks.convert_bpchar(expr, target)
    return rescale_numeric(binding, expr, target) if "numeric" in target.name else expr


def to_boolean(binding: Binding, expr: Expr, node: Node, what: str) -> Expr:
    """A boolean condition, or 42804."""
    if expr.type.name == "bool":
        return expr
    done = coerce(binding, expr, node, SqlType("bool"), ASSIGNMENT)
    if done is None:
        message = f"argument of {what} must be type boolean, not type {bare_name(expr.type)}"
        raise datatype_mismatch(message, node_position(node))
    return done
