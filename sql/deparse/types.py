"""Types of analyzed expressions: a type's name, its modifier, and the domain that it may be.

INVARIANTS
  T1  `name` is the typname of a value's own type, below any domain.
"""

from dataclasses import dataclass
from typing import Final

from sql.catalog.objects import Domain
from sql.types.sql_type import SqlType, numeric, type_declaration


@dataclass(frozen=True, slots=True)
class Type:
    """A type as an expression has it; `domain`: as messages call it, empty if it is none."""

    name: str
    typmod: int = -1
    domain: str = ""

    @property
    def bare(self) -> "Type":
        """Without modifier and domain."""
        return Type(self.name)

    @property
    def is_array(self) -> bool:
        """Whether its values are arrays."""
        return self.name.startswith("_")

    @property
    def element(self) -> "Type":
        """The type of its elements."""
        return Type(self.name[1:], self.typmod)


BOOL_TYPE: Final = Type("bool")
INT4_TYPE: Final = Type("int4")
INT8_TYPE: Final = Type("int8")
TEXT_TYPE: Final = Type("text")
NUMERIC_TYPE: Final = Type("numeric")
RECORD_TYPE: Final = Type("record")
UNKNOWN_TYPE: Final = Type("unknown")


def type_of(type_: SqlType, domain: Domain | None = None) -> Type:
    """The type of a column."""
    return Type(type_.name, type_.typmod, "" if domain is None else domain.shown)


_SCALE_BITS: Final = 0x7FF


def shown_type(type_: Type) -> str:
    """As format_type_with_typemod() writes it."""
    if type_.domain:
        return type_.domain
    name = type_.name
    if name in ("numeric", "_numeric") and type_.typmod >= 4:
        packed = type_.typmod - 4
        precise = numeric(packed >> 16, packed & _SCALE_BITS)
        suffix = "[]" if type_.is_array else ""
        return type_declaration(precise) + suffix
    return type_declaration(SqlType(name, type_.typmod))
