"""The function table: overloads of functions, operators, aggregates and casts, and their templates.

Data files in `sql/data/`, loaded once. One row is one overload. A row without a template for an
engine does not run there (0A000).

A line of a data file is

    signature => result word .. : template of every engine
    signature => result word .. spark: template duckdb: template
    signature => result word .. rewrite: expression of SQL

where the signature is `name(type, ..)`, `type operator type`, `operator type` or `source::target`;
names, operators and types may be lists (`int2,int4 +,- int8`), which stand for every combination.
Words are the fields of `Function`: `nonstrict`, `variadic`, `stable`, `volatile`, `zone`,
`aggregate`, `within`, `window`, `set`, `nulls`, `implicit`, `assignment`, `explicit`,
`numeric=rule`, and `internal`: known by its id only. `f.variadic(..)` is what
`f(.., VARIADIC array)` calls. A result `first` is the type of the first argument, an argument
`same` too; a cast's is its target. A template `@reference` of DuckDB has the reference evaluator
compute the function, row by row. `{op}` in a template is the operator, `{name}` the name. A line
that begins with blanks continues the line before; `#` in the first column begins a comment.

INVARIANTS
  F1  `id` is unique: `name(argtypes)` for functions and aggregates, `left op right` for operators
      (`- int4` for a prefix one), `source::target` for casts.
  F2  a template only ever receives expressions that already have the declared argument types, with
      explicit casts, and yields exactly the declared result type.
  F3  a row with `zone` depends on the session's time zone: its `Call` has one argument more than
      `args`, the zone's name as a constant of type text, appended by the binder.
  F4  `numeric::numeric`, `varchar::varchar`, `bpchar::bpchar` apply a modifier and round or cut as
      an explicit cast does. Internal rows change a type without that licence: `assign(varchar)` and
      `assign(bpchar)`, for values that go into a column, refuse what is too long (22001) unless
      only blanks are cut; `narrow(numeric)` refuses to lose a digit (22003).

Not here: choosing an overload (the binder), what rows do (`compute/reference/functions/`,
`sql/emit/`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

from sql.types.enums import is_enum


class FunctionKind(StrEnum):
    """The kind of a row."""

    FUNCTION = "function"
    OPERATOR = "operator"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    SET = "set"
    CAST = "cast"


class CastContext(StrEnum):
    """Where a cast is applied implicitly (pg_cast.castcontext)."""

    IMPLICIT = "implicit"
    ASSIGNMENT = "assignment"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Function:
    """One overload. Types are typnames; `any`, `anyelement` and `anycompatible` are PostgreSQL's
    pseudo-types.

    `variadic`: the last argument type repeats. `strict`: NULL in, NULL out, without a call.
    `volatility`: `immutable`, `stable` or `volatile`. `context`: for casts. `spark`, `duckdb`: the
    template, with `{0}`, `{1}` … for arguments, or None; `@name` names a function of `sql/emit/`.
    `numeric`:
    name of the rule in `sql/types/numeric.py` that gives precision and scale of a numeric result,
    or None. `zone`: see F3. `nulls`: an aggregate that sees NULLs. `within`: one that has WITHIN
    GROUP (ORDER BY ..), whose keys come before the other arguments. `rewrite`: the expression that
    stands for a call, `$1`, `$2` .. for its arguments; it runs on every engine that has what it
    uses.
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
    duckdb: str | None = None
    numeric: str | None = None
    zone: bool = False
    nulls: bool = False
    internal: bool = False
    rewrite: str | None = None
    within: bool = False


_INTERNAL: Final = frozenset(
    {
        "array(any)",
        "subscript(anyarray,int4)",
        "slice(anyarray,int4,int4)",
        "assign(varchar)",
        "assign(bpchar)",
        "char_padded(bpchar,int4)",
        "char_padded(anyarray,int4)",
        "char_trimmed(bpchar)",
        "char_trimmed(anyarray)",
    }
)
_STABLE_CALLS: Final = frozenset({"to_char", "enum_first", "enum_last", "enum_range"})
_STABLE_TARGETS: Final = frozenset({"interval", "time", "enum"})
_STABLE_SOURCES: Final = frozenset({"record", "anyarray", "enum"})


