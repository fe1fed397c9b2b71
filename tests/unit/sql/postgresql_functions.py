"""Write `sql/data/pg_proc.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_functions

Of PostgreSQL's functions those are written that Meridian has: its table has the row, or a call with
NULLs is not refused. And those that its types name. The other functions of PostgreSQL are written
to `sql/data/pg_proc_refused.txt`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from sql.functions.table import FunctionKind, find_cast, functions
from sql.types.catalog_types import catalog_types
from sql.types.sql_type import TYPE_OIDS
from tests.support.servers import postgres
from tests.support.stack import serving

FILE: Final = Path(__file__).parents[3] / "sql" / "data" / "pg_proc.txt"
HEAD: Final = (
    "# Functions of PostgreSQL {version} that Meridian has; see sql/functions/pg_proc.py.\n"
)
REFUSED: Final = FILE.with_name("pg_proc_refused.txt")
REFUSED_HEAD: Final = (
    "# Functions of PostgreSQL {version} that Meridian refuses; see sql/functions/pg_proc.py.\n"
)
FIRST_OF_INITDB: Final = 12_000
"""Oids from here on are of what initdb's scripts create."""
FUNCTIONS: Final = """
select oid::int8, proname::text, prokind::text, provolatile::text, proparallel::text, proisstrict,
  proleakproof, proretset, (select lanname::text from pg_language l where l.oid = prolang),
  prosupport::text, procost::float8, prorows::float8, prorettype::int8,
  array(select type::int8 from unnest(proargtypes) with ordinality a(type, place) order by place),
  proallargtypes::int8[], proargmodes::text[], proargnames,
  string_to_array(pg_get_expr(proargdefaults, 0), ', '), prosrc,
  (select aggnumdirectargs from pg_aggregate
    where aggfnoid::oid = p.oid and aggkind in ('o', 'h')), pg_get_function_sqlbody(oid), probin
from pg_proc p
where pronamespace = 'pg_catalog'::regnamespace and not prosecdef and oid < 16384
order by proname, oid
"""
TYPES: Final = """
select t.oid::int8, t.typname::text, format_type(t.oid, null)
from pg_type t left join pg_type e on e.oid = t.typelem
where t.oid < 12000 and 'c' not in (t.typtype, coalesce(e.typtype, '-')) order by 1
"""
SUPPORT: Final = """
select typname::text, typinput::text, typoutput::text, typreceive::text, typsend::text,
  typmodin::text, typmodout::text, typanalyze::text, typsubscript::text
from pg_type where typname = any(%s) and typnamespace = 'pg_catalog'::regnamespace order by typname
"""
CASTS: Final = """
select c.oid::int8, s.typname::text, t.typname::text, castfunc::int8, castcontext::text,
  castmethod::text
from pg_cast c join pg_type s on s.oid = castsource join pg_type t on t.oid = casttarget
order by c.oid
"""

NAMED: Final = (
    "enum_in", "enum_out", "enum_recv", "enum_send", "domain_in", "domain_recv",
    "heap_tableam_handler", "bthandler", "hashhandler", "gisthandler", "ginhandler", "spghandler",
    "brinhandler",
)  # fmt: skip
"""What catalogs name besides the functions of PostgreSQL's own types."""
NAMED_TYPES: Final = ("event_trigger", "trigger")
"""Types that clients ask for by name, though no function here has them."""
MODES: Final = {"o": "out ", "b": "inout ", "v": "variadic ", "t": "table "}
VOLATILITIES: Final = {"i": "", "s": "stable", "v": "volatile"}
PARALLEL: Final = {"s": "", "r": "restricted", "u": "unsafe"}
KINDS: Final = {"f": "", "a": "aggregate", "w": "window"}
STAND_INS: Final = {
    "anyelement": "int4", "anyarray": "_int4", "anynonarray": "int4", "anycompatible": "int4",
    "anycompatiblearray": "_int4", "anycompatiblenonarray": "int4", "any": "int4",
    "anyenum": "int4", "oidvector": "_oid", "pg_node_tree": "text",
}  # fmt: skip
"""What a call is tried with."""


class Found(NamedTuple):
    """A row of pg_proc, as `FUNCTIONS` asks for it."""

    oid: int
    name: str
    kind: str
    volatility: str
    parallel: str
    strict: bool
    leakproof: bool
    is_set: bool
    language: str
    support: str
    cost: float
    rows: float
    result: int
    args: list[int]
    all_args: list[int] | None
    modes: list[str] | None
    names: list[str] | None
    defaults: list[str] | None
    source: str
    direct: int | None
    body: str | None
    library: str | None


