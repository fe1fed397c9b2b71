"""Derive oids for catalog objects that have none of their own: schemas, constraints, key indexes.

INVARIANTS
  W1  tables have the catalog's oids, system objects PostgreSQL's. An object without one (a user's
      schema, a constraint) gets it from its name, the same in every session and version.
"""

import zlib
from collections.abc import Mapping
from typing import Final

from sql.catalog.catalog import Key, Table
from sql.catalog.meridian_schema import SYSTEM_SCHEMA, SYSTEM_SCHEMA_ALIAS
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, PG_CATALOG

DATABASE_OIDS: Final[Mapping[str, int]] = {
    "template1": 1,
    "template0": 4,
    "postgres": 5,
    "meridian": 2_281_701_376,
}
"""All names of the one database. Tools hide those below 16384; none that is allocated is so
large, and none that is derived is so round."""

DATABASE_OID: Final = DATABASE_OIDS["meridian"]
_SCHEMA_OIDS: Final = {PG_CATALOG: 11, "public": 2200, INFORMATION_SCHEMA: 13_000}


def derived_oid(*names: object) -> int:
    """An oid computed from names (W1), above those that are allocated."""
    text = "\0".join(map(str, names)).encode("utf-8", "surrogatepass")
    return (1 << 31) + zlib.crc32(text) % (1 << 31)


def schema_oid(name: str) -> int:
    """The oid of a schema."""
    if name == SYSTEM_SCHEMA_ALIAS:
        name = SYSTEM_SCHEMA
    known = _SCHEMA_OIDS.get(name)
    return derived_oid("schema", name) if known is None else known


def cast_oid(enum: int, text: str, *, outward: bool) -> int:
    """The oid of a cast between an enum and a type of texts."""
    return derived_oid("cast", enum, text, outward)


def row_type_oid(relation: int) -> int:
    """The oid of the row type of a table or view."""
    return derived_oid("row type", relation)


def row_array_oid(relation: int) -> int:
    """The oid of arrays of these rows."""
    return derived_oid("row array", relation)


def constraint_oid(table: Table, name: str) -> int:
    """The oid of a table's constraint."""
    return derived_oid("constraint", table.oid, name)


def index_oid(table: Table, key: Key) -> int:
    """The oid of the index that PostgreSQL would have for a key."""
    return derived_oid("index", table.oid, key.name)
