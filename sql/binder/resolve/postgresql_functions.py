"""Tell calls that PostgreSQL 18 knows and Meridian lacks from those that are undefined in both.

A call that matches no overload of our function table is unsupported (0A000) if PostgreSQL has one,
and undefined (42883) if PostgreSQL has none either.

INVARIANTS
  R1  no overload is chosen here. Ambiguity does not matter for a call that cannot run anyway.
"""

from collections.abc import Sequence
from typing import Final

from sql.binder.resolve.coercion import IMPLICIT, can_coerce
from sql.binder.resolve.overloads import polymorphic_elements
from sql.functions.postgresql_names import postgresql_names
from sql.types.sql_type import TYPE_OIDS

_ANYTHING: Final = frozenset(
    {"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}
)


def has_function(name: str, args: Sequence[str], *, variadic: bool = False) -> bool:
    """Whether some function or aggregate takes arguments of these types.

    `variadic`: the last one is marked VARIADIC; all variadic functions are in our own table.
    """
    return any(
        _takes(overload, args) and not (variadic and overload[-1:] and overload[-1].endswith("*"))
        for overload in postgresql_names().functions.get(name, ())
    )


def has_operator(name: str, args: Sequence[str]) -> bool:
    """Whether some binary or prefix operator takes these types."""
    return any(_takes(overload, args) for overload in postgresql_names().operators.get(name, ()))


def is_aggregate(name: str) -> bool:
    """Whether an aggregate has that name."""
    return name in postgresql_names().aggregates


def is_plain_function(name: str) -> bool:
    """Whether functions, but no aggregate, have that name."""
    known = postgresql_names()
    return name in known.functions and name not in known.aggregates


def has_cast(source: str, target: str) -> bool:
    """Whether there is a cast between the two types."""
    return (target,) in postgresql_names().casts.get(source, ())


def _takes(overload: tuple[str, ...], args: Sequence[str]) -> bool:
    needed = [want for want in overload if not want.endswith("?")]
    repeats = bool(overload) and overload[-1].endswith("*")
    if len(args) < len(needed) or (len(args) > len(overload) and not repeats):
        return False
    wanted = [*overload, *[overload[-1]] * (len(args) - len(overload))] if overload else []
    plain = [want.rstrip("?*") for want in wanted]
    fitting = all(_fits(have, want) for have, want in zip(args, plain, strict=False))
    return fitting and polymorphic_elements(plain, args) is not None


def _fits(have: str, want: str) -> bool:
    if have in ("unknown", want) or want in _ANYTHING:
        return True
    if want in ("anyarray", "anycompatiblearray"):
        return have.startswith("_")
    return want in TYPE_OIDS and can_coerce(have, want, IMPLICIT)
