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
  E3  the casts that CREATE CAST has made are part of the name, too, so whether a conversion is
      implicit needs no catalog either. A definition without any has the name that it had before.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, cast

from sql.types.catalog_types import HELD_AS

_PREFIX: Final = "enum["


EnumCast: TypeAlias = tuple[str, bool, str]
"""The type of texts, whether the cast leads to it (and not to the enum), and `castcontext`."""


@dataclass(frozen=True, slots=True)
class EnumType:
    """A definition: labels in their order, the oids of the type and of its arrays."""

    oid: int
    array: int
    schema: str
    name: str
    labels: tuple[str, ...]
    casts: tuple[EnumCast, ...] = ()
    """Those of CREATE CAST, in their order (E3)."""

    @property
    def type_name(self) -> str:
        """The name of the SqlType."""
        parts = [self.oid, self.array, self.schema, self.name, self.labels]
        parts += [self.casts] if self.casts else []
        return "enum" + json.dumps(parts, separators=(",", ":"))


def is_enum(name: str) -> bool:
    """Whether a type's name is that of an enum."""
    return name.startswith(_PREFIX)


@lru_cache(maxsize=2_000)
def enum_of(name: str) -> EnumType:
    """The definition behind the name of an enum."""
    assert is_enum(name), f"{name} is no enum"
    parts: list[object] = json.loads(name.removeprefix("enum"))
    oid, array, schema, plain, labels = cast("tuple[int, int, str, str, list[str]]", parts[:5])
    further = cast("list[list[EnumCast]]", parts[5:])
    casts = [(text, outward, context) for made in further for text, outward, context in made]
    return EnumType(oid, array, schema, plain, tuple(labels), tuple(casts))


def created_cast_context(source: str, target: str) -> str | None:
    """The context that CREATE CAST gave the cast between an enum and a type of texts (E3)."""
    outward = is_enum(source)
    enum, text = (source, target) if outward else (target, source)
    if not is_enum(enum) or is_enum(text):
        return None
    made = enum_of(enum).casts
    return next((context for to, out, context in made if (to, out) == (text, outward)), None)


def storage_type_name(name: str) -> str:
    """The type that engines and files use for this one: text for an enum (E1), and that which a
    type of catalogs is held as.
    """
    return "text" if is_enum(name) else HELD_AS.get(name, name)
