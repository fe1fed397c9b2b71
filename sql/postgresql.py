"""What PostgreSQL 18 has: names and argument types of its functions, operators, casts, and its
settings.

A call that our own table has no overload for is refused (0A000) where PostgreSQL has one, and does
not exist (42883) where PostgreSQL says the same.

    name: type,type;type    overloads; a type with `?` may be left out, with `*` it repeats
    name +: type            `+`: an aggregate, `$`: an operator
    type =: type;type       `=`: casts
    name ^:                 `^`: a setting

INVARIANTS
  R1  nothing is chosen here: whether several overloads would be ambiguous does not matter for what
      cannot run anyway.
  R2  the file is read when the first unknown call comes, not at the start.

`sql/data/postgresql.txt` is written by `tests/sql/postgresql_names.py`, from a real server.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from sql.coerce import IMPLICIT, can_coerce
from sql.overloads import polymorphic_elements
from sql.types import OIDS

_FILE: Final = Path(__file__).parent / "data" / "postgresql.txt"
_ANYTHING: Final = frozenset(
    {"any", "anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray"}
)


@dataclass(frozen=True, slots=True)
class _Names:
    functions: dict[str, list[tuple[str, ...]]]
    aggregates: frozenset[str]
    operators: dict[str, list[tuple[str, ...]]]
    casts: dict[str, list[tuple[str, ...]]]
    settings: dict[str, list[tuple[str, ...]]]


def has_function(name: str, args: Sequence[str], *, variadic: bool = False) -> bool:
    """Whether some function or aggregate takes arguments of these types. `variadic`: the last is
    marked so; all functions whose last argument repeats are in our own table.
    """
    return any(
        _takes(overload, args) and not (variadic and overload[-1:] and overload[-1].endswith("*"))
        for overload in _names().functions.get(name, ())
    )


def has_operator(name: str, args: Sequence[str]) -> bool:
    """Whether some operator stands between (or before) arguments of these types."""
    return any(_takes(overload, args) for overload in _names().operators.get(name, ()))


def is_aggregate(name: str) -> bool:
    """Whether that is the name of an aggregate."""
    return name in _names().aggregates


def has_cast(source: str, target: str) -> bool:
    """Whether there is a cast between the two types."""
    return (target,) in _names().casts.get(source, ())


def has_setting(name: str) -> bool:
    """Whether SET knows that name."""
    return name.lower() in _names().settings


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
    return want in OIDS and can_coerce(have, want, IMPLICIT)


@cache
def _names() -> _Names:
    found = _Names({}, frozenset(), {}, {}, {})
    places = {"$": found.operators, "=": found.casts, "^": found.settings}
    aggregates: set[str] = set()
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            continue
        head, _, overloads = line.rpartition(": ")
        name, _, kind = head.partition(" ")
        places.get(kind, found.functions).setdefault(name, []).extend(
            tuple(types.split(",")) if types else () for types in overloads.split(";")
        )
        if kind == "+":
            aggregates.add(name)
    return replace(found, aggregates=frozenset(aggregates))
