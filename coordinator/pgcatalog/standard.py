"""Rows of information_schema about the SQL standard: PostgreSQL's own, recorded in a file.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from coordinator.pgcatalog.information_schema import NamedRow
from sql.binder.state import BindContext
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, system_catalog
from sql.types.sql_type import Value

_FILE: Final = Path(__file__).parents[2] / "sql" / "data" / "sql_standard.txt"
_NAMES: Final = ("sql_features", "sql_implementation_info", "sql_parts", "sql_sizing")


@cache
def _recorded() -> Mapping[str, Sequence[Sequence[Value]]]:
    """Lines of a relation and a JSON array: the values of a row."""
    found: dict[str, list[Sequence[Value]]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, values = line.partition(" ")
            found.setdefault(name, []).append(json.loads(values))
    return found


def _rows(name: str, _context: BindContext) -> Iterator[NamedRow]:
    relation = system_catalog(INFORMATION_SCHEMA, name)
    assert relation is not None, "it is known"
    columns = [column.name for column in relation.columns]
    return (dict(zip(columns, row, strict=True)) for row in _recorded()[name])


STANDARD_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    name: partial(_rows, name) for name in _NAMES
}
