"""Pad and trim char(n) values where trailing blanks matter (Y5 of sql/types/sql_type.py).

    char(3), a width   'ab' ── padded ──▶ 'ab ', a bpchar that has its blanks ── trimmed ──▶ 'ab'

A value is held without its trailing blanks as long as its type says how many there are. Where
values of several widths come together (`unify_bpchar`), each gets its own blanks, and code that
compares such values trims them again. Casts to other text types cut the blanks off, and most input
functions skip them. Where PostgreSQL converts through the output function and keeps every
character, the conversion gets the blanks.

INVARIANTS
  B1  comparing, grouping, sorting and hashing see values of bpchar trimmed.
  B2  if the values of a group differ only in their blanks, the group shows one of them: PostgreSQL
      shows the first that it reads.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.errors import not_supported
from sql.functions.table import Function, FunctionKind, find_cast, function_by_id
from sql.plan.nodes import Call, Case, Coalesce, Const, Expr, Extreme, is_null
from sql.plan.traverse import is_volatile_anywhere
from sql.types.bpchar import blank_padded, char_width, common_bpchar_type, is_bpchar
from sql.types.sql_type import BOOL, INT4, TEXT, UNTRIMMED_BPCHAR, SqlType, Value, array_of

_SEEN: Final = frozenset({"bytea", "json", "uuid", "enum", "char"})
"""Types whose input functions do not skip blanks."""
_SEEING: Final = frozenset(
    {"octet_length", "min", "max", "~~", "!~~", "~~*", "!~~*", "~", "!~", "~*", "!~*"}
)
"""Functions of a bpchar that depend on its blanks, or handle them themselves."""
_COMPARING: Final = frozenset({"array_position", "array_positions", "width_bucket"})
_EXTREMES_MAX: Final = 16


# --- with and without --------------------------------------------------------------------------


def pad_bpchar(expr: Expr) -> Expr:
    """The same values of bpchar, or of an array of it, with their blanks."""
    width = char_width(expr.type)
    if width is None:
        return expr
    type_ = replace(UNTRIMMED_BPCHAR, name=expr.type.name)
    if isinstance(expr, Const):
        return Const(blank_padded(expr.value, width), type_)
    if not width:
        return Coalesce((expr,), type_)
    name = "bpchar" if expr.type.element is None else "anyarray"
    return Call(function_by_id(f"char_padded({name},int4)"), (expr, Const(width, INT4)), type_)


def trim_bpchar(expr: Expr) -> Expr:
    """An expression without trailing blanks, to compare (B1); other types stay as they are."""
    if not expr.type.has_blanks:
        return expr
    type_ = SqlType(expr.type.name)
    if isinstance(expr, Const):
        return Const(blank_padded(expr.value, 0), type_)
    if isinstance(expr, Call | Coalesce) and _only_pads(expr):
        return trim_bpchar(expr.args[0])
    name = "bpchar" if expr.type.element is None else "anyarray"
    return Call(function_by_id(f"char_trimmed({name})"), (expr,), type_)


def _only_pads(expr: Call | Coalesce) -> bool:
    return expr.function.name == "char_padded" if isinstance(expr, Call) else len(expr.args) == 1


def trim_bpchar_arguments(row: Function, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The arguments as a function or an operator of bpchar takes them (B1)."""
    if "bpchar" not in row.args or row.name in _SEEING:
        return args
    return tuple(map(trim_bpchar, args))


# --- of several widths -------------------------------------------------------------------------


def unify_bpchar(exprs: Sequence[Expr], typmod: int = -1) -> tuple[list[Expr], SqlType]:
    """Values of bpchar, or arrays of it, as one type: with blanks if their widths differ."""
    name = exprs[0].type.name
    common = common_bpchar_type([expr.type for expr in exprs if not is_null(expr)], name)
    if common.has_blanks:
        return [pad_bpchar(expr) for expr in exprs], common
    return list(exprs), common if typmod == -1 else SqlType(name, typmod)


def convert_bpchar(expr: Expr, type_: SqlType) -> Expr:
    """The expression as another bpchar type: of the same width, or with its own blanks."""
    return pad_bpchar(expr) if type_.has_blanks else trim_bpchar(expr)


def polymorphic_bpchar_call(
    row: Function, declared: Sequence[str], args: tuple[Expr, ...], type_: SqlType
) -> tuple[tuple[Expr, ...], SqlType]:
    """The arguments of a row with pseudo-types, and its result type."""
    if row.kind is FunctionKind.AGGREGATE and "bpchar" in row.args:
        return args, args[0].type.bare() if is_bpchar(type_) else type_
    places = [
        index
        for index, (name, arg) in enumerate(zip(declared, args, strict=True))
        if is_bpchar(arg.type) and name.startswith("any") and name != "any"
    ]
    if not places:
        return args, type_
    if row.result == "bool" or row.name in _COMPARING:
        return tuple(map(trim_bpchar, args)), type_
    if not is_bpchar(type_):
        return args, type_
    known = [args[index].type for index in places if not is_null(args[index])]
    common = common_bpchar_type([each.element or each for each in known])
    done = list(args)
    for index in places:
        done[index] = convert_bpchar(args[index], common)
    return tuple(done), array_of(common) if type_.element is not None else common


def refuse_untrimmed_bpchar(exprs: Sequence[Expr], what: str) -> None:
    """Raises 0A000 where values are compared trimmed but shown with blanks."""
    if any(expr.type.has_blanks for expr in exprs):
        raise not_supported(f"{what} values of type character of several lengths")


def bpchar_extreme(greatest: bool, args: Sequence[Expr], type_: SqlType) -> Expr:
    """GREATEST or LEAST; of values that differ only in their blanks, the first."""
    if not type_.has_blanks:
        return Extreme(greatest, tuple(args), type_)
    if len(args) > _EXTREMES_MAX or any(map(is_volatile_anywhere, args)):
        refuse_untrimmed_bpchar(args, "GREATEST or LEAST of")
    compared = [trim_bpchar(arg) for arg in args]
    best = Extreme(greatest, tuple(compared), SqlType(type_.name))
    equal = function_by_id("bpchar = bpchar" if type_.element is None else "anyarray = anyarray")
    whens = tuple(
        [(Call(equal, (one, best), BOOL), arg) for one, arg in zip(compared, args, strict=True)]
    )
    return Case(whens, Const(None, type_), type_)


# --- casts -------------------------------------------------------------------------------------


def bpchar_cast_source(expr: Expr, row: Function, target: SqlType) -> tuple[Expr, Function]:
    """The operand and the row of a cast from char(n): targets in `_SEEN` get the text with its
    blanks, other targets the value without them.
    """
    array = expr.type.element is not None
    if not is_bpchar(expr.type) or is_null(expr) or (array and target.element is None):
        return expr, row  # An array is printed as it is.
    wanted = target.name[1:] if array else row.id.partition("::")[2]
    if wanted not in _SEEN:
        return trim_bpchar(expr), row
    text = array_of(TEXT) if array else TEXT
    further = find_cast(text.name, target.name)
    assert further is not None, "texts are cast to whatever bpchar is"
    shown = pad_bpchar(expr)
    if isinstance(shown, Const):
        return Const(shown.value, text), further
    return Coalesce((shown,), text), further


# --- literals and columns -----------------------------------------------------------------------


def bpchar_literal(value: Value, name: str) -> Const:
    """A literal, with the blanks that it is written with."""
    items = value if isinstance(value, tuple) else (value,)
    blank = any(isinstance(item, str) and item.endswith(" ") for item in items)
    return Const(value, SqlType(name, trim=blank))
