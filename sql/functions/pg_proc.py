r"""PostgreSQL's rows of pg_proc, and which of its functions and casts Meridian has.

    oid name(argument, ..) => result word .. | source       argument: [mode] [name] type[=default]
    oid name(argument, ..) => result word .. |= body        as it was written, lines apart by \n
    type oid name shown     a type that only functions have, and what format_type() writes
    of type function ..     the functions of a type, in the order of `SUPPORT_FUNCTION_COLUMNS`
    cast oid type type function context method      a row of pg_cast

Modes are `out`, `inout`, `variadic` and `table`; words `aggregate`, `window`, `stable`, `volatile`,
`restricted` and `unsafe` (in parallel), `nonstrict`, `leakproof`, `sql` and `c` (the language),
`cost=`, `rows=`, `support=`, `library=` and, of an aggregate with WITHIN GROUP, `direct=`: how many
arguments come before ORDER BY. Where no source is given it is the function's name.

INVARIANTS
  P1  all functions of PostgreSQL are listed, as a build of PostgreSQL also lists those that it was
      made without. A call of one that is `refused` gets 0A000.
  P2  a function of `pg_proc.txt` can be called, or a type that is here names it. It is never
      `refused`, even if `pg_proc_refused.txt` still lists it.
  P3  the files are read when they are first needed, not at the start.

Both files are written by `tests/unit/sql/postgresql_functions.py`, from a real server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from sql.types.catalog_types import is_catalog_type
from sql.types.sql_type import TYPE_OIDS, SqlType, format_type

_FILE: Final = Path(__file__).parents[1] / "data" / "pg_proc.txt"
_REFUSED_FILE: Final = _FILE.with_name("pg_proc_refused.txt")
_MODES: Final = {"out": "o", "inout": "b", "variadic": "v", "table": "t"}
_ANY: Final = "any"

SUPPORT_FUNCTION_COLUMNS: Final = (
    "typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze",
    "typsubscript",
)  # fmt: skip
"""Columns of pg_type that name functions."""


@dataclass(frozen=True, slots=True)
class ProcedureArgument:
    """One of a function's arguments, OUT ones too. `mode` is that of proargmodes."""

    type: str
    name: str = ""
    mode: str = "i"
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A row of pg_proc. Types are typnames; `words` see above."""

    oid: int
    name: str
    arguments: tuple[ProcedureArgument, ...]
    result: str
    is_set: bool
    words: frozenset[str]
    source: str
    numbers: Mapping[str, float]
    support: str
    body: str | None
    """Of what PostgreSQL keeps as a tree, and not as the text of `source`."""
    library: str | None
    """pg_proc.probin."""
    refused: bool
    """Whether no call of it is taken (P1)."""

    @property
    def inputs(self) -> tuple[ProcedureArgument, ...]:
        """The arguments that a call has."""
        return tuple(given for given in self.arguments if given.mode not in ("o", "t"))

    @property
    def kind(self) -> str:
        """pg_proc.prokind."""
        return "a" if "aggregate" in self.words else "w" if "window" in self.words else "f"

    @property
    def volatility(self) -> str:
        """pg_proc.provolatile."""
        return "s" if "stable" in self.words else "v" if "volatile" in self.words else "i"

    @property
    def parallel(self) -> str:
        """pg_proc.proparallel."""
        return "r" if "restricted" in self.words else "u" if "unsafe" in self.words else "s"

    @property
    def language(self) -> str:
        """pg_language.lanname."""
        return next((name for name in ("sql", "c") if name in self.words), "internal")

    @property
    def cost(self) -> float:
        """pg_proc.procost."""
        return self.numbers.get("cost", 1.0)

    @property
    def rows(self) -> float:
        """pg_proc.prorows."""
        return self.numbers.get("rows", 0.0)

    @property
    def has_modes(self) -> bool:
        """Whether proargmodes and proallargtypes are not NULL."""
        return any(given.mode != "i" for given in self.arguments)

    @property
    def repeated(self) -> str | None:
        """The element type of the VARIADIC argument."""
        if not (self.inputs and self.inputs[-1].mode == "v"):
            return None
        return _element(self.inputs[-1].type)


def _element(array: str) -> str:
    return _ANY if array == _ANY else array.removeprefix("_")


@dataclass(frozen=True, slots=True)
class CastRow:
    """A row of pg_cast; `function` is an oid, 0 where none is called."""

    oid: int
    source: str
    target: str
    function: int
    context: str
    method: str


@dataclass(frozen=True, slots=True)
class _File:
    procedures: tuple[Procedure, ...]
    types: Mapping[str, tuple[int, str]]
    support: Mapping[str, tuple[str, ...]]
    casts: tuple[CastRow, ...]


def procedures() -> Sequence[Procedure]:
    """All functions, by name."""
    return _file().procedures


@cache
def procedures_by_name() -> Mapping[str, Sequence[Procedure]]:
    """The functions of each name."""
    found: dict[str, list[Procedure]] = {}
    for procedure in procedures():
        found.setdefault(procedure.name, []).append(procedure)
    return found


def callable_procedures(name: str) -> Sequence[Procedure]:
    """The functions of that name that are not refused."""
    return [found for found in procedures_by_name().get(name, ()) if not found.refused]


@cache
def procedures_by_oid() -> Mapping[int, Procedure]:
    """The functions by oid."""
    return {procedure.oid: procedure for procedure in procedures()}


def is_ambiguous_function(name: str) -> bool:
    """Whether there are several functions of that name."""
    return len(procedures_by_name().get(name, ())) > 1


def cast_rows() -> Sequence[CastRow]:
    """The rows of pg_cast for casts that Meridian has."""
    return _file().casts


def function_oid(name: str) -> int:
    """The oid of the only function of that name; 0 for `-`."""
    return 0 if name == "-" else procedures_by_name()[name][0].oid


def support_functions(type_name: str) -> Mapping[str, int]:
    """The support functions of a type in pg_type: oids by column."""
    names = _file().support.get(type_name, ())
    return {
        column: function_oid(name)
        for column, name in zip(SUPPORT_FUNCTION_COLUMNS, names, strict=False)
    }


def argument_type_oid(name: str) -> int:
    """The oid of an argument's type."""
    is_known = name in TYPE_OIDS or is_catalog_type(name)
    return SqlType(name).oid if is_known else _file().types[name][0]


