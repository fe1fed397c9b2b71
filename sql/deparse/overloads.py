"""The functions and operators that a call means, with PostgreSQL's own argument types.

The function table of `sql/functions` groups overloads for the engines; a definition's text shows
the conversions of PostgreSQL's pg_proc and pg_operator, so the choice is made among their rows.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from sql.binder.resolve.overloads import (
    AmbiguousOverload,
    OverloadChoice,
    UndeterminedType,
    choose_among,
    choose_function,
    choose_operator,
)
from sql.deparse.coercion import UnknownShape
from sql.functions.pg_proc import Procedure, callable_procedures, function_only_types
from sql.functions.table import Function, FunctionKind
from sql.types.sql_type import TYPE_NAMES_BY_OID

_CACHE_SIZE: Final = 4096
_FILE: Final = Path(__file__).parents[1] / "data" / "pg_operator.txt"
_PLAIN: Final = frozenset({"i", "b", "v"})


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function for a call: the types that its arguments get, and its result."""

    name: str
    args: tuple[str, ...]
    result: str
    kind: str
    """pg_proc.prokind."""
    returns_set: bool
    repeats: int | None
    """From which argument on they are elements of a VARIADIC array."""
    outputs: tuple[tuple[str, str], ...]
    """Names and types of OUT arguments."""


@lru_cache(maxsize=_CACHE_SIZE)
def called_function(name: str, args: tuple[str, ...], *, variadic: bool) -> CalledFunction:
    """The function of that name for arguments of these types."""
    known = {str(found.oid): found for found in callable_procedures(name)}
    rows = [row for found in known.values() if (row := _row(found, len(args), expand=not variadic))]
    choice = _chosen(rows, args)
    if choice is None:
        return _of_table(name, args, variadic=variadic)
    found = known[choice.function.id]
    repeated = found.repeated if not variadic else None
    outputs = [(given.name, given.type) for given in found.arguments if given.mode in "obt"]
    return CalledFunction(
        name,
        choice.args,
        choice.result,
        found.kind,
        found.is_set,
        len(found.inputs) - 1 if repeated not in (None, "any") else None,
        tuple(outputs),
    )


def _row(found: Procedure, count: int, *, expand: bool) -> Function | None:
    inputs = found.inputs
    types = [given.type for given in inputs]
    repeated = found.repeated if expand else None
    required = sum(given.default is None for given in inputs)
    if repeated is not None:
        if count < len(types):
            return None
        types[-1:] = [repeated] * (count - len(types) + 1)
    elif not required <= count <= len(types):
        return None
    kind = FunctionKind.FUNCTION
    return Function(str(found.oid), found.name, kind, tuple(types[:count]), found.result)


def _chosen(rows: Sequence[Function], args: tuple[str, ...]) -> OverloadChoice | None:
    try:
        return choose_among(rows, args)
    except (AmbiguousOverload, UndeterminedType):
        return None


def _of_table(name: str, args: tuple[str, ...], *, variadic: bool) -> CalledFunction:
    """A function that PostgreSQL has in an extension."""
    try:
        choice = choose_function(name, args, variadic=variadic)
    except (AmbiguousOverload, UndeterminedType):
        choice = None
    if choice is None:
        raise UnknownShape(name)
    kinds = {FunctionKind.AGGREGATE: "a", FunctionKind.WINDOW: "w"}
    kind = kinds.get(choice.function.kind, "f")
    is_set = choice.function.kind is FunctionKind.SET
    return CalledFunction(name, choice.args, choice.result, kind, is_set, None, ())


@lru_cache(maxsize=_CACHE_SIZE)
def called_operator(name: str, args: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The types that the operands get, and the result's."""
    rows = [row for row in _operators().get(name, ()) if len(row.args) == len(args)]
    wanted = args
    if len(args) == 2 and "unknown" in args and args != ("unknown", "unknown"):
        known = args[0] if args[1] == "unknown" else args[1]
        wanted = (known, known)
    exact = [row for row in rows if row.args == wanted]
    choice = _chosen(exact or rows, args)
    if choice is None:
        try:
            choice = choose_operator(name, args)
        except (AmbiguousOverload, UndeterminedType):
            choice = None
    if choice is None:
        raise UnknownShape(name)
    return choice.args, choice.result


@cache
def _operators() -> Mapping[str, Sequence[Function]]:
    names = TYPE_NAMES_BY_OID | {oid: name for oid, (name, _) in function_only_types().items()}
    found: dict[str, list[Function]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        relation, _, row = line.partition(" ")
        if relation != "pg_operator":
            continue
        oid, name, _, _, _, _, _, left, right, result, *_ = json.loads(row)
        types = [names.get(type_) for type_ in (left, right, result) if type_]
        if None in types:
            continue
        *args, made = (str(type_) for type_ in types)
        operator = Function(str(oid), name, FunctionKind.OPERATOR, tuple(args), made)
        found.setdefault(name, []).append(operator)
    return found
