"""Overload resolution: which function or operator a call means (parse_func.c, parse_oper.c).

Follows chapter 10 of PostgreSQL's manual. All functions here are pure over type names, so their
answers are cached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from sql.binder.resolve.coercion import IMPLICIT, can_coerce
from sql.functions.table import Function, functions, operators, variadic_array_form
from sql.types.sql_type import PREFERRED_TYPES, is_type, type_category

_SAME: Final = frozenset({"anyelement", "anynonarray", "anyarray", "anyenum"})
"""These stand for one type in a call; the others for the common type of their arguments."""
_ARRAYS: Final = frozenset({"anyarray", "anycompatiblearray"})
_NO_ARRAYS: Final = frozenset({"anynonarray", "anycompatiblenonarray"})
_PSEUDO: Final = _SAME | {"any", "anycompatible", "anycompatiblearray", "anycompatiblenonarray"}
_CACHE_SIZE: Final = 8192
Score: TypeAlias = Callable[[Function], int]


class AmbiguousOverload(Exception):
    """Several overloads fit equally well (42725)."""


class UndeterminedType(Exception):
    """No argument decides the type of anyelement and similar pseudo-types (42804)."""


@dataclass(frozen=True, slots=True)
class OverloadChoice:
    """An overload and the types to convert its arguments to; `any` leaves an argument unchanged."""

    function: Function
    args: tuple[str, ...]
    result: str


@lru_cache(maxsize=_CACHE_SIZE)
def choose_operator(name: str, args: tuple[str, ...]) -> OverloadChoice | None:
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
def choose_function(
    name: str, args: tuple[str, ...], *, variadic: bool = False
) -> OverloadChoice | None:
    """The function or aggregate for these argument types, or None. Raises Ambiguous.

    `variadic`: the last argument is marked VARIADIC, so no parameter repeats.
    """
    if variadic:
        candidates = [
            variadic_array_form(row) for row in functions(name) if len(row.args) == len(args)
        ]
    else:
        candidates = [row for row in functions(name) if _takes(row, len(args))]
    exact = next((row for row in candidates if _expanded(row, len(args)) == args), None)
    return _settled(exact, args) if exact is not None else _best(candidates, args)


def choose_among(rows: Sequence[Function], args: tuple[str, ...]) -> OverloadChoice | None:
    """The best of these rows, each of which has as many arguments. Raises Ambiguous."""
    exact = next((row for row in rows if row.args == args), None)
    return _settled(exact, args) if exact is not None else _best(rows, args)


def _takes(row: Function, count: int) -> bool:
    return count >= len(row.args) if row.variadic else count == len(row.args)


def _expanded(row: Function, count: int) -> tuple[str, ...]:
    """The declared argument types, a variadic one repeated."""
    if not row.variadic:
        return row.args
    return row.args + (row.args[-1],) * (count - len(row.args))


def _best(candidates: Sequence[Function], args: tuple[str, ...]) -> OverloadChoice | None:
    fitting = [row for row in candidates if _fits(row, args)]
    if not fitting:
        return None
    if len(fitting) > 1:
        fitting = _preferred(fitting, args)
    if len(fitting) > 1:
        raise AmbiguousOverload
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
        or (
            wanted[index] in PREFERRED_TYPES
            and type_category(wanted[index]) == type_category(args[index])
        )
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
            wanted[row.id][index] in PREFERRED_TYPES
            and _category(wanted[row.id][index]) == category
            for row in rows
        )
        chosen[index] = (category, preferred)
    kept = [
        row
        for row in rows
        if all(
            _category(wanted[row.id][index]) == category
            and (not preferred or wanted[row.id][index] in PREFERRED_TYPES)
            for index, (category, preferred) in chosen.items()
        )
    ]
    return kept or rows


def _category(name: str) -> str:
    return "P" if name in _PSEUDO else type_category(name)


def _settled(row: Function, args: tuple[str, ...]) -> OverloadChoice:
    """Replace pseudo-types by the types of this call."""
    wanted = _expanded(row, len(args))
    if _PSEUDO.isdisjoint((*wanted, row.result)):
        return OverloadChoice(row, wanted, row.result)
    elements = _polymorphic(row, args)
    assert elements is not None, "the arguments fit"
    if elements[True] is None and not _SAME.isdisjoint(wanted):
        raise UndeterminedType
    return OverloadChoice(
        row, tuple(_meant(want, elements) for want in wanted), _meant(row.result, elements)
    )


_Elements: TypeAlias = dict[bool, str | None]
"""What anyelement (True) and anycompatible (False) stand for; None if nothing says."""


def _meant(name: str, elements: _Elements) -> str:
    if name not in _PSEUDO or name == "any":
        return name
    element = elements[name in _SAME] or "text"
    return f"_{element}" if name in _ARRAYS else element


def _polymorphic(row: Function, args: tuple[str, ...]) -> _Elements | None:
    """What a row's pseudo-types stand for; None if they cannot, or would be no type of ours."""
    elements = polymorphic_elements((*_expanded(row, len(args)), row.result), args)
    if elements is not None and row.result in _ARRAYS and not is_type(_meant(row.result, elements)):
        return None
    return elements


def polymorphic_elements(wanted: Sequence[str], args: Sequence[str]) -> _Elements | None:
    """The types of pseudo-types; None if they conflict (check_generic_type_consistency).

    `wanted`: the declared types of the arguments, and perhaps of the result.
    """
    elements: _Elements = {True: None, False: None}
    for want, arg in zip(wanted, args, strict=False):
        if want not in _PSEUDO or want == "any" or arg == "unknown":
            continue
        is_array = arg.startswith("_")
        if is_array if want in _NO_ARRAYS else want in _ARRAYS and not is_array:
            return None
        same = want in _SAME
        element = _common(elements[same], arg[1:] if want in _ARRAYS else arg, same=same)
        if element is None:
            return None
        elements[same] = element
    if "anyenum" in wanted and elements[True] is None:
        return None  # A literal says nothing of its enum.
    # There are no arrays of arrays.
    nested = any((element or "").startswith("_") for element in elements.values())
    return None if nested and any(want in _ARRAYS | _NO_ARRAYS for want in wanted) else elements


def _common(known: str | None, arg: str, *, same: bool) -> str | None:
    """One type for what was known and one more argument, or None."""
    if known is None or known == arg:
        return arg
    if same:
        return None
    if type_category(known) != type_category(arg):
        return None
    if (
        known not in PREFERRED_TYPES
        and can_coerce(known, arg, IMPLICIT)
        and not can_coerce(arg, known, IMPLICIT)
    ):
        return arg
    return known if can_coerce(arg, known, IMPLICIT) else None
