"""Rows that PostgreSQL has from the start, recorded in files: operators, the SQL standard.

    sql/data/pg_operator.txt    operators, their classes and families, aggregates
    sql/data/pg_description.txt what is said about them
    sql/data/pg_keywords.txt    what pg_get_keywords() gives
    sql/data/pg_recorded.txt    types, casts, collations, ranges; conversions, text search and wait
                                events, of which none acts here; pg_stat_io without its counts
    sql/data/sql_standard.txt   the tables sql_* of information_schema

A line is the name of a relation and a JSON array, the values of a row. The files are written by
`tests/unit/sql/postgresql_operators.py` and `postgresql_catalogs.py`, from a real server.

INVARIANTS
  B1  what Meridian refuses is listed, too, as a build of PostgreSQL lists what it was made without.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.state import BindContext
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, PG_CATALOG, system_catalog
from sql.types.sql_type import Value

_DATA: Final = Path(__file__).parents[2] / "sql" / "data"
_OPERATORS: Final = "pg_operator.txt"
_COMMENTS: Final = "pg_description.txt"
_KEYWORDS: Final = "pg_keywords.txt"
_OTHERS: Final = "pg_recorded.txt"
_STANDARD: Final = "sql_standard.txt"


@cache
def _recorded(file: str) -> Mapping[str, Sequence[Sequence[Value]]]:
    found: dict[str, list[Sequence[Value]]] = {}
    for line in (_DATA / file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, values = line.partition(" ")
            found.setdefault(name, []).append(json.loads(values))
    return found


def _rows(schema: str, file: str, name: str, _context: BindContext) -> Iterator[NamedRow]:
    relation = system_catalog(schema, name)
    assert relation is not None, "it is known"
    columns = [column.name for column in relation.columns]
    return (dict(zip(columns, row, strict=True)) for row in _recorded(file)[name])


def recorded_comments() -> Iterator[NamedRow]:
    """The rows of pg_description that PostgreSQL is born with."""
    for relation, oid, text in _recorded(_COMMENTS)["pg_description"]:
        yield {"objoid": oid, "classoid": relation, "description": text}


def recorded_types(context: BindContext) -> Iterator[NamedRow]:
    """The rows of pg_type that PostgreSQL is born with, but for the types of catalogs' rows."""
    return _rows(PG_CATALOG, _OTHERS, "pg_type", context)


def recorded_casts(context: BindContext) -> Iterator[NamedRow]:
    """The rows of pg_cast that PostgreSQL is born with."""
    return _rows(PG_CATALOG, _OTHERS, "pg_cast", context)


def recorded_collations() -> Iterator[tuple[str, int]]:
    """Names and encodings of the rows of pg_collation."""
    for _, name, _, _, _, _, encoding, *_ in _recorded(_OTHERS)["pg_collation"]:
        assert isinstance(encoding, int), "it has no NULL"
        yield str(name), encoding


@cache
def operator_class_oids() -> Mapping[tuple[int, str], int]:
    """The oids of operator classes, by the oid of their method and by name."""
    found: dict[tuple[int, str], int] = {}
    for oid, method, name, *_ in _recorded(_OPERATORS)["pg_opclass"]:
        assert isinstance(oid, int), "it is an oid"
        assert isinstance(method, int), "it is an oid"
        found[method, str(name)] = oid
    return found


RECORDED_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    name: partial(_rows, PG_CATALOG, _OPERATORS, name)
    for name in (
        "pg_aggregate", "pg_amop", "pg_amproc", "pg_opclass", "pg_operator", "pg_opfamily"
    )
} | {
    name: partial(_rows, PG_CATALOG, _OTHERS, name)
    for name in (
        "pg_collation", "pg_conversion", "pg_range", "pg_ts_config", "pg_ts_config_map",
        "pg_ts_dict", "pg_ts_parser",
        "pg_stat_io", "pg_ts_template", "pg_wait_events",
    )
} | {"meridian_keywords": partial(_rows, PG_CATALOG, _KEYWORDS, "meridian_keywords")}  # fmt: skip
STANDARD_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    name: partial(_rows, INFORMATION_SCHEMA, _STANDARD, name)
    for name in ("sql_features", "sql_implementation_info", "sql_parts", "sql_sizing")
}
