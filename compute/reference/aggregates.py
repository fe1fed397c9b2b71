"""Aggregate functions: fold the values of a group into one value.

INVARIANTS
  R1  floats are added in the order of the input (`float_sums.py`); all other aggregates are
      independent of it, unless they have an ORDER BY.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Final, TypeAlias

from compute.reference.functions import numbers
from compute.reference.functions.float_sums import DEVIATIONS, Deviation, last, running_fold
from compute.reference.functions.json_builders import (
    json_agg,
    json_agg_of_rows,
    json_object_agg,
    jsonb_agg,
    jsonb_object_agg,
)
from compute.reference.functions.ordering import ordering_key
from compute.reference.functions.powers import shown_decimals
from compute.reference.functions.statistics import STATISTICS
from sql.errors import SqlError
from sql.plan.nodes import Aggregate
from sql.types.division_scale import GROUP, SIGNIFICANT, estimated_weight
from sql.types.limits import check_text
from sql.types.numeric import of_cast
from sql.types.sql_type import SqlType, Value

Rows: TypeAlias = Sequence[tuple[Value, ...]]
"""The arguments of each row of the group that the aggregate sees."""
Folder: TypeAlias = Callable[[Rows], Value]


def folder(call: Aggregate) -> Folder | None:
    """What computes this aggregate, or None. NULLs, DISTINCT, FILTER and order are the caller's."""
    name, type_ = call.function.name, call.type
    if name == "count":
        return len
    if call.function.id in STATISTICS:
        return STATISTICS[call.function.id](call)
    if name in _JSON:
        return _or_null(_JSON[name](call))
    if (running := running_fold(name, call.args[0].type.name)) is not None:
        return _or_null(lambda rows: last(running, [_float(row[0]) for row in rows]))
    maker = _MAKERS.get(name)
    if maker is None or call.function.id == "array_agg(anyarray)":
        # An array of arrays has two dimensions.
        return None
    return _or_null(maker(call.args[0].type, type_))


def _float(value: Value) -> float:
    assert isinstance(value, float), "a float aggregate takes floats"
    return value


def _sum(_source: SqlType, target: SqlType) -> Folder:
    if target.name == "numeric":
        return lambda rows: numbers.fit(_total([_decimal(row[0]) for row in rows]), target)
    if target.name == "int8":
        return lambda rows: numbers.in_range(sum(_integer(row[0]) for row in rows), "int8")
    raise AssertionError("floats are summed up by `running_fold`")


def _total(values: Sequence[Decimal]) -> Decimal:
    return reduce(numbers.EXACT.add, values, Decimal(0))


def _average(source: SqlType, target: SqlType) -> Folder:
    return lambda rows: numbers.fit(
        numbers.average([_decimal(row[0]) for row in rows], source), target
    )


def _only_one(rows: Rows) -> Value:
    """Of what has no order, which PostgreSQL asks for when there are two."""
    if len(rows) > 1:
        message = "could not identify a comparison function for type json"
        raise SqlError("42883", message)
    return rows[0][0]


def _extreme(*, greatest: bool) -> "Callable[[SqlType, SqlType], Folder]":
    def make(source: SqlType, _target: SqlType) -> Folder:
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


def _fold_bits(combine: Callable[[int, int], int]) -> "Callable[[SqlType, SqlType], Folder]":
    return lambda _source, _target: lambda rows: reduce(combine, [_integer(row[0]) for row in rows])


def _string_agg(_source: SqlType, target: SqlType) -> Folder:
    """The delimiter of each row but the first stands before its value; NULL is nothing."""
    empty: str | bytes = b"" if target.name == "bytea" else ""

    def run(rows: Rows) -> Value:
        parts: list[str | bytes] = []
        length = 0
        for position, (value, delimiter) in enumerate(rows):
            if position and isinstance(delimiter, str | bytes):
                parts.append(delimiter)
            assert isinstance(value, str | bytes), "string_agg takes text or bytea"
            parts.append(value)
            length += len(value) + (len(delimiter) if isinstance(delimiter, str | bytes) else 0)
            check_text(length)
        return empty.join(parts)  # type: ignore[arg-type]

    return run


