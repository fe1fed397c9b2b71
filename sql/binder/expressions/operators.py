"""Bind operator syntax: operators, row comparison, IN, BETWEEN, LIKE, NULLIF, IS DISTINCT FROM."""

from collections.abc import Callable, Sequence
from typing import Final

from pglast import ast
from pglast.enums import A_Expr_Kind

from sql.binder.expressions.alike_comparisons import ALIKE_MIN, AlikeComparisons, long_constant_list
from sql.binder.expressions.arrays import any_all_of_array
from sql.binder.expressions.calls import operator, operator_name
from sql.binder.expressions.operator_chains import long_operator_chain
from sql.binder.expressions.rows import whole_row_equality, whole_row_presence
from sql.binder.expressions.whole_rows import expanded_row_fields
from sql.binder.resolve.coercion import coerce_implicitly, float_literal, to_boolean
from sql.binder.resolve.collations import merged_collation
from sql.binder.resolve.function_choice import operator_signature
from sql.binder.resolve.overloads import AmbiguousOverload, choose_operator
from sql.binder.resolve.unified_types import convert_common, select_common_type, to_common_type
from sql.binder.state import Binding, Scope
from sql.errors import (
    SqlError,
    datatype_mismatch,
    not_supported,
    statement_too_complex,
    undefined_function,
)
from sql.parser.syntax import Node, is_a, node_position, offset_to_position
from sql.plan.bpchar_calls import trim_bpchar
from sql.plan.conditions import connect_conditions
from sql.plan.constant_items import packed_items
from sql.plan.constant_rows import conditions_as_rows, packed_whens
from sql.plan.nodes import BoolOp, Call, Case, Const, Distinct, Expr, InList, IsTest, Logical, Test
from sql.plan.traverse import has_more_parts, is_volatile_anywhere, is_volatile_expression
from sql.types.records import check_record_keys
from sql.types.sql_type import BOOL, FLOAT8, TEXT, SqlType, format_type

_FLOATS: Final = frozenset({"float4", "float8"})
_COPIED_MAX: Final = 5_000
"""Parts of an expression that is written several times."""


def operator_expression(binding: Binding, scope: Scope, node: Node) -> Expr:
    """Any A_Expr."""
    binder = _KINDS.get(node.kind)
    if binder is None:
        raise not_supported("this operator syntax", offset_to_position(node.location))
    return binder(binding, scope, node)


def _name(binding: Binding, node: Node) -> str:
    return operator_name(binding, node.name, node.location)


def _plain(binding: Binding, scope: Scope, node: Node) -> Expr:
    chain = long_operator_chain(binding, scope, node)
    if chain is not None:
        return chain
    name = _name(binding, node)
    left, right = node.lexpr, node.rexpr
    if name in ("=", "<>"):
        compared_whole = whole_row_equality(
            binding, scope, node, equal=name == "=", null_safe=False
        )
        if compared_whole is not None:
            return compared_whole
    if is_a(left, ast.RowExpr) and type(right) in ROW_COMPARISONS:
        compared_row = ROW_COMPARISONS[type(right)](binding, scope, node, name)
        if compared_row is not None:
            return compared_row
    if left is None:
        return operator(binding, name, [binding.expression(scope, right)], [right], node.location)
    if float_literal(binding, left, FLOAT8) is not None:
        other = binding.expression(scope, right)
        exprs = [_beside(binding, scope, other, left), other]
    else:
        other = binding.expression(scope, left)
        exprs = [other, _beside(binding, scope, other, right)]
    return operator(binding, name, exprs, [left, right], node.location)


def _beside(binding: Binding, scope: Scope, other: Expr, node: Node) -> Expr:
    """What stands beside a value; a literal that no numeric of ours holds is a float beside one."""
    literal = float_literal(binding, node, FLOAT8) if other.type.name in _FLOATS else None
    return literal or binding.expression(scope, node)


def boolean_operator(
    binding: Binding, name: str, exprs: Sequence[Expr], nodes: Sequence[Node], place: int
) -> Expr:
    """An operator that must yield boolean."""
    expr = operator(binding, name, exprs, nodes, place)
    if expr.type.name != "bool":
        shown = format_type(expr.type)
        message = (
            f"operator {operator_signature(name, exprs)} must return type boolean, not {shown}"
        )
        raise datatype_mismatch(message, offset_to_position(place))
    return expr


