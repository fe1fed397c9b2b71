"""The table of functions, operators, aggregates and casts: data files in `sql/data/`, loaded once.

One row is one overload. A row without a template for an engine does not run there (0A000).

INVARIANTS
  F1  `id` is unique: `name(argtypes)` for functions and aggregates, `left op right` for operators
      (`- int4` for a prefix one), `source::target` for casts.
  F2  a template only ever receives expressions that already have the declared argument types, with
      explicit casts, and yields exactly the declared result type.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class FunctionKind(StrEnum):
    """What a row is."""

    FUNCTION = "function"
    OPERATOR = "operator"
    AGGREGATE = "aggregate"
    CAST = "cast"


class CastContext(StrEnum):
    """Where a cast may be applied without being asked for (pg_cast.castcontext)."""

    IMPLICIT = "implicit"
    ASSIGNMENT = "assignment"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Function:
    """One overload. Types are typnames; `any`, `anyelement` and `anycompatible` are PostgreSQL's pseudo-types.

    `variadic`: the last argument type repeats. `strict`: NULL in, NULL out, without a call.
    `volatility`: `immutable`, `stable` or `volatile`. `context`: for casts. `spark`: the template, with
    `{0}`, `{1}` … for arguments, or None. `numeric`: name of the rule in `sql/numeric.py` that gives
    precision and scale of a numeric result, or None.
    """

    id: str
    name: str
    kind: FunctionKind
    args: tuple[str, ...]
    result: str
    strict: bool = True
    variadic: bool = False
    volatility: str = "immutable"
    context: CastContext | None = None
    spark: str | None = None
    numeric: str | None = None


def functions(name: str) -> Sequence[Function]:
    """All functions and aggregates of that name, in the order of the data files."""
    raise AssertionError("contract only")


def operators(name: str) -> Sequence[Function]:
    """All operators of that name, prefix ones included (one argument)."""
    raise AssertionError("contract only")


def cast(source: str, target: str) -> Function | None:
    """The cast between two different types, or None."""
    raise AssertionError("contract only")


def function_by_id(id_: str) -> Function:
    """The row with this id (F1)."""
    raise AssertionError("contract only")
