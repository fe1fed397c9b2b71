"""Sort lists of rows, and compute aggregates over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import cast

from compute.reference.aggregates import aggregate_fold
from compute.reference.expressions import Evaluator, Frame, Row, compile_expression
from compute.reference.functions.ordering import Key, is_own_key, ordering_key, row_key
from compute.reference.registry import Rows
from sql.errors import not_supported
from sql.plan.nodes import Aggregate, Const, Expr, SortKey
from sql.types.sql_type import Value


def compile_expressions(exprs: Sequence[Expr], frame: Frame) -> list[Evaluator]:
    """Compile every expression."""
    return [compile_expression(expr, frame) for expr in exprs]


def compile_aggregate(call: Aggregate, frame: Frame) -> Callable[[Sequence[Row]], Value]:
    """Compile an aggregate call to a function of any list of rows."""
    fold = aggregate_fold(call)
    if fold is None:
        raise not_supported(f"aggregate {call.function.id}")
    args = compile_expressions(call.args, frame)
    condition = None if call.filter is None else compile_expression(call.filter, frame)
    order = compile_sort_keys((*call.order, *(_sorting(call.args) if call.distinct else ())), frame)
    key_of = row_key([arg.type for arg in call.args])

    def run(rows: Sequence[Row]) -> Value:
        if condition is not None:
            rows = [row for row in rows if condition(row) is True]
        inputs: Rows = [tuple([arg(row) for arg in args]) for row in sort_rows(list(rows), order)]
        if args and not call.function.nulls:
            # Every other aggregate of the table ignores NULLs of its first argument.
            inputs = [values for values in inputs if values[0] is not None]
        if call.distinct:
            inputs = list({key_of(values): values for values in reversed(inputs)}.values())[::-1]
        return fold(inputs)

    return run


def _sorting(args: Sequence[Expr]) -> list[SortKey]:
    """The keys that DISTINCT sorts by in PostgreSQL, behind the keys of an ORDER BY."""
    exprs = [arg for arg in args if not isinstance(arg, Const)]
    return [SortKey(expr, descending=False, nulls_first=False) for expr in exprs]


@dataclass(frozen=True, slots=True)
class CompiledKey:
    """One compiled entry of ORDER BY."""

    value: Evaluator
    key: Callable[[Value], Key]
    descending: bool
    nulls_first: bool


def compile_sort_keys(keys: Sequence[SortKey], frame: Frame) -> list[CompiledKey]:
    """Compile the entries of ORDER BY."""
    return [
        CompiledKey(
            compile_expression(key.expr, frame),
            ordering_key(key.expr.type),
            key.descending,
            key.nulls_first,
        )
        for key in keys
    ]


def sort_rows(rows: list[Row], keys: Sequence[CompiledKey]) -> list[Row]:
    """The rows in order. The sort is stable, so sorting by the last key first sorts by all."""
    for sort_key in reversed(keys):
        value = sort_key.value
        is_column = isinstance(value, itemgetter) and is_own_key(sort_key.key)
        if is_column and None not in map(value, rows):
            rows = sorted(
                rows, key=cast("Callable[[Row], Key]", value), reverse=sort_key.descending
            )
            continue
        decorated = [(sort_key.value(row), row) for row in rows]
        nulls = [row for value, row in decorated if value is None]
        others = [(sort_key.key(value), row) for value, row in decorated if value is not None]
        others.sort(key=lambda pair: pair[0], reverse=sort_key.descending)
        rest = [row for _, row in others]
        rows = nulls + rest if sort_key.nulls_first else rest + nulls
    return rows
