"""Aggregate functions: fold the values of a group into one value.

INVARIANTS
  R1  floats are added in the order of the input (`float_sums.py`); all other aggregates are
      independent of it, unless they have an ORDER BY.
"""

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Final, NamedTuple

from compute.reference.decimals import EXACT, fit_to_numeric_type
from compute.reference.functions import statistics
from compute.reference.functions.float_sums import DEVIATIONS, Deviation, final_value, running_fold
from compute.reference.functions.json_builders import (
    json_agg,
    json_agg_of_rows,
    json_object_agg,
    jsonb_agg,
    jsonb_object_agg,
)
from compute.reference.functions.numbers import average, in_range
from compute.reference.functions.ordering import ordering_key
from compute.reference.functions.powers import shown_decimals
from compute.reference.registry import AGGREGATES, AggregateFold, FolderMaker, Rows, folds
from sql.errors import SqlError
from sql.plan.nodes import Aggregate
from sql.types.division_scale import DIGITS_PER_GROUP, SIGNIFICANT_DIGITS, estimated_weight
from sql.types.limits import check_text_length
from sql.types.numeric import numeric_cast_type
from sql.types.sql_type import SqlType, Value

REGISTERING: Final = (statistics,)
"""Other modules that register aggregates."""
_INTEGERS: Final = ("int2", "int4", "int8")
_EXACT_NUMBERS: Final = (*_INTEGERS, "numeric")
_FLOATS: Final = ("float4", "float8")
_ORDERED: Final = (
    *_EXACT_NUMBERS, *_FLOATS, "oid", "text", "bpchar", "bytea", "date", "timestamp", "timestamptz",
    "time", "timetz", "interval", "anyarray", "anyenum",
)  # fmt: skip


def aggregate_fold(call: Aggregate) -> AggregateFold | None:
    """What computes this aggregate, or None. NULLs, DISTINCT, FILTER and order are the caller's."""
    maker = AGGREGATES.makers().get(call.function.id)
    return None if maker is None else maker(call)


def _null_of_none(maker: FolderMaker) -> FolderMaker:
    """The aggregate of no rows is NULL."""

    def make(call: Aggregate) -> AggregateFold:
        fold = maker(call)
        return lambda rows: fold(rows) if rows else None

    return make


@folds("count()", "count(any)")
def _count(_call: Aggregate) -> AggregateFold:
    return len


@folds(*[f"{name}({source})" for name in ("sum", "avg", *DEVIATIONS) for source in _FLOATS])
@_null_of_none
def _of_floats(call: Aggregate) -> AggregateFold:
    running = running_fold(call.function.name, call.args[0].type.name)
    assert running is not None, f"{call.function.id} is added up value by value (R1)"
    return lambda rows: final_value(running, [_float(row[0]) for row in rows])


def _float(value: Value) -> float:
    assert isinstance(value, float), "a float aggregate takes floats"
    return value


@folds("sum(int8)", "sum(numeric)")
@_null_of_none
def _sum(call: Aggregate) -> AggregateFold:
    return lambda rows: fit_to_numeric_type(_total([_decimal(row[0]) for row in rows]), call.type)


@folds("sum(int2)", "sum(int4)")
@_null_of_none
def _integer_sum(_call: Aggregate) -> AggregateFold:
    return lambda rows: in_range(sum(_integer(row[0]) for row in rows), "int8")


