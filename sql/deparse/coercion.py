"""Conversions as PostgreSQL's parser adds them (parse_coerce.c): nodes for the printer, no checks.

The text was bound before, so a conversion that is asked for exists.

INVARIANTS
  K1  an untyped literal becomes a constant of the target at once; anything else gets a `Cast`.
  K2  a modifier is applied by a call of its own, under which a conversion is never shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache

from sql.binder.resolve.coercion import IMPLICIT, can_coerce
from sql.deparse.nodes import Cast, Constant, TypedExpr
from sql.deparse.types import TEXT_TYPE, Type
from sql.errors import SqlError
from sql.functions.pg_proc import cast_rows
from sql.types.sql_type import (
    PREFERRED_TYPES,
    REG_TYPES,
    SECONDS_PRECISION_TYPES,
    SqlType,
    plain_type,
    type_category,
)
from sql.types.text_input import apply_typmod, parse_text
from sql.types.text_output import format_text

RegText = Callable[[str, str], str]
"""The text of a reg constant: of a type, and what was written."""

_AS_WRITTEN = frozenset({"text", "varchar", "bpchar", "unknown", "json", "name"})
_WITH_MODIFIER = SECONDS_PRECISION_TYPES | {"varchar", "bpchar", "numeric"}


class UnknownShape(Exception):
    """The deparser does not know a node; the caller shows what was written."""


def literal_text(text: str, type_: Type, zone: str) -> str:
    """What the output function writes of what the input function reads."""
    name = type_.name
    if name in _AS_WRITTEN:
        return text
    if name in REG_TYPES:
        raise UnknownShape(name)
    try:
        value = parse_text(name, text, timezone=zone, typmod=type_.typmod)
        if name == "interval" and type_.typmod >= 0:
            value = apply_typmod(value, sql_type(type_), explicit=True)
    except SqlError as error:
        raise UnknownShape(str(error)) from None
    if isinstance(value, Decimal):
        return f"{value:f}"
    return format_text(value, replace(plain_type(name), trim=True), timezone=zone)


def add_coercion(expr: TypedExpr, target: Type, zone: str, *, explicit: bool = False) -> TypedExpr:
    """The expression as the target, with its modifier (coerce_to_target_type)."""
    made = converted(expr, target, zone, explicit=explicit)
    added = made is not expr and isinstance(made, Cast)
    return _with_modifier(made, target, explicit=explicit, hide=added)


def converted(expr: TypedExpr, target: Type, zone: str, *, explicit: bool = False) -> TypedExpr:
    """The expression in the target's type, without its modifier (coerce_type)."""
    source = expr.type
    if target.name in ("any", "unknown"):
        return expr
    if isinstance(expr, Constant) and source.name == "unknown":
        return _typed(expr, target, zone, explicit=explicit)
    if source.name == "unknown":
        return expr
    if (source.name, source.domain) == (target.name, target.domain):
        return expr
    if source.name == target.name:
        return Cast(expr, replace(target, typmod=-1), implicit=not explicit)
    calls = (source.name, target.name) in _calling_casts()
    made = Cast(expr, target.bare, implicit=not explicit, calls=calls)
    if not target.domain:
        return made
    return Cast(replace(made, implicit=True), replace(target, typmod=-1), implicit=not explicit)


def _typed(expr: Constant, target: Type, zone: str, *, explicit: bool) -> TypedExpr:
    typmod = target.typmod if target.name == "interval" else -1
    type_ = Type(target.name, typmod)
    text = None if expr.text is None else literal_text(expr.text, type_, zone)
    made = Constant(text, type_)
    if not target.domain:
        return made
    return Cast(made, replace(target, typmod=-1), implicit=not explicit)


def _with_modifier(made: TypedExpr, target: Type, *, explicit: bool, hide: bool) -> TypedExpr:
    if target.domain or made.type.typmod == target.typmod or made.type.name != target.name:
        return made
    if hide and isinstance(made, Cast):
        made = replace(made, implicit=True)
    type_ = Type(target.name, target.typmod)
    if target.typmod >= 0 and target.name.removeprefix("_") in _WITH_MODIFIER:
        return Cast(made, type_, implicit=not explicit, calls=not target.is_array)
    if isinstance(made, Constant):
        return replace(made, type=type_)
    return Cast(made, type_, implicit=not explicit)


@cache
def _calling_casts() -> frozenset[tuple[str, str]]:
    return frozenset((row.source, row.target) for row in cast_rows() if row.function)


def common_type(exprs: Sequence[TypedExpr]) -> Type:
    """The type that all get (select_common_type)."""
    first = exprs[0].type
    if first.name != "unknown" and all(
        (expr.type.name, expr.type.domain) == (first.name, first.domain) for expr in exprs
    ):
        return replace(first, typmod=-1)
    chosen = first.name
    for expr in exprs[1:]:
        name = expr.type.name
        if name in ("unknown", chosen):
            continue
        if chosen == "unknown" or (
            type_category(name) == type_category(chosen)
            and chosen not in PREFERRED_TYPES
            and can_coerce(chosen, name, IMPLICIT)
            and not can_coerce(name, chosen, IMPLICIT)
        ):
            chosen = name
    return TEXT_TYPE if chosen == "unknown" else Type(chosen)


def common_typmod(exprs: Sequence[TypedExpr], type_: Type) -> int:
    """The modifier that all have, or none (select_common_typmod)."""
    found = {(expr.type.name, expr.type.typmod) for expr in exprs}
    if len(found) != 1:
        return -1
    ((name, typmod),) = found
    return typmod if name == type_.name else -1


def to_common(exprs: Sequence[TypedExpr], zone: str) -> tuple[tuple[TypedExpr, ...], Type]:
    """All in their common type, and that type with the modifier that the result has."""
    type_ = common_type(exprs)
    done = tuple([converted(expr, type_, zone) for expr in exprs])
    return done, replace(type_, typmod=common_typmod(done, type_))


def settled(expr: TypedExpr, zone: str) -> TypedExpr:
    """An untyped literal as text."""
    return converted(expr, TEXT_TYPE, zone) if expr.type.name == "unknown" else expr


def sql_type(type_: Type) -> SqlType:
    """The type for functions of `sql/types`."""
    return SqlType(type_.name, type_.typmod)