def main() -> None:
    """Write the file."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        found = [Found(*row) for row in connection.execute(FUNCTIONS).fetchall()]
        types = connection.execute(TYPES).fetchall()
        own = [*TYPE_OIDS, *catalog_types()]
        casts = [row for row in connection.execute(CASTS) if find_cast(row[1], row[2]) is not None]
        support = connection.execute(SUPPORT, [own]).fetchall()
    names = {oid: name for oid, name, _ in types}
    called = {oid for _, _, _, oid, _, _ in casts}
    named = {*NAMED, *(name for _, *rest in support for name in rest)}
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        has = {
            one.oid
            for one in found
            if one.oid < FIRST_OF_INITDB
            and (one.name in named or one.oid in called or _has(connection, one, names))
        }
    supported = {one.support for one in found if one.oid in has}
    listed = [one for one in found if one.oid in has or one.name in supported]
    others = [one for one in found if one not in listed]
    used = _types_of(listed)
    further = [row for row in types if not {*row} & {*TYPE_OIDS, *catalog_types()}]
    is_own = {oid: oid in used or name in NAMED_TYPES for oid, name, _ in further}
    lines = [
        *(_type_line(*row) for row in further if is_own[row[0]]),
        *(f"of {' '.join(row)}" for row in support),
        *(f"cast {' '.join(map(str, row))}" for row in casts),
        *(_line(function, names) for function in listed),
    ]  # fmt: skip
    refused = [
        *(_type_line(*row) for row in further if not is_own[row[0]]),
        *(_line(function, names) for function in others),
    ]
    for file, head, written in ((FILE, HEAD, lines), (REFUSED, REFUSED_HEAD, refused)):
        text = head.format(version=version) + "".join(f"{line}\n" for line in written)
        file.write_text(text, encoding="utf-8")


def _types_of(listed: Sequence[Found]) -> set[int]:
    return {
        oid
        for function in listed
        for oid in [function.result, *(function.all_args or function.args)]
    }


def _type_line(oid: int, name: str, shown: str) -> str:
    return f"type {oid} {name} {shown}"


def _has(
    connection: "psycopg.Connection[tuple[object, ...]]", function: Found, names: dict[int, str]
) -> bool:
    args = [names[oid] for oid in function.args]
    if (function.modes or [""])[-1] == "v" and args[-1] != "any":
        args[-1] = args[-1].removeprefix("_")
    return any(_is_row(function, args[:end]) for end in _ends(function, len(args))) or (
        _answers(connection, function, args)
    )


def _ends(function: Found, count: int) -> Sequence[int]:
    return range(count - len(function.defaults or []), count + 1)


def _is_row(function: Found, args: list[str]) -> bool:
    return any(
        row.args == tuple(args)
        for row in functions(function.name)
        if not row.internal and row.kind is not FunctionKind.CAST
    )


def _answers(
    connection: "psycopg.Connection[tuple[object, ...]]", function: Found, args: list[str]
) -> bool:
    tried = [STAND_INS.get(arg, arg) for arg in args]
    if not TYPE_OIDS.keys() >= {*tried}:
        return False
    call = f'"{function.name}"({", ".join(f"null::pg_catalog.{arg}" for arg in tried)})'
    try:
        connection.execute(f"select {call}{' over ()' if function.kind == 'w' else ''}".encode())
    except psycopg.Error as error:
        return error.sqlstate not in ("0A000", "42883")
    return True


def _line(function: Found, names: dict[int, str]) -> str:
    words = [
        KINDS[function.kind], VOLATILITIES[function.volatility], PARALLEL[function.parallel],
        "" if function.strict else "nonstrict", "leakproof" if function.leakproof else "",
        "" if function.language == "internal" else function.language,
        "" if function.cost == 1 else f"cost={function.cost:g}",
        "" if not function.is_set else f"rows={function.rows:g}",
        "" if function.support == "-" else f"support={function.support}",
        "" if function.direct is None else f"direct={function.direct}",
        "" if function.library is None else f"library={function.library}",
    ]  # fmt: skip
    result = f"{'setof ' if function.is_set else ''}{names[function.result]}"
    own = "aggregate_dummy" if function.kind == "a" else function.name
    source = "" if function.source == own else f" | {function.source}"
    if function.body is not None:
        assert not function.source, f"a body that is a tree has no source: {function.name}"
        source = f" |= {function.body}".replace("\n", "\\n")
    assert "\n" not in source, f"a source is in one line: {function.name}"
    head = f"{function.oid} {function.name}({', '.join(_arguments(function, names))})"
    return " ".join([head, "=>", result, *filter(None, words)]) + source


def _arguments(function: Found, names: dict[int, str]) -> Iterator[str]:
    inputs = 0
    first = len(function.args) - len(function.defaults or [])
    for place, oid in enumerate(function.all_args or function.args):
        mode = function.modes[place] if function.modes else "i"
        name = function.names[place] if function.names else ""
        default = ""
        if mode != "o":
            default = f"={(function.defaults or [])[inputs - first]}" if inputs >= first else ""
            inputs += 1
        yield f"{MODES.get(mode, '')}{name}{' ' if name else ''}{names[oid]}{default}"


if __name__ == "__main__":
    main()