# --- rows --------------------------------------------------------------------------------------


def _row_with_row(binding: Binding, scope: Scope, node: Node, name: str) -> Expr:
    return _rows(binding, scope, name, node.lexpr, node.rexpr, node.location)


def _rows(binding: Binding, scope: Scope, name: str, left: Node, right: Node, place: int) -> Expr:
    """`(a, b) op (c, d)`, written out by columns."""
    lefts, rights = (expanded_row_fields(binding, scope, row) for row in (left, right))
    if len(lefts) != len(rights):
        raise SqlError(
            "42601", "unequal number of entries in row expressions", offset_to_position(place)
        )
    if not lefts:
        raise SqlError("0A000", "cannot compare rows of zero length", offset_to_position(place))
    pairs = [
        ([binding.expression(scope, a), binding.expression(scope, b)], [a, b])
        for a, b in zip(lefts, rights, strict=True)
    ]
    return row_comparison(binding, name, pairs, place)


ROW_COMPARISONS: Final[dict[type, Callable[[Binding, Scope, Node, str], Expr | None]]] = {
    ast.RowExpr: _row_with_row
}
"""How a row is compared, by the node on its right side; None: not in this way.
`quantified.py` enters subqueries."""


def row_comparison(
    binding: Binding, name: str, pairs: list[tuple[list[Expr], list[Node]]], place: int
) -> Expr:
    """A comparison of rows, given by pairs of their columns (make_row_comparison_op)."""
    if len(pairs) == 1:
        return boolean_operator(binding, name, *pairs[0], place)
    if name in ("=", "<>"):
        parts = tuple(
            [boolean_operator(binding, name, exprs, nodes, place) for exprs, nodes in pairs]
        )
        return Logical(BoolOp.AND if name == "=" else BoolOp.OR, parts, BOOL)
    if name not in ("<", "<=", ">", ">="):
        message = f"could not determine interpretation of row comparison operator {name}"
        hint = "Row comparison operators must be associated with btree operator families."
        raise SqlError("0A000", message, offset_to_position(place), hint=hint)
    return _ordered_rows(binding, name, pairs, place)


def _ordered_rows(
    binding: Binding, name: str, pairs: list[tuple[list[Expr], list[Node]]], place: int
) -> Expr:
    """`a < c OR (a = c AND b < d)`; only the last column may be equal."""
    exprs, nodes = pairs[-1]
    result = boolean_operator(binding, name, exprs, nodes, place)
    for exprs, nodes in reversed(pairs[:-1]):
        for expr in exprs:
            _check_copied(expr)
        strict = boolean_operator(binding, name[0], exprs, nodes, place)
        equal = boolean_operator(binding, "=", exprs, nodes, place)
        tail = Logical(BoolOp.AND, (equal, result), BOOL)
        result = Logical(BoolOp.OR, (strict, tail), BOOL)
    return result


# --- IN ----------------------------------------------------------------------------------------


def _in(binding: Binding, scope: Scope, node: Node) -> Expr:
    name = _name(binding, node)
    negated = name == "<>"
    if is_a(node.lexpr, ast.RowExpr):
        alike = AlikeComparisons()
        parts: list[Expr] = []
        for item in node.rexpr:
            part = alike.row(node, item)
            if part is None:
                part = _rows_in(binding, scope, name, node.lexpr, item, node.location)
                alike.note_row(node, item, part)
            parts.append(part)
        op = BoolOp.AND if negated else BoolOp.OR
        return connect_conditions(op, conditions_as_rows(op, parts))
    left = binding.expression(scope, node.lexpr)
    listed = long_constant_list(
        node.rexpr,
        lambda nodes: _in_list(
            binding,
            name,
            (left, node.lexpr),
            [_beside(binding, scope, left, item) for item in nodes],
            [*nodes],
            node.location,
        ),
    )
    if listed is not None:
        return listed
    items = [_beside(binding, scope, left, item) for item in node.rexpr]
    return _in_list(binding, name, (left, node.lexpr), items, list(node.rexpr), node.location)