def is_immutable(function: Function) -> bool:
    """Whether PostgreSQL itself marks the function immutable, so that it folds calls of constants.
    Our table also marks functions immutable that depend on a setting in PostgreSQL only.
    """
    if function.volatility != "immutable":
        return False
    if function.internal:
        return function.id in _INTERNAL
    if function.kind is FunctionKind.CAST:
        types = (function.args[0], function.result)
        if any(name.startswith("reg") for name in types):
            return False
        return types[0] not in _STABLE_SOURCES and types[1] not in _STABLE_TARGETS
    return function.name not in _STABLE_CALLS


def functions(name: str) -> Sequence[Function]:
    """All functions and aggregates of that name, in the order of the data files."""
    return _table().functions.get(name, ())


def operators(name: str) -> Sequence[Function]:
    """All operators of that name, prefix ones included (one argument)."""
    return _table().operators.get(name, ())


def variadic_array_form(row: Function) -> Function:
    """The row that a call with VARIADIC uses: it takes its last arguments as an array."""
    if not row.variadic:
        return row
    *others, last = row.args
    array = last if last == "any" else f"_{last}"
    return function_by_id(f"{row.name}{ARRAY_FORM}({','.join([*others, array])})")


def find_cast(source: str, target: str) -> Function | None:
    """The cast between two types, or None. Between a type and itself: the row that applies a
    modifier.
    """
    by_id = _table().by_id
    if is_enum(source) or is_enum(target):
        # Enums share rows.
        sides = ["enum" if is_enum(side) else side for side in (source, target)]
        return by_id.get(f"{sides[0]}::{sides[1]}")
    row = by_id.get(f"{source}::{target}")
    if row is None and (source.startswith("_") or target.startswith("_")):
        # Arrays share rows, which do to every element what the elements' own row does.
        sides = ["anyarray" if side.startswith("_") else side for side in (source, target)]
        row = by_id.get(f"{sides[0]}::{sides[1]}")
    return row


def function_by_id(id_: str) -> Function:
    """The row with this id (F1)."""
    return _table().by_id[id_]


def all_functions() -> Sequence[Function]:
    """Every row, in the order of the data files."""
    return tuple(_table().by_id.values())


def rows_of_file(file: str) -> Sequence[Function]:
    """The rows of one of `FUNCTION_FILES`."""
    return _table().files[file]


COMPARISON_OPERATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
"""Operators that compare."""

ARRAY_FORM: Final = ".variadic"
"""How the name of such a row ends."""


# --- loading -----------------------------------------------------------------------------------

FUNCTION_FILES: Final = (
    "operators.txt", "functions.txt", "aggregates.txt", "windows.txt", "sets.txt", "casts.txt",
    "arrays.txt", "patterns.txt", "texts.txt", "formats.txt", "mathematics.txt", "statistics.txt",
    "json.txt", "times.txt", "catalog_functions.txt", "registered.txt", "system.txt", "session.txt",
    "enums.txt", "aliases.txt", "variadic.txt", "extensions.txt",
)  # fmt: skip
_TEMPLATE: Final = re.compile(r" (spark|duckdb|rewrite|): ")
_DIRECTORY: Final = Path(__file__).parents[1] / "data"
_VOLATILITIES: Final = frozenset({"stable", "volatile"})
_CONTEXTS: Final = {context.value: context for context in CastContext}
_CALLED: Final = {
    kind.value: kind for kind in (FunctionKind.AGGREGATE, FunctionKind.WINDOW, FunctionKind.SET)
}
_NONSTRICT: Final = frozenset({"nonstrict", "aggregate", "window"})
_FLAGS: Final = frozenset(
    {"nonstrict", "variadic", "zone", "aggregate", "window", "set", "nulls", "internal", "within"}
)


@dataclass(frozen=True, slots=True)
class _Table:
    by_id: dict[str, Function]
    functions: dict[str, list[Function]]
    operators: dict[str, list[Function]]
    files: dict[str, list[Function]]


