"""Bind comparisons of columns with literals like the first of their kind in a long condition.

id IN (1, 2, 3, ..)                 the items are `ConstantItems`, bound like the first ones
id = 1 OR id = 2 OR ..              each is `id = literal`: as the first, with another constant
(id = 1 AND v = 2) OR (id = 3 ..)   the same within
(id, v) IN ((1, 2), (3, 4), ..)     the same

To bind one takes 30 microseconds, to bind it like another one 2.

INVARIANTS
  A1  what is bound alike is what binding it would make: the column and the operator are the same,
      and the literal's type does not depend on its value.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from pglast import ast
from pglast.enums import A_Expr_Kind, BoolExprType

from sql.parser.syntax import Node, is_a
from sql.plan.constant_items import ITEMS_MIN, ConstantItems
from sql.plan.nodes import BoolOp, Call, ColumnRef, Const, Expr, InList, Logical
from sql.plan.widening_casts import WIDENING_CASTS
from sql.types.sql_type import BOOL, Value

ALIKE_MIN: Final = 32
"""Operands of a condition from which on it is worth to look."""

_OPERATORS: Final = frozenset({"=", "<>"})
_WHOLE: Final = frozenset({"int2", "int4", "int8"})
_INT8_DIGITS: Final = 19
_WITHIN: Final = {BoolExprType.AND_EXPR: BoolOp.AND, BoolExprType.OR_EXPR: BoolOp.OR}

_Key: TypeAlias = tuple[object, ...]


class AlikeComparisons:
    """The first comparison of each kind in one condition. `is_on`: False for short ones."""

    def __init__(self, *, is_on: bool = True) -> None:
        self._first: dict[_Key, Call] = {}
        self._is_on = is_on

    def bound(self, node: Node) -> Expr | None:
        """A comparison, or an AND or OR of some, bound alike (A1); None if that is not known."""
        if not self._first:
            return None
        if is_a(node, ast.BoolExpr):
            op = _WITHIN.get(node.boolop)
            parts = [] if op is None else [self.bound(arg) for arg in node.args]
            known = [part for part in parts if isinstance(part, Call)]
            if op is None or len(known) < len(parts):
                return None
            return Logical(op, tuple(known), BOOL)
        if not is_a(node, ast.A_Expr) or node.kind is not A_Expr_Kind.AEXPR_OP:
            return None
        return self.pair(node.name, node.lexpr, node.rexpr)

    def pair(self, name: Sequence[Node], left: Node, right: Node) -> Expr | None:
        """`left name right`, bound alike; None if that is not known."""
        key = _key(name, left, right)
        first = None if key is None else self._first.get(key)
        if first is None:
            return None
        column, constant = first.args
        return replace(first, args=(column, Const(_value(right), constant.type)))

    def row(self, node: Node, item: Node) -> Expr | None:
        """An item of `(a, b) [NOT] IN (..)`, compared alike; None if that is not known."""
        sides = _sides(node, item)
        parts = [self.pair(node.name, left, right) for left, right in sides]
        known = [part for part in parts if part is not None]
        if len(known) < 2 or len(known) < len(parts):
            return None
        op = BoolOp.AND if node.name[0].sval == "=" else BoolOp.OR
        return Logical(op, tuple(known), BOOL)

    def note_row(self, node: Node, item: Node, expr: Expr) -> None:
        """How an item was compared."""
        sides = _sides(node, item)
        if isinstance(expr, Logical) and len(expr.args) == len(sides):
            for (left, right), part in zip(sides, expr.args, strict=True):
                self.note_pair(node.name, left, right, part)

    def note(self, node: Node, expr: Expr) -> None:
        """How such a comparison, or those of such a condition, were bound."""
        if not self._is_on:
            return
        if is_a(node, ast.BoolExpr):
            if isinstance(expr, Logical) and len(expr.args) == len(node.args):
                for arg, part in zip(node.args, expr.args, strict=True):
                    self.note(arg, part)
        elif is_a(node, ast.A_Expr) and node.kind is A_Expr_Kind.AEXPR_OP:
            self.note_pair(node.name, node.lexpr, node.rexpr, expr)

    def note_simple(self, name: Sequence[Node], left: Node, right: Node, expr: Expr) -> None:
        """How a branch of `CASE left WHEN right ..` was bound."""
        if self._is_on:
            self.note_pair(name, left, right, expr)

    def note_pair(self, name: Sequence[Node], left: Node, right: Node, expr: Expr) -> None:
        """How `left name right` was bound, if others can be bound alike."""
        key = _key(name, left, right)
        if key is None or key in self._first or not isinstance(expr, Call) or len(expr.args) != 2:
            return
        column, constant = expr.args
        if not isinstance(column, ColumnRef) or not isinstance(constant, Const):
            return
        alike = _WHOLE if type(right.val) is ast.Integer else {"text"}
        value = _value(right)
        if constant.type.name in alike and constant.value == value:
            self._first[key] = expr


def long_constant_list(
    nodes: Sequence[Node], bound: Callable[[Sequence[Node]], Expr]
) -> Expr | None:
    """`x [NOT] IN (nodes)`, of which some are bound by `bound` and the others alike (A1); None if
    they are few, or not all alike. NULL may stand among them.
    """
    if len(nodes) < ITEMS_MIN or any(type(node) is not ast.A_Const for node in nodes):
        return None
    values = [_literal(node.val) for node in nodes]
    # One of each kind, and a second one: one alone would be no list.
    few = dict.fromkeys([0, *{kind: at for at, (kind, _) in enumerate(values)}.values()])
    kinds = {kind for kind, _ in values}
    if (
        not (kinds <= {"int4", "int8", ""} or kinds <= {"text", ""})
        or len(few) < 2
        or kinds == {""}
    ):
        return None
    made = bound([nodes[at] for at in few])
    if not isinstance(made, InList) or len(made.items) < len(few):
        return None
    items = [_whole(item) for item in made.items]
    type_ = items[0].type if items[0] is not None else None
    known = [item.value for item in items if item is not None and item.type == type_]
    names = {"text"} if "text" in kinds else _WHOLE
    if type_ is None or type_.name not in names or known != [values[at][1] for at in few]:
        return None
    return replace(made, items=ConstantItems([value for _, value in values], type_))


def _literal(value: Node | None) -> tuple[str, Value]:
    """The kind of a literal and its value, if it is text or a whole number; "" is that of NULL."""
    match value:
        case None:
            return "", None
        case ast.Integer():
            return "int4", value.ival or 0
        case ast.String():
            return "text", value.sval or ""
        case ast.Float() if _is_int8(value.fval or ""):
            return "int8", int(value.fval or "")
        case _:
            return "other", None


def _is_int8(digits: str) -> bool:
    return digits.isdecimal() and len(digits) <= _INT8_DIGITS and int(digits) < 1 << 63


def _whole(item: Expr) -> Const | None:
    """A constant, also as a wider whole number."""
    if isinstance(item, Call) and item.function.id in WIDENING_CASTS:
        (arg,) = item.args
        return Const(arg.value, item.type) if isinstance(arg, Const) else None
    return item if isinstance(item, Const) else None


def _sides(node: Node, item: Node) -> Sequence[tuple[Node, Node]]:
    """The fields of two rows side by side; empty for anything else."""
    rows = node.lexpr, item
    if not all(is_a(row, ast.RowExpr) for row in rows):
        return ()
    left, right = (row.args or () for row in rows)
    return list(zip(left, right, strict=True)) if len(left) == len(right) else ()


def _value(node: Node) -> Value:
    value: Node = node.val
    return (value.ival or 0) if type(value) is ast.Integer else (value.sval or "")


def _key(name: Sequence[Node], left: Node, right: Node) -> _Key | None:
    if not is_a(left, ast.ColumnRef) or not is_a(right, ast.A_Const) or len(name) != 1:
        return None
    kind, fields = type(right.val), left.fields
    if kind is not ast.Integer and kind is not ast.String:
        return None
    word = name[0].sval
    if word not in _OPERATORS or not all(is_a(field, ast.String) for field in fields):
        return None
    return (word, kind, *[field.sval for field in fields])
