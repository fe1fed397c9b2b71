"""Resolve type names: PostgreSQL's built-in types, then user types along the search path.

    TypeName ─▶ a built-in type ─ or, along the search path, a user-defined one

INVARIANTS
  N1  PostgreSQL's own types come before the search path, as pg_catalog does.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from pglast import ast

from sql.binder.resolve.catalog_lookup import (
    check_qualified,
    look_up_type,
    named_relation,
    row_type_exists,
)
from sql.binder.state import BindContext, Binding
from sql.catalog.catalog import Catalog, Table, type_dependency
from sql.catalog.objects import Domain, DomainDefinition, EnumDefinition, UserType, ViewDefinition
from sql.catalog.system_catalogs import INFORMATION_SCHEMA, system_catalog
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.parser.type_names import is_builtin_type, resolve_type_name
from sql.types.bpchar import column_type
from sql.types.enums import enum_of, is_enum
from sql.types.sql_type import SqlType, array_of, format_type, plain_type

_DOMAINS: Final = {
    name: DomainDefinition(
        0, INFORMATION_SCHEMA, name, base=(*base, None, None, False), checks=checks
    )
    for name, base, checks in (
        ("cardinal_number", ("int4", -1), (("cardinal_number_domain_check", "VALUE >= 0"),)),
        ("character_data", ("varchar", -1), ()),
        ("sql_identifier", ("name", -1), ()),
        ("time_stamp", ("timestamptz", 2), ()),
        ("yes_or_no", ("varchar", 7), (("yes_or_no_check", "VALUE IN ('YES', 'NO')"),)),
    )
}
"""Those of information_schema, which no catalog lists: values are cast to them."""


def schema_domain(node: Node) -> DomainDefinition | None:
    """The domain of information_schema that a TypeName means; None for any other type."""
    *qualifier, name = string_values(node.names)
    plain = not (node.typmods or node.arrayBounds or node.setof)
    return _DOMAINS.get(name) if plain and qualifier[-1:] == [INFORMATION_SCHEMA] else None


def declared_type(binding: Binding, node: Node) -> tuple[SqlType, Domain | None]:
    """The value type of a TypeName, and its domain if it is one."""
    node = with_array_bounds(binding, node)
    found = find_user_type(binding, node)
    if not isinstance(found, DomainDefinition):
        return resolve_type(binding, node), None
    if node.typmods:
        message = f'type modifier is not allowed for type "{found.name}"'
        raise SqlError("42601", message, offset_to_position(node.location))
    if node.arrayBounds:
        raise not_supported("an array of a domain", offset_to_position(node.location))
    return found.type, found.domain


def resolve_type(binding: Binding, node: Node) -> SqlType:
    """The type that a TypeName means (N1). Raises 42704, 42601, 22023, 3F000, 0A000."""
    node = with_array_bounds(binding, node)
    found = find_user_type(binding, node)
    if isinstance(found, DomainDefinition):
        raise not_supported("a domain here", offset_to_position(node.location))
    if found is None:
        return resolve_type_name(node)
    if node.typmods:
        message = f'type modifier is not allowed for type "{found.name}"'
        raise SqlError("42601", message, offset_to_position(node.location))
    return array_of(found.type) if node.arrayBounds else found.type


def with_array_bounds(binding: Binding, node: Node) -> Node:
    """A TypeName that calls the arrays of an enum `_x`, written as `x[]`; any other as it is."""
    *qualifier, name = string_values(node.names)
    if not name.startswith("_") or node.arrayBounds or node.setof or node.pct_type:
        return node
    if qualifier[-1:] == ["pg_catalog"] or (not qualifier and is_builtin_type(name)):
        return node
    for schema in qualifier[-1:] or binding.context.search_path:
        if look_up_type(binding, name, schema=schema) is not None:
            return node
        if isinstance(look_up_type(binding, name[1:], schema=schema), EnumDefinition):
            names = (*node.names[:-1], ast.String(sval=name[1:]))
            bounds = (ast.Integer(ival=-1),)
            return ast.TypeName(
                names=names,
                typmods=node.typmods,
                typemod=node.typemod,
                arrayBounds=bounds,
                location=node.location,
            )
    return node


def find_user_type(binding: Binding, node: Node) -> UserType | None:
    """The user-defined type of that name; None if the type is built in or undefined."""
    *qualifier, name = string_values(node.names)
    if node.setof or node.pct_type or not name:
        return None
    check_qualified(binding, [*qualifier, name])
    schema = qualifier[-1] if qualifier else None
    if schema == "pg_catalog" or (schema is None and is_builtin_type(name)):
        return None
    found = look_up_type(binding, name, schema=schema, uses=True)
    if found is None:
        for candidate in binding.context.search_path if schema is None else (schema,):
            if row_type_exists(binding, candidate, name):
                raise not_supported(
                    f'the type of rows of "{name}"', offset_to_position(node.location)
                )
    theirs = name in _DOMAINS or system_catalog(INFORMATION_SCHEMA, name) is not None
    if found is None and schema == INFORMATION_SCHEMA and theirs:
        raise not_supported(f"type {schema}.{name}", offset_to_position(node.location))
    known = (INFORMATION_SCHEMA, *binding.context.catalog.schemas)
    if found is None and schema is not None and schema in known:
        raise SqlError(
            "42704", f'type "{schema}.{name}" does not exist', offset_to_position(node.location)
        )
    if found is None and schema is not None:
        raise undefined_schema(schema, offset_to_position(node.location))
    return found


def current_type(context: BindContext, type_: SqlType | None) -> SqlType | None:
    """A type that a client declared, as it is defined now. Raises 42704.

    The client's type arrives as an oid (`unresolved_type`), as a name, or as defined when the
    statement was prepared.
    """
    if type_ is None:
        return None
    name = type_.name.removeprefix("_")
    if name.startswith(_NAMED):
        found = _with_name(context, name.removeprefix(_NAMED))
        return array_of(found) if type_.element is not None else found
    if name.startswith(_UNRESOLVED):
        return _with_oid(context.catalog, int(name.removeprefix(_UNRESOLVED)))
    if not is_enum(name):
        return type_
    found = _with_oid(context.catalog, enum_of(name).oid)
    return found if name == type_.name else array_of(found)


def use_declared_types(binding: Binding) -> None:
    """Record the enums that the client declared parameters to be of: their values are its."""
    for type_ in binding.parameters:
        name = "" if type_ is None else type_.name.removeprefix("_")
        if is_enum(name):
            oid = enum_of(name).oid
            found = next(one for one in binding.context.catalog.enums() if one.oid == oid)
            binding.uses.add(type_dependency(found.schema, found.name, found))


def latest_types(catalog: Catalog, types: Sequence[SqlType]) -> Sequence[SqlType]:
    """Types as the catalog defines them now; types that it does not know are unchanged."""
    known = {found.oid: found.type for found in catalog.enums()}
    return [
        _replaced(type_, known) if is_enum(type_.name.removeprefix("_")) else type_
        for type_ in types
    ]


def _replaced(type_: SqlType, known: Mapping[int, SqlType]) -> SqlType:
    found = known.get(enum_of(type_.name.removeprefix("_")).oid)
    if found is None:
        return type_
    return found if type_.element is None else array_of(found)


_UNRESOLVED: Final = "oid "


def unresolved_type(oid: int) -> SqlType:
    """A type known only by its oid; `current_type` resolves it."""
    return SqlType(f"{_UNRESOLVED}{oid}")


_NAMED: Final = "named "


def declared_type_by_name(node: Node) -> SqlType:
    """The type of a TypeName where no catalog is at hand; `current_type` resolves users' types.

    It has no modifier, as for PostgreSQL's PREPARE.
    """
    *qualifier, name = string_values(node.names)
    if qualifier[:1] == ["pg_catalog"] or (not qualifier and is_builtin_type(name)):
        return column_type(plain_type(resolve_type_name(node).name))
    called = SqlType(_NAMED + json.dumps([*qualifier[-1:], name]))
    return array_of(called) if node.arrayBounds else called


def _with_name(context: BindContext, encoded: str) -> SqlType:
    *qualifier, name = cast("list[str]", json.loads(encoded))
    for schema in qualifier or context.search_path:
        found = context.catalog.type_named(schema, name)
        if found is not None:
            return found.type
        if isinstance(named_relation(context.catalog, schema, name), Table | ViewDefinition):
            raise not_supported(f'the type of rows of "{name}"')
    raise SqlError("42704", f'type "{".".join([*qualifier, name])}" does not exist')


def _with_oid(catalog: Catalog, oid: int) -> SqlType:
    for found in catalog.enums():
        if oid in (found.oid, found.array):
            return found.type if oid == found.oid else array_of(found.type)
    for domain in catalog.domains():
        if oid == domain.oid:
            return domain.type
    raise SqlError("42704", f"type with OID {oid} does not exist")


def refuse_pseudo_type(name: str, type_: SqlType) -> None:
    """42P16 for a pseudo-type as the type of a column, 0A000 for a row type."""
    if type_.row is not None:
        raise not_supported(f'column "{name}" of type {format_type(type_)}')
    if type_.name in ("void", "record", "_record"):
        raise SqlError("42P16", f'column "{name}" has pseudo-type {format_type(type_)}')