@cache
def _table() -> _Table:
    table = _Table({}, {}, {}, {})
    for file in FUNCTION_FILES:
        rows = table.files.setdefault(file, [])
        for line in _lines((_DIRECTORY / file).read_text(encoding="utf-8")):
            for row in _rows(line):
                _add(table, row)
                rows.append(row)
    return table


def _add(table: _Table, row: Function) -> None:
    assert row.id not in table.by_id, f"F1: two rows {row.id}"
    table.by_id[row.id] = row
    if row.internal:
        return
    if row.kind is FunctionKind.OPERATOR:
        table.operators.setdefault(row.name, []).append(row)
    elif row.kind is not FunctionKind.CAST:
        table.functions.setdefault(row.name, []).append(row)


def _lines(text: str) -> Iterator[str]:
    line = ""
    for part in text.splitlines():
        if part.startswith(" "):
            line = f"{line} {part.strip()}"
        elif part and not part.startswith("#"):
            if line:
                yield line
            line = part
    if line:
        yield line


def _rows(line: str) -> Iterator[Function]:
    signature, arrow, rest = line.partition(" => ")
    assert arrow, f"no result type: {line}"
    head, *parts = _TEMPLATE.split(rest)
    templates = dict(zip(parts[::2], parts[1::2], strict=True))
    result, *words = head.split()
    options = _options(frozenset(words), line)
    called = next((_CALLED[word] for word in words if word in _CALLED), FunctionKind.FUNCTION)
    for id_, name, kind, args in _signatures(signature.strip(), called):
        spark, duckdb = (_template(templates, engine, name) for engine in ("spark", "duckdb"))
        type_ = args[0] if result == "first" else name if kind is FunctionKind.CAST else result
        texts = {"spark": spark, "duckdb": duckdb, "rewrite": templates.get("rewrite")}
        yield Function(id_, name, kind, args, type_, **texts, **options)  # type: ignore[arg-type]


def _template(templates: Mapping[str, str], engine: str, name: str) -> str | None:
    found = templates.get(engine, templates.get(""))
    return found and found.strip().replace("{op}", name).replace("{name}", name)


def _options(words: frozenset[str], line: str) -> dict[str, object]:
    options: dict[str, object] = {
        "strict": _NONSTRICT.isdisjoint(words),
        "variadic": "variadic" in words,
        "zone": "zone" in words,
        "nulls": "nulls" in words,
        "internal": "internal" in words,
        "within": "within" in words,
    }
    for word in words - _FLAGS:
        if word in _VOLATILITIES:
            options["volatility"] = word
        elif word in _CONTEXTS:
            options["context"] = _CONTEXTS[word]
        else:
            rule, equals, name = word.partition("=")
            assert (rule, equals) == ("numeric", "="), f"unknown word {word}: {line}"
            options["numeric"] = name
    return options


_Signature = tuple[str, str, FunctionKind, tuple[str, ...]]


def _signatures(signature: str, kind: FunctionKind) -> Iterator[_Signature]:
    if signature.endswith(")"):
        names, _, inside = signature[:-1].partition("(")
        # Within parentheses a comma separates arguments, so alternatives are written with a bar.
        alternatives = [arg.strip().split("|") for arg in inside.split(",")] if inside else []
        for name in names.split(","):
            for args in product(*alternatives):
                yield f"{name}({','.join(args)})", name, kind, args
    elif "::" in signature:
        sources, _, targets = signature.partition("::")
        for source, target in product(sources.split(","), targets.split(",")):
            yield f"{source}::{target}", target, FunctionKind.CAST, (source,)
    else:
        yield from _operator_signatures(signature.split(" "))


def _operator_signatures(parts: Sequence[str]) -> Iterator[_Signature]:
    *lefts, names, rights = (part.split(",") for part in parts)
    for left, name, right in product(lefts[0] if lefts else [""], names, rights):
        right = left if right == "same" else right  # noqa: PLW2901
        if left:
            yield f"{left} {name} {right}", name, FunctionKind.OPERATOR, (left, right)
        else:
            yield f"{name} {right}", name, FunctionKind.OPERATOR, (right,)
