"""Read the list of PostgreSQL's functions, operators and casts (data/postgresql.txt).

    name: type,type;type    overloads; a type with `?` may be left out, with `*` it repeats
    name +: type            `+`: an aggregate, `$`: an operator
    type =: type;type       `=`: casts

It tells calls that Meridian does not support (0A000) from calls that do not exist (42883).

INVARIANTS
  N1  the file is read when the first unknown call comes, not at the start.

`tests/unit/sql/postgresql_names.py` writes it, from a real server. Not here: what fits a call
(`postgresql_functions.py`).
"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parents[1] / "data" / "postgresql.txt"


@dataclass(frozen=True, slots=True)
class PostgresqlNames:
    """Argument types by name; a cast's targets by source."""

    functions: dict[str, list[tuple[str, ...]]]
    aggregates: frozenset[str]
    operators: dict[str, list[tuple[str, ...]]]
    casts: dict[str, list[tuple[str, ...]]]


@cache
def postgresql_names() -> PostgresqlNames:
    """The list, read once (N1)."""
    found = PostgresqlNames({}, frozenset(), {}, {})
    places = {"$": found.operators, "=": found.casts}
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
