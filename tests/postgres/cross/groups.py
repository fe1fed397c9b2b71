"""Aggregates, ordered-set aggregates and window functions over random groups of values.

The catalogs say what there is. Every statement has one answer: rows of a group have an order of
their own (`o`), and no two values are equal but different (`APART`).
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from psycopg.pq.abc import PGconn

from tests.postgres.cross.calls import catalog
from tests.postgres.cross.judging import Tally
from tests.postgres.cross.peers import Peers
from tests.postgres.cross.values import APART, NOT_STORED, literal, table
from tests.postgres.queries.answers import Answer, Failed, Rows, ask

_POLYMORPHIC = {
    "anyelement": (
        "int4", "text", "float8", "numeric", "interval", "timestamptz", "bool", "_int4", "jsonb",
        "date", "uuid",
    ),
    "anyarray": ("_int4", "_text"),
    "anynonarray": ("int4", "text", "bytea", "timestamptz", "interval", "float4"),
    "anycompatible": ("int4",),
    "any": ("int4", "text", "jsonb", "_text", "float8", "interval", "timestamp"),
}  # fmt: skip
_VARIANTS_MAX = 14
"""Of one function with several polymorphic arguments."""

_AGGREGATES = """
select p.proname, array_to_string(array(
  select t.typname::text from unnest(p.proargtypes) with ordinality u(type, n)
  join pg_type t on t.oid = u.type order by n), ' '), p.prokind, coalesce(a.aggkind, '')
from pg_proc p left join pg_aggregate a on a.aggfnoid = p.oid
where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('a', 'w')
order by 1, 2
"""

_FRAMES = (
    "rows between 1 preceding and 1 following",
    "rows unbounded preceding",
    "groups between current row and 1 following",
    "rows between 2 following and 4 following",
    "range between 1 preceding and 1 following exclude current row",
)
_FRACTIONS = ("0.5", "0", "1", "0.37", "null", "array[0.1, null, 0.9]")
_HYPOTHETICAL = ("rank", "dense_rank", "percent_rank", "cume_dist")
_RANKED = ("int4", "float8", "text", "timestamptz", "interval", "numeric", "bool")
_RANKED_VALUES = 6


@dataclass(frozen=True, slots=True)
class Statement:
    """One query, and the name of what it tries."""

    label: str
    text: str


def members(source: random.Random, rows: int) -> Iterator[str]:
    """Statements that make the table of groups: group, place in it, and which values."""
    drawn: list[str] = []
    for group in itertools.count():
        if len(drawn) >= rows:
            break
        size = source.choice((0, 1, 2, 3, 5, 9))
        drawn += [f"({group}, {at}, {source.randrange(40)})" for at in range(size)]
    yield "create table members (g int, o int, i int)"
    yield f"insert into members values {', '.join(drawn)}"


def statements(postgresql: PGconn) -> Iterator[Statement]:
    """All of them; always in the same order."""
    for name, types, kind, set_kind in catalog(postgresql, _AGGREGATES):
        choices = [_POLYMORPHIC.get(type_, (type_,)) for type_ in types.split()]
        for concrete in itertools.islice(itertools.product(*choices), _VARIANTS_MAX):
            if all(type_ in APART and type_ not in NOT_STORED for type_ in concrete):
                label = f"{name}({', '.join(concrete)})"
                for text in _of_one(name, concrete, kind, set_kind):
                    yield Statement(label, text)
    yield from _hypothetical()


def _of_one(name: str, types: tuple[str, ...], kind: str, set_kind: str) -> Iterator[str]:
    if set_kind == "o":
        yield from _ordered_sets(name, types)
    elif set_kind == "n" and types:
        yield from _aggregates(name, types)
    if set_kind in {"", "n"}:
        yield from _windows(name, types, kind)


def _source(types: tuple[str, ...]) -> str:
    """FROM: each argument walks through its type's values at a pace of its own."""
    joins = (
        f" left join {table(type_)} a{at} on a{at}.i = (m.i + {at * 7} * m.o) % {len(APART[type_])}"
        for at, type_ in enumerate(types)
    )
    return "members m" + "".join(joins)


def _arguments(types: tuple[str, ...]) -> list[str]:
    return [f"a{at}.v" for at in range(len(types))]


def _aggregates(name: str, types: tuple[str, ...]) -> Iterator[str]:
    first, listed, source = "a0.v", ", ".join(_arguments(types)), _source(types)
    for call in (
        f"{name}({listed} order by m.o)",
        f"{name}(distinct {listed})",
        f"{name}({listed} order by {first} desc, m.o)",
        f"{name}({listed} order by m.o desc) filter (where m.o % 2 = 0)",
    ):
        yield f"select m.g, ({call})::text from {source} group by 1 order by 1"
    yield f"select ({name}({listed} order by m.g, m.o))::text from {source}"
    yield f"select ({name}({listed}))::text from {source} where m.g < 0"


def _windows(name: str, types: tuple[str, ...], kind: str) -> Iterator[str]:
    listed = ", ".join(_arguments(types)) or ("*" if kind == "a" else "")
    for frame in _FRAMES:
        window = f"partition by m.g order by m.o {frame}"
        call = f"{name}({listed}) over ({window})"
        yield f"select m.g, m.o, ({call})::text from {_source(types)} order by 1, 2"


def _ordered_sets(name: str, types: tuple[str, ...]) -> Iterator[str]:
    direct = 0 if name == "mode" else 1
    ordered = ", ".join(_arguments(types)[direct:])
    for fraction in _FRACTIONS if direct else ("",):
        for call in (
            f"{name}({fraction}) within group (order by {ordered})",
            f"{name}({fraction}) within group (order by {ordered} desc) filter (where m.o > 0)",
        ):
            yield f"select m.g, ({call})::text from {_source(types)} group by 1 order by 1"


def _hypothetical() -> Iterator[Statement]:
    for name, type_ in itertools.product(_HYPOTHETICAL, _RANKED):
        label = f"{name}({type_}) within group"
        for at in (*range(min(_RANKED_VALUES, len(APART[type_]))), APART[type_].index(None)):
            call = f"{name}({literal(type_, at)}) within group (order by a0.v)"
            text = f"select m.g, ({call})::text from {_source((type_,))} group by 1 order by 1"
            yield Statement(label, text)


def compare(peers: Peers, tally: Tally, statement: Statement) -> None:
    """Ask both and judge the values of all rows."""
    expected, found = _ask(peers.postgresql, statement), _ask(peers.meridian, statement)
    if isinstance(expected, Rows) and isinstance(found, Rows):
        assert _keys(expected) == _keys(found), f"other groups: {statement.text}"
        for theirs, ours in zip(expected.rows, found.rows, strict=True):
            tally.judge(statement.label, statement.text, theirs[-1], ours[-1])
    else:
        tally.judge(statement.label, statement.text, _failure(expected), _failure(found))


def _ask(connection: PGconn, statement: Statement) -> Answer:
    return ask(connection, statement.text)[-1]


def _keys(answer: Rows) -> list[tuple[str | None, ...]]:
    return [row[:-1] for row in answer.rows]


def _failure(answer: Answer) -> str | Failed:
    return answer if isinstance(answer, Failed) else "rows"
