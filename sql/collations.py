"""COLLATE: text is ordered by code points, and nothing else is on offer."""

from typing import Final

from sql.binding import Binding
from sql.errors import SqlError, not_supported
from sql.look_up import qualifying_schema
from sql.syntax import Node, at, strings
from sql.types import SqlType, display

_BY_CODE_POINT: Final = frozenset({"C", "POSIX", "default", "ucs_basic", "C.utf8", "pg_c_utf8"})


def check_collation(binding: Binding, node: Node, type_: SqlType) -> None:
    """A COLLATE clause at values of a type: 0A000 for another order, 42804 for no texts."""
    *_, name = names = strings(node.collname)
    if qualifying_schema(binding, names, node.location) not in (None, "pg_catalog"):
        message = f'collation "{".".join(names)}" for encoding "UTF8" does not exist'
        raise SqlError("42704", message, at(node.location))
    if name not in _BY_CODE_POINT:
        raise not_supported(f'collation "{name}"', at(node.location))
    if type_.category not in ("S", "X") and (type_.element or type_).category not in ("S", "X"):
        message = f"collations are not supported by type {display(type_.bare())}"
        raise SqlError("42804", message, at(node.location))
