"""The collation of an expression, as far as it is not the default one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Collation:
    """The collation of an expression.

    `place`: position of the COLLATE clause that names it, if one does. `of_names`: it is "C"
    because a part of the expression is of type `name`.
    """

    name: str
    place: int | None = None
    of_names: bool = False