def _json_agg(fold: Callable[..., str], *, strict: bool = False) -> Callable[[Aggregate], Folder]:
    """`strict`: NULLs are left out."""

    def make(call: Aggregate) -> Folder:
        type_ = call.args[0].type

        def run(rows: Rows) -> Value:
            kept = [row[0] for row in rows if not (strict and row[0] is None)]
            return fold(kept, type_, rows[0][-1])

        return run

    return make


def _json_object_agg(
    fold: Callable[..., str], *, strict: bool = False, unique: bool = False
) -> Callable[[Aggregate], Folder]:
    def make(call: Aggregate) -> Folder:
        types = (call.args[0].type, call.args[1].type)

        def run(rows: Rows) -> Value:
            pairs = [(row[0], row[1]) for row in rows]
            return fold(pairs, types, rows[0][-1], strict=strict, unique=unique)

        return run

    return make


def _or_null(fold: Folder) -> Folder:
    return lambda rows: fold(rows) if rows else None


_JSON: Final[dict[str, Callable[[Aggregate], Folder]]] = {
    "json_agg": _json_agg(json_agg),
    "json_agg.rows": _json_agg(json_agg_of_rows),
    "jsonb_agg": _json_agg(jsonb_agg),
    "json_object_agg": _json_object_agg(json_object_agg),
    "jsonb_object_agg": _json_object_agg(jsonb_object_agg),
    "json_agg_strict": _json_agg(json_agg, strict=True),
    "jsonb_agg_strict": _json_agg(jsonb_agg, strict=True),
    **{
        f"{base}_object_agg{'_unique' if unique else ''}{'_strict' if strict else ''}": (
            _json_object_agg(fold, strict=strict, unique=unique)
        )
        for base, fold in (("json", json_object_agg), ("jsonb", jsonb_object_agg))
        for unique, strict in ((False, True), (True, False), (True, True))
    },
}


def _array_agg(_source: SqlType, _target: SqlType) -> Folder:
    return lambda rows: tuple([row[0] for row in rows])


def _deviation(kind: Deviation) -> "Callable[[SqlType, SqlType], Folder]":
    def make(source: SqlType, target: SqlType) -> Folder:
        def run(rows: Rows) -> Value:
            if kind.sample and len(rows) < 2:
                return None
            divisor = len(rows) - kind.sample
            values = [_decimal(row[0]) for row in rows]
            found = _exact_deviation(values, divisor, source, root=kind.root)
            return numbers.fit(found, target)

        return run

    return make


def _exact_deviation(
    values: Sequence[Decimal], divisor: int, source: SqlType, *, root: bool
) -> Decimal:
    """numeric_stddev_internal: the variance has a quotient's decimals, and its root as many."""
    exact, count = numbers.EXACT, Decimal(len(values))
    squares = _total([exact.multiply(value, value) for value in values])
    total = _total(values)
    spread = exact.subtract(exact.multiply(count, squares), exact.multiply(total, total))
    if not spread:
        return Decimal(0)
    pairs = exact.multiply(count, Decimal(divisor))
    shown = max(shown_decimals(value, of_cast(source)) for value in values)
    decimals = max(SIGNIFICANT - GROUP * estimated_weight(spread, pairs), 2 * shown)
    unit = Decimal(1).scaleb(-decimals)
    variance = exact.divide(spread, pairs).quantize(unit, context=exact)
    return exact.sqrt(variance).quantize(unit, context=exact) if root else variance


def _decimal(value: Value) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(_integer(value))


def _integer(value: Value) -> int:
    assert isinstance(value, int), "an integer aggregate takes integers"
    return value


def _all(_source: SqlType, _target: SqlType) -> Folder:
    return lambda rows: all(row[0] for row in rows)


def _any(_source: SqlType, _target: SqlType) -> Folder:
    return lambda rows: any(row[0] for row in rows)


_MAKERS: Final[dict[str, Callable[[SqlType, SqlType], Folder]]] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme(greatest=False),
    "max": _extreme(greatest=True),
    "bool_and": _all,
    "every": _all,
    "bool_or": _any,
    "bit_and": _fold_bits(lambda a, b: a & b),
    "bit_or": _fold_bits(lambda a, b: a | b),
    "bit_xor": _fold_bits(lambda a, b: a ^ b),
    "string_agg": _string_agg,
    "array_agg": _array_agg,
    **{name: _deviation(kind) for name, kind in DEVIATIONS.items()},
}
