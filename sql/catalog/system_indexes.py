"""Indexes and constraints of PostgreSQL's own catalogs.

    index [oid, name, table, shared, unique, primary, columns, collations, classes, options, text]
    column [index, name, type, number, size, by value, alignment, storage, collation]
    constraint [oid, name, kind, table, index, columns, text]

Nothing is looked up through them here: rows of catalogs are computed. They say what is a key.

The file is written by `tests/unit/sql/postgresql_catalogs.py`, from a real server.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).parents[1] / "data" / "system_indexes.txt"


@dataclass(frozen=True, slots=True)
class SystemIndex:
    """An index of a table of pg_catalog. `definition` as pg_get_indexdef() prints it; `shared`: its
    table is one of all databases.
    """

    oid: int
    name: str
    table: int
    shared: bool
    unique: bool
    primary: bool
    numbers: tuple[int, ...]
    collations: tuple[int, ...]
    classes: tuple[int, ...]
    options: tuple[int, ...]
    definition: str


@dataclass(frozen=True, slots=True)
class SystemIndexColumn:
    """A column of such an index, as pg_attribute has it."""

    index: int
    name: str
    type: int
    number: int
    size: int
    by_value: bool
    alignment: str
    storage: str
    collation: int


@dataclass(frozen=True, slots=True)
class SystemConstraint:
    """A constraint of a table of pg_catalog; `kind` is pg_constraint.contype."""

    oid: int
    name: str
    kind: str
    table: int
    index: int
    numbers: tuple[int, ...]
    definition: str


@cache
def system_indexes() -> Mapping[str, SystemIndex]:
    """All indexes by name; names are unique in pg_catalog."""
    found = (SystemIndex(*row) for row in _rows("index"))
    return {index.name: index for index in found}


@cache
def system_index_columns() -> Sequence[SystemIndexColumn]:
    """The columns of all of them."""
    return [SystemIndexColumn(*row) for row in _rows("column")]


@cache
def system_constraints() -> Sequence[SystemConstraint]:
    """All constraints."""
    return [SystemConstraint(*row) for row in _rows("constraint")]


@cache
def shared_catalogs() -> Mapping[int, bool]:
    """Which tables have indexes, by oid, and whether they are shared by all databases."""
    return {index.table: index.shared for index in system_indexes().values()}


def _rows(kind: str) -> Sequence[Sequence[Any]]:
    found: list[Sequence[Any]] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        name, _, values = line.partition(" ")
        if name == kind:
            row = json.loads(values)
            found.append([tuple(one) if isinstance(one, list) else one for one in row])
    return found