def _rows_in(binding: Binding, scope: Scope, name: str, left: Node, item: Node, place: int) -> Expr:
    if not is_a(item, ast.RowExpr):
        raise not_supported("comparing a row with something else", node_position(item))
    return _rows(binding, scope, name, left, item, place)


def _in_list(
    binding: Binding,
    name: str,
    subject: tuple[Expr, Node],
    items: list[Expr],
    nodes: list[Node],
    place: int,
) -> Expr:
    """Constants are compared by their common type, as one list; columns one by one
    (transformAExprIn).
    """
    left, left_node = subject
    plain = [index for index, item in enumerate(nodes) if not _has_column(item)]
    parts: list[Expr] = []
    rest = list(range(len(items)))
    if len(plain) > 1:
        chosen = [items[index] for index in plain]
        chosen_nodes = [nodes[index] for index in plain]
        common = select_common_type([left, *chosen], [left_node, *chosen_nodes], None)
        if common is not None:
            parts.append(_list(binding, name, subject, chosen, chosen_nodes, common, place))
            alone = set(plain)
            rest = [index for index in rest if index not in alone]
    for index in rest:
        exprs, pair = [left, items[index]], [left_node, nodes[index]]
        parts.append(boolean_operator(binding, name, exprs, pair, place))
    return connect_conditions(BoolOp.AND if name == "<>" else BoolOp.OR, parts)


def _list(
    binding: Binding,
    name: str,
    subject: tuple[Expr, Node],
    items: list[Expr],
    nodes: list[Node],
    common: SqlType,
    place: int,
) -> Expr:
    left, left_node = subject
    merged_collation(binding, [left, *items])
    for expr in (left, *items):
        check_record_keys(expr.type)
    converted = [
        convert_common(binding, item, node, common.bare(), "IN")
        for item, node in zip(items, nodes, strict=True)
    ]
    try:
        choice = choose_operator(name, (left.type.name, common.name))
    except AmbiguousOverload:
        choice = None
    if choice is None:
        shown = f"{format_type(left.type.bare())} {name} {format_type(common.bare())}"
        raise undefined_function(shown, offset_to_position(place), operator=True)
    left = coerce_implicitly(binding, left, left_node, SqlType(choice.args[0]))
    if choice.args[0] != choice.args[1] or choice.args[1] != common.name:
        target = SqlType(choice.args[1])
        converted = [
            coerce_implicitly(binding, item, node, target)
            for item, node in zip(converted, nodes, strict=True)
        ]
    exprs, _ = to_common_type(binding, [left, *converted], [left_node, *nodes], "IN")
    left, *items = map(trim_bpchar, exprs)
    return InList(left, packed_items(items), name == "<>", BOOL)


def _has_column(node: Node) -> bool:
    """Whether an item of IN is a Var in PostgreSQL's sense: contain_vars_of_level 0."""
    match node:
        case ast.A_Const() | ast.ParamRef():
            return False
        case ast.ColumnRef():
            return True
        case tuple():
            return any(map(_has_column, node))
        case ast.Node():
            return any(
                _has_column(getattr(node, name)) for name in node if name not in ("location",)
            )
        case _:
            return False


# --- the other kinds ---------------------------------------------------------------------------


def _any_all(binding: Binding, scope: Scope, node: Node) -> Expr:
    left = binding.expression(scope, node.lexpr)
    return any_all_of_array(
        binding, _name(binding, node), left, binding.expression(scope, node.rexpr), node
    )


def _distinct(binding: Binding, scope: Scope, node: Node) -> Expr:
    negated = node.kind == A_Expr_Kind.AEXPR_NOT_DISTINCT
    left_node, right_node = node.lexpr, node.rexpr
    if is_a(left_node, ast.RowExpr) and is_a(right_node, ast.RowExpr):
        return _distinct_rows(binding, scope, node)
    whole = whole_row_equality(binding, scope, node, equal=negated, null_safe=True)
    if whole is not None:
        return whole
    for one, other in ((right_node, left_node), (left_node, right_node)):
        if is_a(one, ast.A_Const) and one.isnull:
            test = Test.IS_NULL if negated else Test.IS_NOT_NULL
            # Of a row it is not the columns that are asked.
            value = whole_row_presence(binding, scope, other) or binding.expression(scope, other)
            return IsTest(test, value, BOOL)
    left = binding.expression(scope, left_node)
    right = binding.expression(scope, right_node)
    equal = boolean_operator(binding, "=", [left, right], [left_node, right_node], node.location)
    left, right = _operands(equal)
    exprs, _ = to_common_type(binding, [left, right], [left_node, right_node], "DISTINCT")
    return Distinct(trim_bpchar(exprs[0]), trim_bpchar(exprs[1]), negated, BOOL)


