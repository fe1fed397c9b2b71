"""Types of analyzed expressions: a type's name, its modifier, and the domain that it may be.

Users' types keep their schemas and names here; how they are shown depends on the search path.

INVARIANTS
  T1  `name` is the typname of a value's own type, below any domain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from sql.catalog.objects import Domain
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import SqlType, numeric, type_declaration

UserTypeName: TypeAlias = tuple[str, str]
"""Schema and name of a type that users have made."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type as an expression has it; `domain`: which one it is, if it is one."""

    name: str
    typmod: int = -1
    domain: UserTypeName | None = None

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

    @property
    def user_type(self) -> UserTypeName | None:
        """The user's type that this one is, or an array of."""
        if self.domain is not None:
            return self.domain
        name = self.name.removeprefix("_")
        return (enum_of(name).schema, enum_of(name).name) if is_enum(name) else None


BOOL_TYPE: Final = Type("bool")
INT4_TYPE: Final = Type("int4")
INT8_TYPE: Final = Type("int8")
TEXT_TYPE: Final = Type("text")
NUMERIC_TYPE: Final = Type("numeric")
RECORD_TYPE: Final = Type("record")
UNKNOWN_TYPE: Final = Type("unknown")


def type_of(type_: SqlType, domain: Domain | None = None) -> Type:
    """The type of a column."""
    named = None if domain is None else (domain.schema, domain.name)
    return Type(type_.name, type_.typmod, named)


_SCALE_BITS: Final = 0x7FF


def shown_type(type_: Type, name_of: Callable[[UserTypeName], str]) -> str:
    """As format_type_with_typemod() writes it; `name_of`: how a user's type is called."""
    name, user_type = type_.name, type_.user_type
    if user_type is not None:
        is_array = type_.is_array and type_.domain is None
        return name_of(user_type) + ("[]" if is_array else "")
    if name in ("numeric", "_numeric") and type_.typmod >= 4:
        packed = type_.typmod - 4
        precise = numeric(packed >> 16, packed & _SCALE_BITS)
        suffix = "[]" if type_.is_array else ""
        return type_declaration(precise) + suffix
    return type_declaration(SqlType(name, type_.typmod))
