"""Choosing an overload: which function or operator a call means (manual chapter 10, parse_func.c,
parse_oper.c).

All functions here are pure over type names, so their answers are cached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from sql.coerce import IMPLICIT, can_coerce
from sql.functions import Function, functions, operators
from sql.types import CATEGORIES, PREFERRED

_PSEUDO: Final = frozenset(
    {"any", "anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray"}
)
_SAME: Final = frozenset({"anyelement", "anynonarray"})
_CACHE_SIZE: Final = 8192
Score: TypeAlias = Callable[[Function], int]


class Ambiguous(Exception):
    """Several overloads fit equally well (42725)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An overload and the types its arguments must have; `any` leaves an argument as it is."""

    function: Function
    args: tuple[str, ...]
    result: str


@lru_cache(maxsize=_CACHE_SIZE)
def choose_operator(name: str, args: tuple[str, ...]) -> Choice | None:
    """The operator for these argument types, or None. Raises Ambiguous."""
    candidates = [row for row in operators(name) if len(row.args) == len(args)]
    exact = _exact_operator(candidates, args)
    return _settled(exact, args) if exact is not None else _best(candidates, args)


def _exact_operator(candidates: Sequence[Function], args: tuple[str, ...]) -> Function | None:
    """An exact match; an unknown side is first taken to be of the other side's type."""
    wanted = args
    if len(args) == 2 and "unknown" in args and args != ("unknown", "unknown"):
        known = args[0] if args[1] == "unknown" else args[1]
        wanted = (known, known)
    return next((row for row in candidates if row.args == wanted), None)


@lru_cache(maxsize=_CACHE_SIZE)
def choose_function(name: str, args: tuple[str, ...]) -> Choice | None:
    """The function or aggregate for these argument types, or None. Raises Ambiguous."""
    candidates = [row for row in functions(name) if _takes(row, len(args))]
    exact = next((row for row in candidates if _expanded(row, len(args)) == args), None)
    return _settled(exact, args) if exact is not None else _best(candidates, args)


def _takes(row: Function, count: int) -> bool:
    return count >= len(row.args) if row.variadic else count == len(row.args)


def _expanded(row: Function, count: int) -> tuple[str, ...]:
    """The declared argument types, a variadic one repeated."""
    if not row.variadic:
        return row.args
    return row.args + (row.args[-1],) * (count - len(row.args))


def _best(candidates: Sequence[Function], args: tuple[str, ...]) -> Choice | None:
    fitting = [row for row in candidates if _fits(row, args)]
    if not fitting:
        return None
    if len(fitting) > 1:
        fitting = _preferred(fitting, args)
    if len(fitting) > 1:
        raise Ambiguous
    return _settled(fitting[0], args)


def _fits(row: Function, args: tuple[str, ...]) -> bool:
    wanted = _expanded(row, len(args))
    return (
        all(can_coerce(arg, want, IMPLICIT) for arg, want in zip(args, wanted, strict=True))
        and _polymorphic(row, args) is not None
    )


def _preferred(rows: list[Function], args: tuple[str, ...]) -> list[Function]:
    """func_select_candidate: exact matches, preferred types, then guesses for unknown literals."""
    count = len(args)
    known = [index for index in range(count) if args[index] != "unknown"]
    rows = _most(rows, lambda row: _exact_matches(row, args, known))
    if len(rows) == 1:
        return rows
    rows = _most(rows, lambda row: _preferred_matches(row, args, known))
    if len(rows) == 1 or len(known) == count:
        return rows
    rows = _by_category(rows, args)
    if len(rows) == 1 or not known:
        return rows
    kinds = {args[index] for index in known}
    if len(kinds) == 1:
        kind = kinds.pop()
        guess = tuple(kind for _ in args)
        fitting = [row for row in rows if _fits(row, guess)]
        if len(fitting) == 1:
            return fitting
    return rows


def _most(rows: list[Function], score: Score) -> list[Function]:
    best = max(score(row) for row in rows)
    return [row for row in rows if score(row) == best]


def _exact_matches(row: Function, args: tuple[str, ...], known: list[int]) -> int:
    wanted = _expanded(row, len(args))
    return sum(wanted[index] == args[index] for index in known)


def _preferred_matches(row: Function, args: tuple[str, ...], known: list[int]) -> int:
    wanted = _expanded(row, len(args))
    return sum(
        wanted[index] == args[index]
        or (wanted[index] in PREFERRED and CATEGORIES[wanted[index]] == CATEGORIES[args[index]])
        for index in known
    )


def _by_category(rows: list[Function], args: tuple[str, ...]) -> list[Function]:
    """At each unknown place take the string category if some candidate does, else the only one."""
    count = len(args)
    wanted = {row.id: _expanded(row, count) for row in rows}
    chosen: dict[int, tuple[str, bool]] = {}
    for index in range(count):
        if args[index] != "unknown":
            continue
        categories = {_category(wanted[row.id][index]) for row in rows}
        if "S" in categories:
            category = "S"
        elif len(categories) == 1:
            category = categories.pop()
        else:
            return rows
        preferred = any(
            wanted[row.id][index] in PREFERRED and _category(wanted[row.id][index]) == category
            for row in rows
        )
        chosen[index] = (category, preferred)
    kept = [
        row
        for row in rows
        if all(
            _category(wanted[row.id][index]) == category
            and (not preferred or wanted[row.id][index] in PREFERRED)
            for index, (category, preferred) in chosen.items()
        )
    ]
    return kept or rows


def _category(name: str) -> str:
    return "P" if name in _PSEUDO else CATEGORIES[name]


def _settled(row: Function, args: tuple[str, ...]) -> Choice:
    """Replace pseudo-types by the types of this call."""
    element = _polymorphic(row, args)
    wanted = tuple(
        want if want not in _PSEUDO or want == "any" else element or "text"
        for want in _expanded(row, len(args))
    )
    result = row.result if row.result not in _PSEUDO else element or "text"
    return Choice(row, wanted, result)


def _polymorphic(row: Function, args: tuple[str, ...]) -> str | None:
    """What anyelement or anycompatible stands for; `text` if nothing says; None if it cannot be."""
    wanted = _expanded(row, len(args))
    element: str | None = None
    for want, arg in zip(wanted, args, strict=True):
        if want not in _PSEUDO or want == "any" or arg == "unknown":
            continue
        if element is None or element == arg:
            element = arg
        elif want in _SAME:
            return None
        elif can_coerce(element, arg, IMPLICIT):
            element = arg
        elif not can_coerce(arg, element, IMPLICIT):
            return None
    return element or "text"
