"""Bind long chains of one operator without recursion, and keep their plans shallow.

    a || b || c || d   ─▶   (a || b) || (c || d)       texts are joined in any nesting
    a + b + c + d      ─▶   one call of four arguments  sums may overflow: from left to right

The parser nests a chain as deep as it is long. Chains whose parts have several types, and chains of
several operators, stay nested where the function changes.

Not here: what the call of many terms means (`sql/plan/folded_calls.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import A_Expr_Kind

from sql.binder.expressions.calls import operator, operator_name
from sql.binder.resolve.coercion import EXPLICIT, coerce, float_literal
from sql.binder.resolve.collations import merged_collation, set_collation
from sql.binder.state import Binding, Scope
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, string_values
from sql.plan.folded_calls import FOLDED
from sql.plan.nodes import Call, Expr
from sql.types.sql_type import FLOAT8, TEXT

_TEXTS: Final = "text || text"
_ASSOCIATIVE: Final = frozenset({_TEXTS})

_LENGTH_MIN: Final = 32
"""Operators. Shorter chains stay as they were written."""


def long_operator_chain(binding: Binding, scope: Scope, node: Node) -> Expr | None:
    """`a op b op c ..`; None if it is short, or of another operator than `+` and `||`."""
    chain = _chain(node)
    if len(chain) < _LENGTH_MIN:
        return None
    first = chain[-1].lexpr
    if is_a(first, ast.RowExpr) or float_literal(binding, first, FLOAT8) is not None:
        return None
    name = operator_name(binding, node.name, node.location)
    left = binding.expression(scope, first)
    terms: list[Expr] = []
    for part in reversed(chain):
        right = binding.expression(scope, part.rexpr)
        pair = [part.lexpr, part.rexpr]
        made = _of_texts(binding, operator(binding, name, [left, right], pair, part.location), pair)
        if terms and isinstance(left, Call) and _goes_on(left, made):
            # What is to the left stands for all that there is so far: it has its type.
            terms.append(made.args[1])
            continue
        if terms:
            left = _joined(binding, left, terms)
            made = operator(binding, name, [left, right], pair, part.location)
            made = _of_texts(binding, made, pair)
        terms = list(made.args) if isinstance(made, Call) and _may_go_on(made) else []
        left = made
    return _joined(binding, left, terms) if terms else left


def _chain(node: Node) -> list[Node]:
    """The operators of a chain, the last one first."""
    words = string_values(node.name)
    chain: list[Node] = []
    while (
        is_a(node, ast.A_Expr)
        and node.kind == A_Expr_Kind.AEXPR_OP
        and node.lexpr is not None
        and words[-1] in ("+", "||")
        and string_values(node.name) == words
    ):
        chain.append(node)
        node = node.lexpr
    return chain


def _of_texts(binding: Binding, made: Expr, pair: Sequence[Node]) -> Expr:
    """`text || 1` as `text || 1::text`, which it means."""
    if not isinstance(made, Call) or made.function.id != "text || anynonarray":
        return made
    left, right = made.args[:2]
    shown = coerce(binding, right, pair[1], TEXT, EXPLICIT)
    if shown is None or len(made.args) > 2:
        return made
    return replace(made, function=function_by_id(_TEXTS), args=(left, shown))


def _may_go_on(call: Call) -> bool:
    return call.function.id in FOLDED | _ASSOCIATIVE and len(call.args) == 2


def _goes_on(left: Call, made: Expr) -> bool:
    return (
        isinstance(made, Call)
        and made.function is left.function
        and made.type == left.type
        and len(made.args) == 2
        and made.args[0] is left
    )


def _joined(binding: Binding, call: Expr, terms: Sequence[Expr]) -> Expr:
    """All terms of a chain that begins with this call."""
    assert isinstance(call, Call), "a chain begins with a call"
    if len(terms) == len(call.args):
        return call
    if call.function.id in FOLDED:
        made = replace(call, args=tuple(terms))
    else:
        made = _balanced(call, terms)
    return set_collation(binding, made, merged_collation(binding, terms))


def _balanced(call: Call, terms: Sequence[Expr]) -> Call:
    level = list(terms)
    while len(level) > 2:
        pairs = zip(level[::2], level[1::2], strict=False)
        made: list[Expr] = [replace(call, args=pair) for pair in pairs]
        level = made + level[len(made) * 2 :]
    return replace(call, args=tuple(level))
