"""Casts to types that only catalogs have: `'5'::xid`, `'{a=r/a}'::aclitem[]`, `'1 2'::int2vector`.

    '5'::xid         ─▶  5::bigint, which a result shows as xid
    '1 2'::oidvector ─▶  '{1,2}'::oid[], which a result shows without braces

INVARIANTS
  G1  a value is of the type that it is held as (U1 of `sql/types/catalog_types.py`). Types whose
      values that type would order in another way (pg_lsn) are refused.
  T1  a tid is held with all its digits, so that its text is ordered as it is. Results show it
      without leading zeros.
"""

import re
from typing import Final

from sql.binder.resolve.coercion import EXPLICIT, coerce, typed_literal
from sql.binder.state import Binding, Scope
from sql.catalog.system_catalogs import shown_types
from sql.errors import SqlError, invalid_text_representation, not_supported
from sql.parser.syntax import Node, location, offset_to_position, string_values
from sql.plan.nodes import Coalesce, ColumnRef, Const, Expr
from sql.types.catalog_types import HELD_AS
from sql.types.sql_type import VECTOR_TYPE_OIDS, SqlType, format_type, plain_type

_NUMBERS: Final = {"xid": 1 << 32, "cid": 1 << 32, "xid8": 1 << 63}
_ITEM: Final = re.compile(r'("(?:[^"]|"")*"|[^="/]*)=[arwdDxtXUCTcsAm*]*/("(?:[^"]|"")*"|[^="/]+)')
_TID: Final = re.compile(r" *\( *(\d+), *(\d+)\)")
_TIDS_ELEMENT: Final = re.compile(r'"(\([^"]*\))"')
_TIDS: Final = re.compile(r'\{(?:\s*"\([^"]*\)"\s*(?:,\s*"\([^"]*\)"\s*)*)?\}')
_KNOWN: Final = frozenset(
    {*_NUMBERS, "tid", "aclitem", "pg_node_tree", "_xid", "_cid", "_xid8", "_tid", "_aclitem"}
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


def held_tid(text: str, place: int | None = None) -> str:
    """A tid as it is held (T1). Raises 22P02."""
    found = _TID.fullmatch(text)
    if found is None or int(found[1]) >= 1 << 32 or int(found[2]) >= 1 << 16:
        raise invalid_text_representation("tid", text).at(place)
    return f"({int(found[1]):010},{int(found[2]):05})"


def _held_tids(text: str, place: int | None) -> str:
    """An array of them, in one dimension."""
    if not _TIDS.fullmatch(text):
        raise not_supported(f"the array {text} of type tid[]", place)
    parts = _TIDS_ELEMENT.findall(text)
    return "{" + ",".join(f'"{held_tid(part, place)}"' for part in parts) + "}"


def _checked(text: str, target: SqlType, place: int | None) -> str:
    """The text that the type held as reads. Raises 22P02, 22003."""
    if target.name in VECTOR_TYPE_OIDS:
        return "{" + ",".join(text.split()) + "}"
    if target.name in _NUMBERS:
        number = text.strip()
        if not re.fullmatch(r"[+-]?\d+", number):
            raise invalid_text_representation(target.name, text).at(place)
        if not 0 <= int(number) < _NUMBERS[target.name]:
            raise SqlError("22003", f'value "{text}" is out of range for type {target.name}', place)
    if target.name == "tid":
        return held_tid(text, place)
    if target.name == "_tid":
        return _held_tids(text, place)
    if target.name == "aclitem" and not _ITEM.fullmatch(text):
        raise not_supported(f'the aclitem "{text}"', place)
    return text