def _distinct_rows(binding: Binding, scope: Scope, node: Node) -> Expr:
    """Rows are distinct if any of their columns are."""
    lefts, rights = (expanded_row_fields(binding, scope, row) for row in (node.lexpr, node.rexpr))
    if len(lefts) != len(rights):
        message = "unequal number of entries in row expressions"
        raise SqlError("42601", message, offset_to_position(node.location))
    negated = node.kind == A_Expr_Kind.AEXPR_NOT_DISTINCT
    parts: list[Expr] = []
    for a, b in zip(lefts, rights, strict=True):
        pair = [binding.expression(scope, a), binding.expression(scope, b)]
        equal = boolean_operator(binding, "=", pair, [a, b], node.location)
        exprs, _ = to_common_type(binding, list(_operands(equal)), [a, b], "DISTINCT")
        parts.append(Distinct(trim_bpchar(exprs[0]), trim_bpchar(exprs[1]), negated, BOOL))
    return connect_conditions(BoolOp.AND if negated else BoolOp.OR, parts)


def _operands(expr: Expr) -> tuple[Expr, Expr]:
    assert isinstance(expr, Call), "an operator yields a call"
    return expr.args[0], expr.args[1]


def _check_copied(expr: Expr) -> None:
    """54001 for what is written several times, and has grown by that already: parts double with
    each level, and planning goes through all of them.
    """
    if has_more_parts(expr, _COPIED_MAX):
        raise statement_too_complex()


def check_single_evaluation(subject: Expr, node: Node) -> None:
    """0A000 for a subject that PostgreSQL evaluates once and we cannot (`volatile_calls.py`)."""
    _check_copied(subject)
    if is_volatile_anywhere(subject) and not is_volatile_expression(subject):
        raise not_supported(
            "comparing a subquery that has a volatile function", node_position(node)
        )


def _nullif(binding: Binding, scope: Scope, node: Node) -> Expr:
    exprs = [binding.expression(scope, node.lexpr), binding.expression(scope, node.rexpr)]
    check_single_evaluation(exprs[0], node.lexpr)
    equal = boolean_operator(binding, "=", exprs, [node.lexpr, node.rexpr], node.location)
    # The result is the left side as the operator takes it, so that nullif('a', 1) is an integer.
    first = exprs[0]
    if isinstance(equal, Call) and first.type.name != equal.args[0].type.name:
        taken = equal.args[0]
        # What is compared has lost its blanks.
        blanked = taken.type.name == "bpchar"
        first = (
            coerce_implicitly(binding, first, node.lexpr, SqlType("bpchar")) if blanked else taken
        )
    return Case(((equal, Const(None, first.type)),), first, first.type)


_NOT_BETWEEN: Final = (A_Expr_Kind.AEXPR_NOT_BETWEEN, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM)


def _between(binding: Binding, scope: Scope, node: Node) -> Expr:
    low, high = node.rexpr
    kind = node.kind
    negated = kind in _NOT_BETWEEN
    symmetric = kind in (A_Expr_Kind.AEXPR_BETWEEN_SYM, A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM)
    subject = binding.expression(scope, node.lexpr)
    _check_copied(subject)
    bounds = [(_beside(binding, scope, subject, bound), bound) for bound in (low, high)]
    sides = [bounds, bounds[::-1]] if symmetric else [bounds]

    def again(expr: Expr, written: Node) -> Expr:
        # PostgreSQL binds and evaluates it for each of the comparisons: a parameter has got its
        # type in the one before.
        if expr.type.name == "unknown" or (written is node.lexpr and is_volatile_expression(expr)):
            return binding.expression(scope, written)
        return expr

    parts = [_one_between(binding, again, [(subject, node.lexpr), *side], node) for side in sides]
    return connect_conditions(BoolOp.AND if negated else BoolOp.OR, parts)


