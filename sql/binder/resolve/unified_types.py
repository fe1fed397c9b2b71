"""Common types of CASE, COALESCE, VALUES, UNION and arrays (select_common_type of parse_coerce.c).

Numerics also get a common precision and scale.

INVARIANTS
  T1  a constant NULL widens nothing: the other values keep their precision and scale, but lose
      their modifier.
"""

from collections.abc import Sequence
from dataclasses import replace

from sql.binder.resolve.coercion import IMPLICIT, bare_name, can_coerce, coerce, rescale_numeric
from sql.binder.resolve.collations import set_collation_of_all
from sql.binder.state import Binding
from sql.errors import SqlError, datatype_mismatch
from sql.parser.syntax import Node, node_position
from sql.plan import bpchar_calls as char_blanks
from sql.plan.nodes import Const, Expr, is_null
from sql.types import bpchar as char_blanks_bpchar
from sql.types import numeric
from sql.types.records import mixed_record_type
from sql.types.sql_type import PREFERRED_TYPES, TEXT, SqlType, plain_type, type_category


def select_common_type(
    exprs: Sequence[Expr], nodes: Sequence[Node], what: str | None
) -> SqlType | None:
    """The type all expressions get (select_common_type). Without `what`: None instead of 42804."""
    chosen = exprs[0].type
    if chosen.name != "unknown" and all(expr.type.name == chosen.name for expr in exprs):
        return chosen
    for expr, node in zip(exprs[1:], nodes[1:], strict=True):
        type_ = expr.type
        if type_.name in ("unknown", chosen.name):
            continue
        if chosen.name == "unknown":
            chosen = type_
        elif type_category(type_.name) != type_category(chosen.name):
            if what is None:
                return None
            names = f"{bare_name(chosen)} and {bare_name(type_)}"
            raise datatype_mismatch(f"{what} types {names} cannot be matched", node_position(node))
        elif (
            chosen.name not in PREFERRED_TYPES
            and can_coerce(chosen.name, type_.name, IMPLICIT)
            and not can_coerce(type_.name, chosen.name, IMPLICIT)
        ):
            chosen = type_
    return TEXT if chosen.name == "unknown" else chosen


def to_common_type(
    binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node], what: str
) -> tuple[list[Expr], SqlType]:
    """All expressions in one type, numerics with one precision and scale, and that type."""
    chosen = select_common_type(exprs, nodes, what)
    assert chosen is not None, "with `what` a mismatch raises"
    done, type_ = as_common_type(binding, exprs, nodes, chosen, what)
    return set_collation_of_all(binding, done, exprs), type_


def as_common_type(
    binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node], chosen: SqlType, what: str
) -> tuple[list[Expr], SqlType]:
    """All expressions in the chosen type; a modifier survives if all have it."""
    target = chosen.bare() if "numeric" not in chosen.name else plain_type(chosen.name)
    typmods = {expr.type.typmod if expr.type.name == chosen.name else -1 for expr in exprs}
    done = [
        convert_common(binding, expr, node, target, what)
        for expr, node in zip(exprs, nodes, strict=True)
    ]
    if "numeric" in chosen.name:
        common = _shown_alike(done, common_numeric(done))
        return [rescale_numeric(binding, expr, common) for expr in done], common
    typmod = typmods.pop() if len(typmods) == 1 else -1
    if char_blanks_bpchar.is_bpchar(target):
        return char_blanks.unify_bpchar(done, typmod)
    rows = [expr.type for expr in done if expr.type.fields is not None or not is_null(expr)]
    if len(set(map(row_shape, rows))) > 1:
        target = mixed_record_type(target, rows)
    return done, replace(target, typmod=typmod)


def row_shape(type_: SqlType) -> tuple[object, ...]:
    """All that two types of rows may differ in."""
    return type_.fields, type_.names, type_.row


def common_numeric(exprs: Sequence[Expr]) -> SqlType:
    """A numeric type that holds the values of all; a NULL adds no digits, and removes the
    modifier.
    """
    types = [expr.type for expr in exprs if not is_null(expr)]
    common = numeric.unify_numeric_types(types or [expr.type for expr in exprs])
    return common if len(types) == len(exprs) else common.bare()


def _shown_alike(exprs: Sequence[Expr], common: SqlType) -> SqlType:
    """Keep trailing zeros when only literals have another scale: coalesce(price, 0) shows 1.50."""
    types = [expr.type for expr in exprs if not isinstance(expr, Const)]
    even = all(not type_.trim and type_.scale == common.scale for type_ in types)
    return replace(common, trim=False) if types and even else common


def convert_common(binding: Binding, expr: Expr, node: Node, target: SqlType, what: str) -> Expr:
    """One expression in the common type; 42846 if there is no implicit conversion."""
    done = coerce(binding, expr, node, target, IMPLICIT)
    if done is None:
        names = f"{bare_name(expr.type)} to {bare_name(target)}"
        raise SqlError("42846", f"{what} could not convert type {names}", node_position(node))
    return done
