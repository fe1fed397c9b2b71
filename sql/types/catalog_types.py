"""Types that only catalogs have (xid, aclitem, int2vector ..): how they are held and described.

    relacl _aclitem ─▶ bound, joined and compared as _text ─▶ the result says aclitem[]

INVARIANTS
  U1  such a type is that of a column of a result, of a row of pg_type and of a name that a reg type
      shows. Everywhere else a value has the type that it is held as.
  U2  the text of a value is that of the type it is held as; a vector has no braces.

`sql/data/catalog_types.txt` is written by `tests/unit/sql/postgresql_catalogs.py`, from a real
server.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parents[1] / "data" / "catalog_types.txt"

HELD_AS: Final[Mapping[str, str]] = {
    "xid": "int8", "cid": "int8", "xid8": "int8", "tid": "text", "pg_lsn": "text",
    "aclitem": "text", "pg_node_tree": "text", "int2vector": "_int2", "oidvector": "_oid",
    "_xid": "_int8", "_cid": "_int8", "_xid8": "_int8", "_tid": "_text", "_pg_lsn": "_text",
    "_aclitem": "_text",
    "anyarray": "text", "inet": "text", "pg_ndistinct": "text", "pg_dependencies": "text",
    "pg_mcv_list": "text", "_pg_statistic": "_text",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CatalogType:
    """A row of pg_type."""

    name: str
    oid: int
    size: int
    by_value: bool
    category: str
    alignment: str
    storage: str
    collation: int
    element: int
    array: int


@cache
def catalog_types() -> Mapping[str, CatalogType]:
    """By name, in the order of their oids."""
    found: dict[str, CatalogType] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, oid, size, by_value, category, alignment, storage, *oids = line.split()
            collation, element, array = map(int, oids)
            found[name] = CatalogType(
                name,
                int(oid),
                int(size),
                by_value == "t",
                category,
                alignment,
                storage,
                collation,
                element,
                array,
            )
    return found


def is_catalog_type(name: str) -> bool:
    """Whether only catalogs have the type."""
    return name in catalog_types()
