"""Comparison operators (`=`, `<>`, `<`, `<=`, `>`, `>=`) of all types that have them."""

import math
import operator
from collections.abc import Sequence
from itertools import product
from typing import Final

from compute.reference.functions.datetime import as_instant, date_to_timestamp, interval_length
from compute.reference.functions.ordering import ordering_key
from compute.reference.registry import Function, Maker, implements, makes
from sql.plan.nodes import Call
from sql.types.sql_type import Value

_COMPARISONS: Final[dict[str, Function]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ALONE: Final = (
    "oid", "numeric", "text", "bpchar", "char", "name", "bool", "bytea", "uuid", "date",
    "timestamp", "timestamptz", "time", "timetz", "record",
)  # fmt: skip
"""Types whose values compare as Python's do, with their own type."""
_AS_PYTHON: Final = (
    *[(type_, type_) for type_ in _ALONE],
    *product(("int2", "int4", "int8"), repeat=2),
    ("name", "text"),
    ("text", "name"),
)
_FLOATS: Final = tuple(product(("float4", "float8"), repeat=2))
_BY_KEY: Final = tuple((type_, type_) for type_ in ("anyarray", "jsonb", "anyenum"))
_DATES: Final = (("date", "timestamp"), ("timestamp", "date"))
_INSTANTS: Final = (
    ("date", "timestamptz"),
    ("timestamp", "timestamptz"),
    ("timestamptz", "date"),
    ("timestamptz", "timestamp"),
)


def _of_floats(compare: Function) -> Function:
    """NaN equals itself and is greater than everything else."""

    def run(a: float, b: float) -> Value:
        if math.isnan(a) or math.isnan(b):
            return compare(math.isnan(a), math.isnan(b))
        return compare(a, b)

    return run


def _of_intervals(compare: Function) -> Function:
    return lambda a, b: compare(interval_length(a), interval_length(b))


def _by_key(compare: Function) -> Maker:
    def make(call: Call) -> Function:
        key = ordering_key(call.args[0].type)
        return lambda a, b: compare(key(a), key(b))

    return make


def _of_instants(compare: Function) -> Maker:
    def make(call: Call) -> Function:
        left, right = call.args[0].type, call.args[1].type
        return lambda a, b, zone: compare(as_instant(a, left, zone), as_instant(b, right, zone))

    return make


def _with_midnight(compare: Function) -> Maker:
    def make(call: Call) -> Function:
        if call.args[0].type.name == "date":
            return lambda a, b: compare(date_to_timestamp(a), b)
        return lambda a, b: compare(a, date_to_timestamp(b))

    return make


def _register(sign: str, compare: Function) -> None:
    def ids(pairs: Sequence[tuple[str, ...]]) -> Sequence[str]:
        return [f" {sign} ".join(pair) for pair in pairs]

    implements(*ids(_AS_PYTHON))(compare)
    implements(*ids(_FLOATS))(_of_floats(compare))
    implements(*ids([("interval", "interval")]))(_of_intervals(compare))
    makes(*ids(_BY_KEY))(_by_key(compare))
    makes(*ids(_INSTANTS))(_of_instants(compare))
    makes(*ids(_DATES))(_with_midnight(compare))


for _sign, _compare in _COMPARISONS.items():
    _register(_sign, _compare)
