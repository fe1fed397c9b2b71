"""CREATE CAST and DROP CAST: between an enum and a type of texts, WITH INOUT.

    CREATE CAST (varchar AS mood) WITH INOUT AS IMPLICIT ─▶ another definition of the enum

Such conversions exist anyway: a label is a text. A cast only says where they happen by themselves.
It belongs to the enum's definition (E3 of `sql/types/enums.py`), so creating one changes the tables
with columns of the enum as ALTER TYPE does. Hibernate makes two for each of its enums.

INVARIANTS
  H1  a stored text never loses a cast that it may rely on: DROP CAST is refused while a stored text
      names the enum, or belongs to a relation with columns of it.

Not here: casts WITH FUNCTION and WITHOUT FUNCTION, and those of other types (0A000).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pglast.enums import CoercionContext

from sql.binder.ddl.enums import redefined_enum
from sql.binder.resolve.type_names import find_user_type, resolve_type
from sql.binder.state import Binding
from sql.binder.stored.stored_texts import all_stored_texts, types_named_in
from sql.binder.stored.type_users import tables_with
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import (
    CatalogObject,
    DomainDefinition,
    EnumDefinition,
    ViewDefinition,
    relations_used_by,
)
from sql.errors import SqlError, not_supported
from sql.functions.table import find_cast
from sql.parser.syntax import Node, string_values
from sql.statements.ddl import ChangeObjects
from sql.types.enums import EnumCast
from sql.types.sql_type import SqlType, format_type, user_type_name

_CONTEXTS: Final = {
    CoercionContext.COERCION_IMPLICIT: "i",
    CoercionContext.COERCION_ASSIGNMENT: "a",
    CoercionContext.COERCION_EXPLICIT: "e",
}
_CREATE: Final = "CREATE CAST"
_DROP: Final = "DROP CAST"


def create_cast(binding: Binding, node: Node) -> ChangeObjects:
    """CREATE CAST. Raises 42704, 42710, 42P17, 0A000."""
    source, target = (_type(binding, one) for one in (node.sourcetype, node.targettype))
    if source == target:
        raise SqlError("42P17", "source data type and target data type are the same")
    enum = _enum(source, target)
    if enum is None:
        raise not_supported(f"{_CREATE} between types that are not an enum and a text", None)
    if node.func is not None:
        raise not_supported(f"{_CREATE} .. WITH FUNCTION", None)
    if not node.inout:
        raise SqlError("42P17", "source and target data types are not physically compatible")
    text, outward = _text(source, target)
    if any((text, outward) == (known, out) for known, out, _ in enum.casts):
        told = f"cast from type {_shown(source)} to type {_shown(target)} already exists"
        raise SqlError("42710", told)
    made: EnumCast = (text, outward, _CONTEXTS[node.context])
    redefined = redefined_enum(binding, enum, replace(enum, casts=(*enum.casts, made)))
    return replace(redefined, tag=_CREATE)


def drop_cast(binding: Binding, node: Node) -> ChangeObjects:
    """DROP CAST [IF EXISTS]; CASCADE drops nothing else. Raises 42704; 0A000 for a system cast."""
    ((source_name, target_name),) = node.objects
    try:
        source, target = (_type(binding, one) for one in (source_name, target_name))
    except SqlError as error:
        if not node.missing_ok or error.sqlstate != "42704":
            raise
        return ChangeObjects(_DROP, notices=(("00000", f"{error.message}, skipping", None),))
    enum = _enum(source, target)
    kept: tuple[EnumCast, ...] = ()
    if enum is not None:
        text, outward = _text(source, target)
        kept = tuple(one for one in enum.casts if one[:2] != (text, outward))
    if enum is None or kept == enum.casts:
        return _absent(node, source, target)
    users = [*_users(binding.context.catalog, enum)]
    if users:
        raise not_supported(f'{_DROP} while the definition of "{users[0]}" may use it', None)
    return replace(redefined_enum(binding, enum, replace(enum, casts=kept)), tag=_DROP)


def _absent(
    node: Node, source: SqlType | EnumDefinition, target: SqlType | EnumDefinition
) -> ChangeObjects:
    """What is said of a cast that nobody has created."""
    if isinstance(source, SqlType) and isinstance(target, SqlType):
        row = find_cast(source.name, target.name)
        if row is not None and source.name != target.name:
            raise not_supported(f"{_DROP} of a cast of PostgreSQL's own", None)
    if not node.missing_ok:
        told = f"cast from type {_shown(source)} to type {_shown(target)} does not exist"
        raise SqlError("42704", told)
    (one, other) = (".".join(string_values(name.names)) for name in node.objects[0])
    told = f"cast from type {one} to type {other} does not exist, skipping"
    return ChangeObjects(_DROP, notices=(("00000", told, None),))


def cast_dependency_details(found: object) -> list[str]:
    """The casts of an enum as the detail of 2BP01 lists them, in their order."""
    if not isinstance(found, EnumDefinition):
        return []
    own = user_type_name(found.schema, found.name)
    lines: list[str] = []
    for text, outward, _ in found.casts:
        sides = (own, format_type(SqlType(text)))
        source, target = sides if outward else sides[::-1]
        lines.append(f"cast from {source} to {target}")
    return lines


def _type(binding: Binding, node: Node) -> SqlType | EnumDefinition:
    found = find_user_type(binding, node)
    if isinstance(found, DomainDefinition):
        raise not_supported("a cast of a domain", None)
    if found is not None and not node.arrayBounds:
        return found
    try:
        # Modifiers do not count.
        return SqlType(resolve_type(binding, node).name)
    except SqlError as error:
        error.position = None
        raise


def _enum(
    source: SqlType | EnumDefinition, target: SqlType | EnumDefinition
) -> EnumDefinition | None:
    """The enum of a cast between one and a type of texts; None for other casts."""
    outward = isinstance(source, EnumDefinition)
    enum, other = (source, target) if outward else (target, source)
    if not isinstance(enum, EnumDefinition) or isinstance(other, EnumDefinition):
        return None
    names = (enum.type.name, other.name)
    return enum if find_cast(*(names if outward else names[::-1])) is not None else None


def _text(source: SqlType | EnumDefinition, target: SqlType | EnumDefinition) -> tuple[str, bool]:
    outward = isinstance(source, EnumDefinition)
    other = target if outward else source
    assert isinstance(other, SqlType), "the other side of the cast is a type of texts"
    return other.name, outward


def _shown(type_: SqlType | EnumDefinition) -> str:
    return format_type(type_ if isinstance(type_, SqlType) else type_.type)


def _users(catalog: Catalog, enum: EnumDefinition) -> Iterator[str]:
    """Descriptions of the stored texts that may rely on a cast of the enum (H1)."""
    oids = {table.oid for table in tables_with(catalog, enum)}
    views = [*catalog.defined_views()]
    while further := {view.oid for view in views if oids & {*relations_used_by(view)}} - oids:
        oids |= further
    for kept in all_stored_texts(catalog):
        if _relation(kept.of) in oids or (enum.schema, enum.name) in types_named_in(kept):
            yield kept.what


def _relation(thing: Table | CatalogObject) -> int:
    """The oid of the relation that a stored text belongs to; 0 for one of a domain."""
    if isinstance(thing, Table | ViewDefinition):
        return thing.oid
    return next(iter(relations_used_by(thing)), 0)
