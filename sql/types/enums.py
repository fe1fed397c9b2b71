"""Enum types: the name of an enum's SqlType encodes its whole definition.

    CREATE TYPE mood AS ENUM ('sad', 'ok') ─▶ enum[16400,16401,"public","mood",["sad","ok"]]

Types are compared by name everywhere (overloads, casts, caches, columns of tables). An enum's name
is its whole definition. So nobody needs a catalog to compare, print or check a value, and nothing
cached for one definition is ever used for another. Users see the plain name
(`sql/types/sql_type.py` `display`).

INVARIANTS
  E1  a value of an enum is the text of its label, in plans, in engines and in files; equal labels
      are equal values. Only its order is not that of the text: `sql/emit/enums.py`.
  E2  a column's type is the definition that its catalog has (K5 of `coordinator/core/catalog.py`):
      a change of an enum gives every table that uses it another version.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from sql.types.catalog_types import HELD_AS

_PREFIX: Final = "enum["


@dataclass(frozen=True, slots=True)
class EnumType:
    """A definition: labels in their order, the oids of the type and of its arrays."""

    oid: int
    array: int
    schema: str
    name: str
    labels: tuple[str, ...]

    @property
    def type_name(self) -> str:
        """The name of the SqlType."""
        parts = [self.oid, self.array, self.schema, self.name, self.labels]
        return "enum" + json.dumps(parts, separators=(",", ":"))


def is_enum(name: str) -> bool:
    """Whether a type's name is that of an enum."""
    return name.startswith(_PREFIX)


@lru_cache(maxsize=2_000)
def enum_of(name: str) -> EnumType:
    """The definition behind the name of an enum."""
    assert is_enum(name), f"{name} is no enum"
    oid, array, schema, plain, labels = cast(
        "tuple[int, int, str, str, list[str]]", json.loads(name.removeprefix("enum"))
    )
    return EnumType(oid, array, schema, plain, tuple(labels))


def storage_type_name(name: str) -> str:
    """The type that engines and files use for this one: text for an enum (E1), and that which a
    type of catalogs is held as.
    """
    return "text" if is_enum(name) else HELD_AS.get(name, name)