def _total(values: Sequence[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal(0))


@folds(*[f"avg({source})" for source in _EXACT_NUMBERS])
@_null_of_none
def _average(call: Aggregate) -> AggregateFold:
    source, target = call.args[0].type, call.type
    return lambda rows: fit_to_numeric_type(
        average([_decimal(row[0]) for row in rows], source), target
    )


def _only_one(rows: Rows) -> Value:
    """Of what has no order, which PostgreSQL asks for when there are two."""
    if len(rows) > 1:
        message = "could not identify a comparison function for type json"
        raise SqlError("42883", message)
    return rows[0][0]


def _extreme(*, greatest: bool) -> FolderMaker:
    def make(call: Aggregate) -> AggregateFold:
        source = call.args[0].type
        if source.name == "_json":
            return _only_one
        key = ordering_key(source)
        choose = max if greatest else min
        if source.name == "bpchar":
            # Of equal ones PostgreSQL keeps the first.
            return lambda rows: choose((row[0] for row in rows), key=key)
        # Of other equal values it keeps the last one.
        return lambda rows: choose((row[0] for row in reversed(rows)), key=key)

    return make


folds(*[f"min({source})" for source in _ORDERED])(_null_of_none(_extreme(greatest=False)))
folds(*[f"max({source})" for source in _ORDERED])(_null_of_none(_extreme(greatest=True)))


def _fold_bits(combine: Callable[[int, int], int]) -> FolderMaker:
    return lambda _call: lambda rows: reduce(combine, [_integer(row[0]) for row in rows])


for _name, _combine in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
    folds(*[f"bit_{_name}({source})" for source in _INTEGERS])(_null_of_none(_fold_bits(_combine)))


@folds("string_agg(text,text)", "string_agg(bytea,bytea)")
@_null_of_none
def _string_agg(call: Aggregate) -> AggregateFold:
    """The delimiter of each row but the first stands before its value; NULL is nothing."""
    empty: str | bytes = b"" if call.type.name == "bytea" else ""

    def run(rows: Rows) -> Value:
        parts: list[str | bytes] = []
        length = 0
        for position, (value, delimiter) in enumerate(rows):
            if position and isinstance(delimiter, str | bytes):
                parts.append(delimiter)
            assert isinstance(value, str | bytes), "string_agg takes text or bytea"
            parts.append(value)
            length += len(value) + (len(delimiter) if isinstance(delimiter, str | bytes) else 0)
            check_text_length(length)
        return empty.join(parts)  # type: ignore[arg-type]

    return run


def _json_agg(fold: Callable[..., str], *, strict: bool = False) -> FolderMaker:
    """`strict`: NULLs are left out."""

    def make(call: Aggregate) -> AggregateFold:
        type_ = call.args[0].type

        def run(rows: Rows) -> Value:
            kept = [row[0] for row in rows if not (strict and row[0] is None)]
            return fold(kept, type_, rows[0][-1])

        return run

    return _null_of_none(make)


def _json_object_agg(
    fold: Callable[..., str], *, strict: bool = False, unique: bool = False
) -> FolderMaker:
    def make(call: Aggregate) -> AggregateFold:
        types = (call.args[0].type, call.args[1].type)

        def run(rows: Rows) -> Value:
            pairs = [(row[0], row[1]) for row in rows]
            return fold(pairs, types, rows[0][-1], strict=strict, unique=unique)

        return run

    return _null_of_none(make)


folds("json_agg(anyelement)")(_json_agg(json_agg))
folds("json_agg.rows(json)")(_json_agg(json_agg_of_rows))
folds("json_agg_strict.rows(json)")(_json_agg(json_agg_of_rows, strict=True))
folds("jsonb_agg(anyelement)")(_json_agg(jsonb_agg))
folds("json_agg_strict(anyelement)")(_json_agg(json_agg, strict=True))
folds("jsonb_agg_strict(anyelement)")(_json_agg(jsonb_agg, strict=True))
for _base, _fold in (("json", json_object_agg), ("jsonb", jsonb_object_agg)):
    for _unique, _strict in product((False, True), repeat=2):
        _suffix = f"{'_unique' if _unique else ''}{'_strict' if _strict else ''}"
        folds(f"{_base}_object_agg{_suffix}(any,any)")(
            _json_object_agg(_fold, strict=_strict, unique=_unique)
        )


# An array of arrays has two dimensions: `array_agg(anyarray)` is not here.
@folds("array_agg(anynonarray)")
@_null_of_none
def _array_agg(_call: Aggregate) -> AggregateFold:
    return lambda rows: tuple([row[0] for row in rows])


def _deviation(kind: Deviation) -> FolderMaker:
    def make(call: Aggregate) -> AggregateFold:
        source, target = call.args[0].type, call.type

        def run(rows: Rows) -> Value:
            if kind.sample and len(rows) < 2:
                return None
            sums = _sums_of_squares(rows, numeric_cast_type(source))
            found = _exact_deviation(sums, len(rows) - kind.sample, root=kind.root)
            return fit_to_numeric_type(found, target)

        return run

    return make


for _deviation_name, _kind in DEVIATIONS.items():
    folds(*[f"{_deviation_name}({source})" for source in _EXACT_NUMBERS])(
        _null_of_none(_deviation(_kind))
    )


class _Sums(NamedTuple):
    """Of numbers: how many, their sum, that of their squares, and the most decimals shown."""

    rows: int
    total: Decimal
    squares: Decimal
    shown: int


def _sums_of_squares(rows: Rows, type_: SqlType) -> _Sums:
    """In one go and without lists, which all threads would wait for when they are freed."""
    if isinstance(rows[0][0], int):
        whole = whole_squares = 0
        for row in rows:
            number = _integer(row[0])
            whole += number
            whole_squares += number * number
        return _Sums(len(rows), Decimal(whole), Decimal(whole_squares), 0)
    total = squares = Decimal(0)
    shown = 0 if type_.trim else type_.scale or 0
    for row in rows:
        value = _decimal(row[0])
        total = EXACT.add(total, value)
        squares = EXACT.add(squares, EXACT.multiply(value, value))
        if type_.trim:
            shown = max(shown, shown_decimals(value, type_))
    return _Sums(len(rows), total, squares, shown)


def _exact_deviation(sums: _Sums, divisor: int, *, root: bool) -> Decimal:
    """numeric_stddev_internal: the variance has a quotient's decimals, and its root as many."""
    exact, count, total = EXACT, Decimal(sums.rows), sums.total
    spread = exact.subtract(exact.multiply(count, sums.squares), exact.multiply(total, total))
    if not spread:
        return Decimal(0)
    pairs = exact.multiply(count, Decimal(divisor))
    weight = estimated_weight(spread, pairs)
    decimals = max(SIGNIFICANT_DIGITS - DIGITS_PER_GROUP * weight, 2 * sums.shown)
    unit = Decimal(1).scaleb(-decimals)
    variance = exact.divide(spread, pairs).quantize(unit, context=exact)
    return exact.sqrt(variance).quantize(unit, context=exact) if root else variance


def _decimal(value: Value) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(_integer(value))


def _integer(value: Value) -> int:
    assert isinstance(value, int), "an integer aggregate takes integers"
    return value


@folds("bool_and(bool)", "every(bool)")
@_null_of_none
def _all(_call: Aggregate) -> AggregateFold:
    return lambda rows: all(row[0] for row in rows)


@folds("bool_or(bool)")
@_null_of_none
def _any(_call: Aggregate) -> AggregateFold:
    return lambda rows: any(row[0] for row in rows)
