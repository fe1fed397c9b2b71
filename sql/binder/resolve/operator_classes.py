"""Check which types have a default btree operator class, as keys and indexes need."""

from collections.abc import Sequence
from typing import Final

from sql.binder.resolve.catalog_lookup import schema_exists
from sql.binder.state import Binding
from sql.catalog.objects import TEXT_OPERATOR_CLASSES
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_schema
from sql.types.sql_type import TYPE_OIDS, SqlType, format_type, type_declaration


def is_default_class(binding: Binding, names: Sequence[str], type_: SqlType) -> bool:
    """Whether a named operator class is the default one of the type. Raises 42704, 3F000."""
    *schemas, name = names
    known = name in TEXT_OPERATOR_CLASSES or any(name == f"{other}_ops" for other in TYPE_OIDS)
    if schemas and schemas[-1] not in SYSTEM_SCHEMAS and not schema_exists(binding, schemas[-1]):
        raise undefined_schema(schemas[-1])
    if not known or schemas not in ([], ["pg_catalog"]):
        shown = ".".join([*schemas, name])
        message = f'operator class "{shown}" does not exist for access method "btree"'
        raise SqlError("42704", message)
    if type_.name in ("text", "varchar"):
        return name in ("text_ops", "varchar_ops")
    return type_.name not in TYPES_WITHOUT_OPERATOR_CLASS and name == f"{type_.name}_ops"


TYPES_WITHOUT_OPERATOR_CLASS: Final = frozenset({"json", "jsonpath", "unknown"})
"""Types without any operator class, which no index may contain."""


def check_key_type(type_: SqlType, place: int | None) -> None:
    """Refuse key types whose equal values may differ in representation, as keys are looked up by
    value.
    """
    if type_.name in TYPES_WITHOUT_OPERATOR_CLASS:
        raise no_operator_class(type_, "btree")
    if type_.element is not None or type_.name in ("interval", "jsonb") or type_.has_blanks:
        raise not_supported(f"a key of type {type_declaration(type_)}", place)


def no_operator_class(type_: SqlType, method: str) -> SqlError:
    """42704 for an index over a type without an order."""
    shown = format_type(type_)
    message = f'data type {shown} has no default operator class for access method "{method}"'
    hint = (
        "You must specify an operator class for the index or define a default operator class"
        " for the data type."
    )
    return SqlError("42704", message, hint=hint)