def argument_type_text(name: str) -> str:
    """What format_type() writes."""
    is_known = name in TYPE_OIDS or is_catalog_type(name)
    return format_type(SqlType(name)) if is_known else _file().types[name][1]


def function_only_types() -> Mapping[int, tuple[str, str]]:
    """Types that no value here has, by oid: name, and as format_type() writes it."""
    return {oid: (name, shown) for name, (oid, shown) in _file().types.items()}


# --- reading -----------------------------------------------------------------------------------


@cache
def _file() -> _File:
    own, others = _read(_FILE, refused=False), _read(_REFUSED_FILE, refused=True)
    known = {procedure.oid for procedure in own.procedures}
    more = [procedure for procedure in others.procedures if procedure.oid not in known]
    types = {
        name: row
        for name, row in {**others.types, **own.types}.items()
        if name not in TYPE_OIDS and not is_catalog_type(name)
    }
    return _File((*own.procedures, *more), types, own.support, own.casts)


def _read(file: Path, *, refused: bool) -> _File:
    types: dict[str, tuple[int, str]] = {}
    supports: dict[str, tuple[str, ...]] = {}
    found: list[Procedure] = []
    casts_: list[CastRow] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        match line.split(" "):
            case ["#", *_]:
                pass
            case ["type", oid, name, *shown]:
                types[name] = int(oid), " ".join(shown)
            case ["of", name, *functions]:
                supports[name] = tuple(functions)
            case ["cast", oid, source, target, function, context, method]:
                casts_.append(CastRow(int(oid), source, target, int(function), context, method))
            case _:
                found.append(_procedure(line, refused=refused))
    return _File(tuple(found), types, supports, tuple(casts_))


def _procedure(line: str, *, refused: bool) -> Procedure:
    line, _, body = line.partition(" |= ")
    told, bar, source = line.partition(" | ")
    head, _, tail = told.partition(") => ")
    oid, _, called = head.partition(" ")
    name, _, inside = called.partition("(")
    words = tail.split(" ")
    is_set = words[0] == "setof"
    result, *words = words[is_set:]
    told_more = dict(word.split("=") for word in words if "=" in word)
    support_ = told_more.pop("support", "-")
    library = told_more.pop("library", None)
    numbers = {key: float(number) for key, number in told_more.items()}
    own = "aggregate_dummy" if "aggregate" in words else name
    arguments = tuple(map(_argument, inside.split(", "))) if inside else ()
    if body:
        own = ""
    source = source if bar else own
    return Procedure(
        int(oid), name, arguments, result, is_set, frozenset(words), source, numbers, support_,
        body.replace("\\n", "\n") or None, library, refused,
    )  # fmt: skip


def _argument(text: str) -> ProcedureArgument:
    told, equals, default = text.partition("=")
    *before, type_ = told.split(" ")
    mode = _MODES[before.pop(0)] if before and before[0] in _MODES else "i"
    return ProcedureArgument(type_, " ".join(before), mode, default if equals else None)
