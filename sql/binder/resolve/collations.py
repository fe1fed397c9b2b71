"""COLLATE: which collation an expression has, and calls whose result depends on it.

All supported collations order text by code points. They differ in the characters that they treat as
letters:

    upper('é' collate "C")          é: only ASCII letters
    upper('é' collate "default")    É

INVARIANTS
  L1  an expression has the collation of its arguments; one that COLLATE names wins
      (assign_collations_walker). Two different explicit collations are 42P21. The type `name` has
      the collation "C".
  L2  under "C" and similar collations, operations on letters (`lower`, `upper`, ILIKE) are computed
      for ASCII letters or refused. All other operations are the same under every collation.

Not here: conflicts between implicit collations (42P22 in PostgreSQL). They order alike, so the
first one is used. Nor the letters in patterns that match a `name`
(`compute/reference/functions/text.py` and `regexp.py`).
"""

import string
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sql.binder.collation import Collation
from sql.binder.resolve.catalog_lookup import qualifying_schema
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.functions.table import Function
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.nodes import (
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Expr,
    Extreme,
    PlanColumn,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.types.sql_type import SqlType, format_type

_ASCII_LETTERS: Final = frozenset({"C", "POSIX", "ucs_basic"})
_BY_CODE_POINT: Final = _ASCII_LETTERS | {"default", "C.utf8", "pg_c_utf8"}
_LETTERS: Final = {
    "upper": (string.ascii_lowercase, string.ascii_uppercase),
    "lower": (string.ascii_uppercase, string.ascii_lowercase),
}
_SMALL: Final = "translate($%d, '{}', '{}')".format(*_LETTERS["lower"])
_REWRITES: Final = {
    **{name: f"translate($1, '{some}', '{others}')" for name, (some, others) in _LETTERS.items()},
    "~~*": f"{_SMALL % 1} like {_SMALL % 2}",
    "!~~*": f"{_SMALL % 1} not like {_SMALL % 2}",
}
_ASKS_LETTERS: Final = frozenset({"initcap", "casefold", "~", "!~", "~*", "!~*", "substring"})
_PATTERNS: Final = frozenset({"~", "!~", "~*", "!~*", "~~*", "!~~*"})
_COLLATABLE: Final = frozenset({"text", "varchar", "bpchar", "name", "unknown"})


_OF_NAMES: Final = Collation("C", of_names=True)


def check_collation(binding: Binding, node: Node, type_: SqlType) -> Collation:
    """A COLLATE clause on a type: 0A000 for another order, 42804 for a type that is not text."""
    *_, name = names = string_values(node.collname)
    if qualifying_schema(binding, names, node.location) not in (None, "pg_catalog"):
        message = f'collation "{".".join(names)}" for encoding "UTF8" does not exist'
        raise SqlError("42704", message, offset_to_position(node.location))
    if name not in _BY_CODE_POINT:
        raise not_supported(f'collation "{name}"', offset_to_position(node.location))
    if type_.category not in ("S", "X") and (type_.element or type_).category not in ("S", "X"):
        message = f"collations are not supported by type {format_type(type_.bare())}"
        raise SqlError("42804", message, offset_to_position(node.location))
    return Collation(name, node.location or 0)


def column_collation(binding: Binding, node: Node | None, type_: SqlType) -> str:
    """The collation that a column stores: empty if COLLATE names the default of its type."""
    if node is None:
        return ""
    return _unless_own(check_collation(binding, node, type_), type_)


def collation_to_store(binding: Binding, column: PlanColumn) -> str:
    """The collation to store for a table or view column that is derived from this one."""
    collation = binding.collations.get(column.id)
    return "" if collation is None else _unless_own(collation, column.type)


def _unless_own(collation: Collation, type_: SqlType) -> str:
    own = "C" if type_.name in ("name", "_name") else "default"
    return "" if collation.name == own else collation.name


def set_collation(binding: Binding, expr: Expr, collation: Collation | None) -> Expr:
    """Record the collation of an expression, so that it is not computed again."""
    if collation is not None or _is_collatable(expr.type):
        binding.collated[id(expr)] = (expr, collation)
    return expr


def set_collation_of_all(binding: Binding, made: list[Expr], exprs: Sequence[Expr]) -> list[Expr]:
    """Record for converted expressions the collation of the originals."""
    collation = merged_collation(binding, exprs)
    return [set_collation(binding, expr, collation) for expr in made]


def set_column_collation(binding: Binding, column: PlanColumn, expr: Expr) -> None:
    """Record the collation of a column that passes this expression through."""
    set_computed_collation(binding, column, (expr,))


def set_computed_collation(binding: Binding, column: PlanColumn, exprs: Sequence[Expr]) -> None:
    """Record the collation of a column that is computed from these expressions."""
    collation = merged_collation(binding, exprs) if _is_collatable(column.type) else None
    if collation is not None:
        binding.collations[column.id] = replace(collation, place=None)


def set_set_operation_collation(
    binding: Binding, column: PlanColumn, sides: Sequence[PlanColumn]
) -> None:
    """Record the collation of a column of a set operation."""
    for side in sides:
        if side.id in binding.collations:
            binding.collations.setdefault(column.id, binding.collations[side.id])


def ascii_rewrite(row: Function, args: Sequence[Expr], collation: Collation | None) -> str | None:
    """The SQL that replaces a call under a collation; 0A000 for some that ask for letters under an
    ASCII-only one (L2).

    A `name` is matched against patterns as under "C"; under another collation it is a text.
    """
    if collation is None:
        return None
    if collation.name not in _ASCII_LETTERS:
        return f'$1::text collate "default" {row.name} $2' if _matches_name(row) else None
    if _asks_letters(row) and not (collation.of_names and all(map(_may_be_ascii, args))):
        raise not_supported(f'{row.name} under the collation "{collation.name}"')
    return _REWRITES.get(row.name) if {*row.args} == {"text"} else None


def _matches_name(row: Function) -> bool:
    return row.name in _PATTERNS and row.args[0] == "name"


def _may_be_ascii(expr: Expr) -> bool:
    return not (isinstance(expr, Const) and isinstance(expr.value, str)) or expr.value.isascii()


def _asks_letters(row: Function) -> bool:
    if row.name not in _ASKS_LETTERS and not row.name.startswith("regexp_"):
        return False
    return row.args[0] in ("text", "bpchar") and row.args[1:2] in ((), ("text",))


def merged_collation(binding: Binding, exprs: Sequence[Expr]) -> Collation | None:
    """The collation of an expression over these (L1); None for the default that nobody named."""
    found = [one for expr in exprs if (one := collation_of_expression(binding, expr)) is not None]
    named = sorted((one for one in found if one.place is not None), key=_place)
    for one in named[1:]:
        if one.name != named[0].name:
            pair = f'"{named[0].name}" and "{one.name}"'
            message = f"collation mismatch between explicit collations {pair}"
            raise SqlError("42P21", message, offset_to_position(one.place))
    return next(iter([*named, *found]), None)


def _place(collation: Collation) -> int:
    return collation.place or 0


def collation_of_expression(binding: Binding, expr: Expr) -> Collation | None:
    """The collation of an expression (L1)."""
    made = binding.collated.get(id(expr))
    if made is not None:
        return made[1]
    if not _is_collatable(expr.type):
        return None
    if expr.type.name in ("name", "_name"):
        return _OF_NAMES
    match expr:
        case ColumnRef(id=id_):
            return binding.collations.get(id_)
        case Call(args=args) | Coalesce(args=args) | Extreme(args=args):
            return merged_collation(binding, args)
        case Case(whens=whens, otherwise=otherwise):
            return merged_collation(binding, [*(value for _, value in whens), otherwise])
        case Subquery(kind=SubqueryKind.SCALAR | SubqueryKind.ARRAY, plan=plan):
            return binding.collations.get(output_columns(plan)[0].id)
        case _:
            return None


def _is_collatable(type_: SqlType) -> bool:
    return type_.name.removeprefix("_") in _COLLATABLE
