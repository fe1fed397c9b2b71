"""Bind a call of an operator, function or aggregate: overload, conversions, result type."""

from collections.abc import Sequence
from typing import Final

from sql.binder.collation import Collation
from sql.binder.expressions.catalog_casts import with_catalog_type
from sql.binder.resolve import postgresql_functions as postgresql
from sql.binder.resolve.catalog_lookup import qualifying_schema
from sql.binder.resolve.coercion import (
    EXPLICIT,
    coerce,
    coerce_implicitly,
    is_exact,
    rescale_numeric,
    zone_arguments,
)
from sql.binder.resolve.collations import ascii_rewrite, merged_collation, set_collation
from sql.binder.resolve.function_choice import operator_signature, undetermined_type
from sql.binder.resolve.overloads import (
    AmbiguousOverload,
    OverloadChoice,
    UndeterminedType,
    choose_operator,
)
from sql.binder.resolve.reg_literals import fold_reg_call
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.resolve.styled_arguments import styled_arguments
from sql.binder.resolve.unified_types import common_numeric
from sql.binder.state import Binding
from sql.errors import SqlError, ambiguous_function, not_supported, undefined_function
from sql.functions.table import ARRAY_FORM, Function, FunctionKind
from sql.parser.syntax import Node, node_position, offset_to_position, string_values
from sql.plan.bpchar_calls import polymorphic_bpchar_call, trim_bpchar_arguments
from sql.plan.nodes import Call, ColumnId, Const, Expr, is_null
from sql.types import numeric
from sql.types.comparability import check_element_comparison
from sql.types.records import check_records_comparable, mixed_record_type
from sql.types.sql_type import (
    REG_TYPES,
    TEXT,
    TYPE_OIDS,
    SqlType,
    array_of,
    format_type,
    is_reg_array,
    plain_type,
)

TYPES_BY_NAME: Final = {name: plain_type(name) for name in TYPE_OIDS}
_TEXTS: Final = frozenset({"text", "json", "jsonb"})
_ROWS: Final = frozenset({("record", "record"), ("_record", "_record")})
_PRINTED: Final = frozenset({"any", "anyelement", "anynonarray"})
"""Arguments of these types are there to be printed, in a function that makes text."""


def type_by_name(name: str) -> SqlType:
    """The built-in or user-defined type of that internal name."""
    return TYPES_BY_NAME.get(name) or plain_type(name)


def operator_name(binding: Binding, names: Sequence[Node], place: int | None) -> str:
    """The operator of `OPERATOR(schema.+)`; users define none. Raises 42883 and similar errors."""
    parts = string_values(names)
    if qualifying_schema(binding, parts, place) not in (None, "pg_catalog"):
        raise undefined_function(".".join(parts), offset_to_position(place), operator=True)
    return parts[-1]


def operator(
    binding: Binding,
    name: str,
    exprs: Sequence[Expr],
    nodes: Sequence[Node],
    place: int | None,
) -> Expr:
    """`left name right`, or `name right` (make_op). 42883 and 42725 at the operator."""
    types = tuple([expr.type.name for expr in exprs])
    if "unknown" in types and len(exprs) == 2:
        left, right = exprs
        exprs = [
            with_catalog_type(binding, left, nodes[0], right),
            with_catalog_type(binding, right, nodes[1], left),
        ]
        types = tuple([expr.type.name for expr in exprs])
    try:
        choice = choose_operator(name, types)
    except AmbiguousOverload:
        shown = operator_signature(name, exprs)
        raise ambiguous_function(shown, offset_to_position(place), operator=True) from None
    except UndeterminedType:
        raise undetermined_type() from None
    if choice is None:
        shown = operator_signature(name, exprs)
        if postgresql.has_operator(name, types):
            raise not_supported(f"the operator {shown}", offset_to_position(place))
        raise undefined_function(
            shown, offset_to_position(place), operator=True, prefix=len(exprs) == 1
        )
    if types in _ROWS:
        check_records_comparable(exprs[0].type, exprs[1].type)
    return apply_overload(binding, choice, exprs, nodes)


def apply_overload(
    binding: Binding, choice: OverloadChoice, exprs: Sequence[Expr], nodes: Sequence[Node]
) -> Expr:
    """A call of the chosen overload with its arguments converted."""
    collation = merged_collation(binding, exprs)
    return set_collation(binding, _applied(binding, choice, exprs, nodes, collation), collation)