def _one_between(
    binding: Binding,
    again: Callable[[Expr, Node], Expr],
    parts: Sequence[tuple[Expr, Node]],
    node: Node,
) -> Expr:
    """The subject between two bounds."""
    subject, *bounds = parts
    negated = node.kind in _NOT_BETWEEN
    made: list[Expr] = []
    for name, bound in zip("<>" if negated else (">=", "<="), bounds, strict=True):
        exprs = [again(*subject), again(*bound)]
        made.append(boolean_operator(binding, name, exprs, [node.lexpr, bound[1]], node.location))
    return connect_conditions(BoolOp.OR if negated else BoolOp.AND, made)


def _case_condition(
    binding: Binding, _scope: Scope, subject: Expr, subject_node: Node, when: Node
) -> Expr:
    """`CASE subject WHEN value`: `subject = value`, at the position of WHEN."""
    value = binding.expression(_scope, when.expr)
    return boolean_operator(
        binding, "=", [subject, value], [subject_node, when.expr], when.location
    )


_KINDS: Final[dict[int, Callable[[Binding, Scope, Node], Expr]]] = {
    A_Expr_Kind.AEXPR_OP: _plain,
    A_Expr_Kind.AEXPR_OP_ANY: _any_all,
    A_Expr_Kind.AEXPR_OP_ALL: _any_all,
    A_Expr_Kind.AEXPR_DISTINCT: _distinct,
    A_Expr_Kind.AEXPR_NOT_DISTINCT: _distinct,
    A_Expr_Kind.AEXPR_NULLIF: _nullif,
    A_Expr_Kind.AEXPR_IN: _in,
    A_Expr_Kind.AEXPR_LIKE: _plain,
    A_Expr_Kind.AEXPR_ILIKE: _plain,
    A_Expr_Kind.AEXPR_SIMILAR: _plain,
    A_Expr_Kind.AEXPR_BETWEEN: _between,
    A_Expr_Kind.AEXPR_NOT_BETWEEN: _between,
    A_Expr_Kind.AEXPR_BETWEEN_SYM: _between,
    A_Expr_Kind.AEXPR_NOT_BETWEEN_SYM: _between,
}


def case_expression(binding: Binding, scope: Scope, node: Node) -> Expr:
    """CASE, in both forms."""
    subject: Expr | None = None
    if node.arg is not None:
        subject = binding.expression(scope, node.arg)
        check_single_evaluation(subject, node.arg)
        if subject.type.name == "unknown" and isinstance(subject, Const):
            subject = Const(subject.value, TEXT)
        elif subject.type.name == "unknown":
            subject = coerce_implicitly(binding, subject, node.arg, TEXT)
    conditions: list[Expr] = []
    results: list[Expr] = []
    alike = AlikeComparisons(is_on=len(node.args) >= ALIKE_MIN)
    for when in node.args:
        conditions.append(_when(binding, scope, node, subject, when, alike))
        results.append(binding.expression(scope, when.result))
    other_node = node.defresult if node.defresult is not None else ast.A_Const(isnull=True)
    otherwise = binding.expression(scope, other_node)
    nodes = [other_node, *(when.result for when in node.args)]
    exprs, type_ = to_common_type(binding, [otherwise, *results], nodes, "CASE")
    whens = packed_whens(tuple(zip(conditions, exprs[1:], strict=True)))
    return Case(whens, exprs[0], type_)


_EQUAL: Final = (ast.String("="),)


def _when(
    binding: Binding,
    scope: Scope,
    node: Node,
    subject: Expr | None,
    when: Node,
    alike: AlikeComparisons,
) -> Expr:
    if subject is None:
        made = alike.bound(when.expr)
        if made is None:
            made = to_boolean(binding, binding.expression(scope, when.expr), when.expr, "CASE/WHEN")
            alike.note(when.expr, made)
        return made
    made = alike.pair(_EQUAL, node.arg, when.expr)
    if made is None:
        made = _case_condition(binding, scope, subject, node.arg, when)
        alike.note_simple(_EQUAL, node.arg, when.expr, made)
    return made
