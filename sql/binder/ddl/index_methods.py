"""Index methods: what PostgreSQL lets each of them do, and the types that it has classes for.

All methods are definitions here. A definition that PostgreSQL would refuse is refused with its
words; an operator class that is not known here is 0A000.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pglast.enums import SortByDir, SortByNulls

from sql.binder.resolve.operator_classes import no_operator_class
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node
from sql.types.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class _Method:
    """What a method can do besides holding one ascending column. `classes`: of types, by name, the
    operator class that is their own.
    """

    multicolumn: bool = True
    includes: bool = False
    classes: Callable[[SqlType], str | None] = lambda _: None


_MINMAX: Final = frozenset(
    {"int2", "int4", "int8", "oid", "text", "name", "bytea", "bpchar", "float4", "float8", "date",
     "time", "timestamp", "timestamptz", "interval", "numeric", "uuid", "char"}
)  # fmt: skip


def _brin(type_: SqlType) -> str | None:
    name = "text" if type_.name == "varchar" else type_.name
    return f"{name}_minmax_ops" if name in _MINMAX else None


def _gin(type_: SqlType) -> str | None:
    if type_.element is not None:
        return "array_ops"
    return "jsonb_ops" if type_.name == "jsonb" else None


def _spgist(type_: SqlType) -> str | None:
    return "text_ops" if type_.name in ("text", "varchar") else None


_METHODS: Final[Mapping[str, _Method]] = {
    "hash": _Method(multicolumn=False),
    "gin": _Method(classes=_gin),
    "gist": _Method(includes=True),
    "spgist": _Method(multicolumn=False, includes=True, classes=_spgist),
    "brin": _Method(classes=_brin),
}
"""All but btree."""

_OTHER_CLASSES: Final = {("gin", "jsonb"): frozenset({"jsonb_path_ops"})}
"""Classes that are shown, since they are not the type's own."""


def orders_rows(method: str) -> bool:
    """Whether its operator classes are those of btree, by name."""
    return method in ("btree", "hash")


def check_method(node: Node) -> None:
    """42704 for an unknown method, 0A000 for what PostgreSQL's does not do either."""
    name = node.accessMethod
    if name == "btree":
        return
    method = _METHODS.get(name)
    if method is None:
        raise SqlError("42704", f'access method "{name}" does not exist')
    orders = (SortByDir.SORTBY_DEFAULT, SortByNulls.SORTBY_NULLS_DEFAULT)
    ordered = [e for e in node.indexParams if (e.ordering, e.nulls_ordering) != orders]
    descends = any(e.ordering != SortByDir.SORTBY_DEFAULT for e in ordered)
    for found, what in (
        (node.unique, "unique indexes"),
        (node.indexIncludingParams and not method.includes, "included columns"),
        (len(node.indexParams) > 1 and not method.multicolumn, "multicolumn indexes"),
        (ordered, "ASC/DESC options" if descends else "NULLS FIRST/LAST options"),
    ):
        if found:
            raise SqlError("0A000", f'access method "{name}" does not support {what}')


def own_operator_class(method: str, type_: SqlType) -> str | None:
    """The operator class that a method which orders no rows has for a type."""
    return _METHODS[method].classes(type_)


def operator_class_shown(names: Sequence[str], type_: SqlType, method: str) -> str | None:
    """The operator class of a method that orders no rows, if it is not the type's own. `names`:
    empty for that. Raises 42704, 0A000.
    """
    own = own_operator_class(method, type_)
    if not names:
        if own is None:
            raise no_operator_class(type_, method)
        return None
    name = names[-1]
    if name in _OTHER_CLASSES.get((method, type_.name), ()):
        return name
    if name == own:
        return None
    raise not_supported(f"the operator class {name} of {method}")