def _applied(
    binding: Binding,
    choice: OverloadChoice,
    exprs: Sequence[Expr],
    nodes: Sequence[Node],
    collation: Collation | None,
) -> Expr:
    row = choice.function
    args = trim_bpchar_arguments(row, converted_arguments(binding, choice, exprs, nodes))
    args = styled_arguments(binding, row, args, choice.result)
    rewrite = ascii_rewrite(row, args, collation)
    if rewrite is not None:
        return inline_sql_function(binding, rewrite, args)
    if row.rewrite is not None:
        if row.strict and row.kind is FunctionKind.FUNCTION and any(map(is_null, args)):
            # Here, for what stands for the call may look at another argument first.
            return Const(None, type_by_name(choice.result))
        return fold_reg_call(binding, row, args) or inline_sql_function(binding, row.rewrite, args)
    if row.numeric is None:
        args, type_ = polymorphic_call(binding, choice, args)
    else:
        args, type_, _ = numeric_call(binding, row, args, choice.result)
    instance = binding.new_id() if yields_value_per_call(row) else ColumnId(0)
    return Call(row, (*args, *zone_arguments(binding, row)), type_, instance)


def refuse_aggregate_forms(node: Node, name: str) -> None:
    """42809 for aggregate-only syntax in the call of a plain function."""
    forms = (
        (node.agg_star, f"{name}(*) specified, but {name} is not an aggregate function"),
        (node.agg_distinct, f"DISTINCT specified, but {name} is not an aggregate function"),
        (node.agg_order, f"ORDER BY specified, but {name} is not an aggregate function"),
        (node.agg_filter, f"FILTER specified, but {name} is not an aggregate function"),
    )
    for used, message in forms:
        if used:
            raise SqlError("42809", message, offset_to_position(node.location))


def yields_value_per_call(row: Function) -> bool:
    """Whether each call returns a value of its own, as random() does.

    Some functions are marked volatile only because they may fail.
    """
    return row.volatility == "volatile" and not row.name.startswith(("meridian_", "pg_"))


def converted_arguments(
    binding: Binding, choice: OverloadChoice, exprs: Sequence[Expr], nodes: Sequence[Node]
) -> tuple[Expr, ...]:
    """The arguments, converted to the overload's parameter types."""
    args: list[Expr] = []
    for expr, node, want in zip(exprs, nodes, choice.args, strict=True):
        if want == "any":
            # An untyped parameter stays so, which is 42P18 in the end, as in PostgreSQL.
            literal = isinstance(expr, Const) and expr.type.name == "unknown"
            args.append(coerce_implicitly(binding, expr, node, TEXT) if literal else expr)
        else:
            args.append(coerce_implicitly(binding, expr, node, type_by_name(want)))
    if choice.result not in _TEXTS:
        return tuple(args)
    row = choice.function
    declared = [*row.args, *[row.args[-1]] * (len(args) - len(row.args))] if row.args else []
    return tuple(
        [
            _shown(binding, arg, node, row, name)
            for arg, node, name in zip(args, nodes, declared, strict=True)
        ]
    )


def _shown(binding: Binding, arg: Expr, node: Node, row: Function, declared: str) -> Expr:
    """An argument as its text, if that is not the same to everybody: what is shown as a name is one
    in texts and documents that are made of it, too, and an instant is shown in the session's zone.
    """
    type_ = arg.type
    if type_.name in REG_TYPES or is_reg_array(type_):
        return reg_value_as_text(binding, arg, node)
    # A row with a zone sees to it itself, and documents have instants in a form of their own.
    if declared not in _PRINTED or row.zone or row.result != "text" or row.rewrite is not None:
        return arg
    if (type_.element or type_).name != "timestamptz":
        return arg
    items = type_.element is not None and row.name.endswith(ARRAY_FORM)
    return coerce(binding, arg, node, array_of(TEXT) if items else TEXT, EXPLICIT) or arg


def reg_value_as_text(binding: Binding, arg: Expr, node: Node) -> Expr:
    """A value of a reg type, or an array of them, as JSON displays it: by name."""
    if is_reg_array(arg.type):
        return coerce(binding, arg, node, array_of(TEXT), EXPLICIT) or arg
    if arg.type.name not in REG_TYPES:
        return arg
    return coerce(binding, arg, node, TEXT, EXPLICIT) or arg


