"""Casts to types that only catalogs have: `'5'::xid`, `'{a=r/a}'::aclitem[]`, `'1 2'::int2vector`.

    '5'::xid         ─▶  5::bigint, which a result shows as xid
    '1 2'::oidvector ─▶  '{1,2}'::oid[], which a result shows without braces

INVARIANTS
  G1  a value is of the type that it is held as (U1 of `sql/types/catalog_types.py`). Types whose
      values that type would order in another way (pg_lsn) are refused.
"""

import re
from typing import Final

from sql.binder.resolve.coercion import EXPLICIT, coerce, typed_literal
from sql.binder.state import Binding, Scope
from sql.catalog.system_catalogs import shown_types
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, location, offset_to_position, string_values
from sql.plan.nodes import Coalesce, ColumnRef, Const, Expr, Param
from sql.types.catalog_types import HELD_AS
from sql.types.sql_type import VECTOR_TYPE_OIDS, SqlType, format_type, plain_type
from sql.types.tuple_ids import (
    NUMBER_ENDS,
    format_tid,
    parse_number,
    parse_tid,
    parse_tid_array,
)

_ITEM: Final = re.compile(r'("(?:[^"]|"")*"|[^="/]*)=[arwdDxtXUCTcsAm*]*/("(?:[^"]|"")*"|[^="/]+)')
_COMPARED: Final = frozenset({*NUMBER_ENDS, "tid"})
_KNOWN: Final = frozenset(
    {*NUMBER_ENDS, "tid", "aclitem", "pg_node_tree", "_xid", "_cid", "_xid8", "_tid", "_aclitem"}
).union(VECTOR_TYPE_OIDS)


def catalog_type(node: Node) -> SqlType | None:
    """The type of a TypeName if it is one of these; None for others."""
    *qualifier, name = string_values(node.names)
    if qualifier not in ([], ["pg_catalog"]) or node.typmods or node.setof or not name:
        return None
    name = f"_{name}" if node.arrayBounds else name
    return SqlType(name) if name in _KNOWN else None


def cast_to_catalog_type(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """A TypeCast to such a type; None for other types. Raises 42846, 22P02."""
    target = catalog_type(node.typeName)
    if target is None:
        return None
    cast = node.location if (node.location or -1) >= 0 else location(node.arg)
    expr = binding.expression(scope, node.arg)
    return _converted(binding, expr, node.arg, target, offset_to_position(cast))


def _converted(binding: Binding, expr: Expr, node: Node, target: SqlType, cast: int | None) -> Expr:
    held = plain_type(HELD_AS[target.name])
    place = offset_to_position(location(node))
    if shown_as(binding, expr) == target:
        return expr
    if isinstance(expr, Const) and expr.value is None:
        return shown(binding, Const(None, held), target)
    compared = target.name.removeprefix("_") in _COMPARED
    if isinstance(expr, Param) and expr.type.name == "unknown" and compared:
        return binding.give_type(expr, target, held)
    is_text = expr.type.name in ("unknown", "text") and target.name != "pg_node_tree"
    if isinstance(expr, Const) and is_text:
        text = _checked(str(expr.value), target, place)
        return shown(binding, typed_literal(binding, text, held.name, place), target)
    if expr.type.name == "unknown" or target.name == "pg_node_tree":
        raise not_supported(f"such a value of type {format_type(target)}", place)
    if expr.type.name not in ("text", "varchar") or target.name in VECTOR_TYPE_OIDS:
        types = f"{format_type(expr.type.bare())} to {format_type(target)}"
        raise SqlError("42846", f"cannot cast type {types}", cast)
    done = coerce(binding, expr, node, held, EXPLICIT)
    assert done is not None, "a text becomes anything"
    return shown(binding, done, target)


def shown(binding: Binding, expr: Expr, type_: SqlType) -> Expr:
    """The expression, which a result shows as the type."""
    made = expr if isinstance(expr, Const) else Coalesce((expr,), expr.type)
    binding.shown.note(made, type_)
    return made


def shown_as(binding: Binding, expr: Expr) -> SqlType | None:
    """The type that only catalogs have, of an expression or a column."""
    known = binding.shown.of(expr)
    if known is not None or not isinstance(expr, ColumnRef):
        return known
    return shown_types().get(binding.origins.get(expr.id, (0, 0)))


def _checked(text: str, target: SqlType, place: int | None) -> str:
    """The text that the type held as reads. Raises 22P02, 22003."""
    if target.name in VECTOR_TYPE_OIDS:
        return "{" + ",".join(text.split()) + "}"
    try:
        if target.name in NUMBER_ENDS:
            parse_number(target.name, text)
        if target.name == "tid":
            return parse_tid(text)
        if target.name == "_tid":
            return "{" + ",".join([f'"{held}"' for held in parse_tid_array(text)]) + "}"
    except SqlError as error:
        raise error.at(place) from None
    if target.name == "aclitem" and not _ITEM.fullmatch(text):
        raise not_supported(f'the aclitem "{text}"', place)
    return text


def with_catalog_type(binding: Binding, expr: Expr, node: Node, other: Expr) -> Expr:
    """A literal or parameter of no type yet beside a value that a result shows as such a type: it
    is of that type, too. Others as they are. Raises 22P02.
    """
    type_ = shown_as(binding, other)
    if type_ is None or type_.name not in _COMPARED or expr.type.name != "unknown":
        return expr
    return _as_type(binding, expr, node, type_)


def with_catalog_array_type(binding: Binding, array: Expr, node: Node, left: Expr) -> Expr:
    """The same for the array of `left = ANY (array)`."""
    type_ = shown_as(binding, left)
    if type_ is None or type_.name not in _COMPARED or array.type.name != "unknown":
        return array
    return _as_type(binding, array, node, SqlType(f"_{type_.name}"))


def _as_type(binding: Binding, expr: Expr, node: Node, type_: SqlType) -> Expr:
    if isinstance(expr, Param):
        return binding.give_type(expr, type_, plain_type(HELD_AS[type_.name]))
    if isinstance(expr, Const) and expr.value is not None:
        return _converted(binding, expr, node, type_, None)
    return expr


def as_held(binding: Binding, expr: Expr, cast: Expr | None) -> Expr | None:
    """What a cast of the expression made. One to the type that it is held as computes nothing, but
    the result is of that type.
    """
    type_ = None if cast is not expr else shown_as(binding, expr)
    if type_ is None:
        return cast
    if type_.name == "tid" and isinstance(expr, Const) and isinstance(expr.value, str):
        return Const(format_tid(expr.value), expr.type)
    return Coalesce((expr,), expr.type)