def polymorphic_call(
    binding: Binding, choice: OverloadChoice, args: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], SqlType]:
    """The arguments and the result type of a function with pseudo-types.

    Numerics get one precision and scale, a bpchar its width. Only a cast, or an internal function
    that is part of one, passes a modifier on.
    """
    row, type_ = choice.function, type_by_name(choice.result)
    if not any(map(is_null, args)):
        check_element_comparison(row.name, [arg.type for arg in args])
    declared = [*row.args, *[row.args[-1]] * (len(args) - len(row.args))] if row.args else []
    alike = [
        index
        for index, name in enumerate(declared)
        if name.startswith("any") and name != "any" and "numeric" in args[index].type.name
    ]
    computed = row.kind is not FunctionKind.CAST and not row.internal
    if not alike:
        if type_.name in ("record", "_record"):
            return args, _record_result(declared, args, type_)
        args, type_ = polymorphic_bpchar_call(row, declared, args, type_)
        return args, type_.bare() if computed else type_
    there = [index for index in alike if not is_null(args[index])] or alike
    common = numeric.unify_numeric_types(
        [args[index].type.element or args[index].type for index in there]
    )
    shaped = list(args)
    for index in alike:
        array = args[index].type.element is not None
        shaped[index] = rescale_numeric(binding, args[index], array_of(common) if array else common)
    if row.result.startswith("any"):
        type_ = array_of(common) if choice.result.startswith("_") else common
    return tuple(shaped), type_.bare() if computed else type_


def _record_result(declared: Sequence[str], args: Sequence[Expr], type_: SqlType) -> SqlType:
    """The type of rows, or an array of them, that a function makes of such arguments."""
    rows = [
        arg.type.element or arg.type
        for name, arg in zip(declared, args, strict=False)
        if name.startswith("any") and name != "any" and not is_null(arg)
    ]
    if not rows:
        return type_
    found = rows[0] if len(set(rows)) == 1 else mixed_record_type(rows[0], rows)
    return array_of(found) if type_.element is not None else found


def numeric_call(
    binding: Binding, row: Function, args: tuple[Expr, ...], result: str
) -> tuple[tuple[Expr, ...], SqlType, bool]:
    """Apply the function's numeric rule: converted arguments, result type, and whether it is
    exact.
    """
    assert row.numeric is not None, f"no numeric rule: {row.id}"
    types = _shapes(args) if row.numeric == "unify" else [arg.type for arg in args]
    operands = [
        numeric.NumericOperand(type_, is_exact(binding, arg), _integer_constant(arg), _word(arg))
        for arg, type_ in zip(args, types, strict=True)
    ]
    outcome = numeric.determine_numeric_result(row.numeric, operands)
    if outcome.operands:
        args = tuple(
            [
                arg if shape is None else rescale_numeric(binding, arg, shape)
                for arg, shape in zip(args, outcome.operands, strict=True)
            ]
        )
    type_ = outcome.result if result == "numeric" else TYPES_BY_NAME[result]
    return args, type_, outcome.exact


def _shapes(args: Sequence[Expr]) -> list[SqlType]:
    """The types of arguments that get one shape; a NULL has that of the others (T1)."""
    numerics = [arg for arg in args if arg.type.name == "numeric"]
    if not any(map(is_null, numerics)):
        return [arg.type for arg in args]
    common = common_numeric(numerics)
    return [common if arg in numerics and is_null(arg) else arg.type for arg in args]


def _integer_constant(expr: Expr) -> int | None:
    if isinstance(expr, Const) and isinstance(expr.value, int):
        return expr.value
    return None


def _word(expr: Expr) -> str | None:
    if isinstance(expr, Const) and isinstance(expr.value, str):
        return expr.value
    return None


def check_variadic_array(
    choice: OverloadChoice, exprs: Sequence[Expr], nodes: Sequence[Node]
) -> None:
    """42804 for a VARIADIC argument of a parameter "any" that is not an array."""
    row = choice.function
    anything = row.name.endswith(ARRAY_FORM) and row.args[-1] == "any"
    if anything and exprs[-1].type.element is None:
        raise SqlError("42804", "VARIADIC argument must be an array", node_position(nodes[-1]))


def cast_by_name(
    binding: Binding, name: str, exprs: Sequence[Expr], nodes: Sequence[Node]
) -> Expr | None:
    """`int4('5')`: a function call that is a cast, when no function matches exactly
    (func_get_detail).
    """
    if len(exprs) != 1 or name not in TYPE_OIDS or name in ("unknown", "void"):
        return None
    if exprs[0].type.name == "record" and TYPES_BY_NAME[name].category == "S":
        return None
    return coerce(binding, exprs[0], nodes[0], TYPES_BY_NAME[name], EXPLICIT)


def cannot_cast(source: SqlType, target: SqlType, place: int | None) -> SqlError:
    """42846 for an explicit cast that does not exist."""
    names = f"{format_type(SqlType(source.name))} to {format_type(SqlType(target.name))}"
    by_text = "S" in (source.category, target.category)
    if by_text or postgresql.has_cast(source.name, target.name):
        return not_supported(f"the cast from {names}", place)
    return SqlError("42846", f"cannot cast type {names}", place)
