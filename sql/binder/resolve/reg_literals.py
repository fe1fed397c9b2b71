"""Literals of the reg types: resolve a name to an oid at binding time (regclassin and its kin).

    't'::regclass ─▶ the table that t means here      '16384'::regclass, '-' ─▶ the number, 0

INVARIANTS
  G1  such a literal is a look-up, also that of a type (Q3 of `catalog_lookup.py`): the statement
      gets an oid, and whoever makes more of it records a use.
"""

from collections.abc import Sequence
from typing import Final

from sql.binder.resolve.catalog_lookup import look_up_table, named_relation, schema_exists
from sql.binder.resolve.function_names import function_oid_by_name, function_oid_by_signature
from sql.binder.resolve.role_names import roles_of
from sql.binder.resolve.type_names import find_user_type, resolve_type, with_array_bounds
from sql.binder.state import Binding
from sql.catalog.catalog import NameDependency
from sql.catalog.extension_relations import extension_view
from sql.catalog.meridian_schema import SYSTEM_SCHEMA_NAMES
from sql.catalog.objects import EXTENSION_SPACE, DomainDefinition
from sql.catalog.oids import index_oid, schema_oid
from sql.catalog.system_catalogs import CATALOG_SCHEMAS, PG_CATALOG
from sql.catalog.system_indexes import system_indexes
from sql.catalog.temporary import TEMPORARY_SCHEMA_ALIAS
from sql.errors import SqlError, undefined_schema
from sql.functions.pg_proc import function_only_types
from sql.functions.table import Function, FunctionKind
from sql.parser.qualified_names import qualified_name_parts, relation_name_parts
from sql.parser.syntax import Node, string_values
from sql.parser.type_names import parse_type_name
from sql.plan.nodes import Const, Expr
from sql.types.catalog_types import catalog_types
from sql.types.sql_type import OID, TYPE_NAMES_BY_OID, SqlType, format_type

_OID_MAX: Final = (1 << 32) - 1


def reg_literal(binding: Binding, text: str, type_: SqlType, place: int | None) -> Const:
    """The literal as an oid of the type. Raises the errors of the type's input function."""
    if text == "-":
        return Const(0, type_)
    if text.isdecimal() and text.isascii():
        if int(text) > _OID_MAX:
            raise SqlError("22003", f'value "{text}" is out of range for type oid', place)
        return Const(int(text), type_)
    match type_.name:
        case "regclass":
            return Const(_relation(binding, text, place), type_)
        case "regtype":
            return Const(_type(binding, text, place), type_)
        case "regnamespace":
            return Const(_namespace(binding, text, place), type_)
        case "regrole":
            return Const(_role(binding, text, place), type_)
        case "regproc":
            return Const(_function(function_oid_by_name(text, place), text, place), type_)
        case _:
            return Const(_function(function_oid_by_signature(text, place), text, place), type_)


def fold_reg_call(binding: Binding, row: Function, args: Sequence[Expr]) -> Const | None:
    """The oid that a call with a constant name returns, if the name is known at binding time.

    Otherwise the call is rewritten and raises PostgreSQL's error when the statement runs.
    """
    type_ = SqlType(row.result)
    if type_.name not in _KINDS or len(args) != 1 or not isinstance(args[0], Const):
        return None
    text = args[0].value
    # A text's cast to regclass takes no numbers, and these are rare.
    if not isinstance(text, str) or text == "-" or text.isdecimal():
        return None
    if row.name in _OF_PLAIN_NAMES:
        return _of_plain_name(binding, row, text)
    if not (row.name.startswith("to_reg") or row.kind is FunctionKind.CAST):
        return None
    try:
        return reg_literal(binding, text, type_, None)
    except SqlError:
        return None


_KINDS: Final = ("regclass", "regtype", "regnamespace", "regrole", "regproc", "regprocedure", "oid")
_OF_PLAIN_NAMES: Final = ("meridian_role", "meridian_role_named", "meridian_schema")


def _of_plain_name(binding: Binding, row: Function, name: str) -> Const | None:
    oid: int | None = None
    if row.name != "meridian_schema":
        role = roles_of(binding.context).named(name)
        binding.read_catalog()
        binding.uses_session = True
        oid = None if role is None else role.oid
        if row.name == "meridian_role" and name == "public":
            oid = 0
    elif name in (*CATALOG_SCHEMAS, *SYSTEM_SCHEMA_NAMES) or schema_exists(binding, name):
        oid = schema_oid(name)
    return None if oid is None else Const(oid, OID)


def regtype_display_text(constant: Const) -> str | None:
    """The display text of a constant regtype of a built-in type, whose name cannot change."""
    oid = constant.value
    if constant.type.name != "regtype" or not isinstance(oid, int) or oid not in TYPE_NAMES_BY_OID:
        return None
    return format_type(SqlType(TYPE_NAMES_BY_OID[oid]))


def _relation(binding: Binding, text: str, place: int | None) -> int:
    parts = relation_name_parts(text, binding.context.database, place)
    schema = parts[0] if len(parts) > 1 else None
    if schema == TEMPORARY_SCHEMA_ALIAS:
        schema = binding.context.temporary
    for candidate in (None, *binding.context.search_path) if schema is None else (schema,):
        found = _in_schema(binding, candidate, parts[-1])
        if found is not None:
            return found
    raise SqlError("42P01", f'relation "{".".join(parts)}" does not exist', place)


def _in_schema(binding: Binding, schema: str | None, name: str) -> int | None:
    """What is called so in a schema; None: in PostgreSQL's own, which comes first."""
    if schema is None or schema in CATALOG_SCHEMAS or schema in SYSTEM_SCHEMA_NAMES:
        # Q2 of `catalog_lookup.py`: nothing of users is there.
        table = look_up_table(binding, name, schema=PG_CATALOG if schema is None else schema)
        if table is None and schema in (None, PG_CATALOG) and name in system_indexes():
            return system_indexes()[name].oid
        return None if table is None else table.oid
    found = named_relation(binding.context.catalog, schema, name)
    if isinstance(found, tuple):
        binding.read_catalog()
        return index_oid(*found)
    view = extension_view(binding.context.catalog, schema, name) if found is None else None
    if view is not None:
        table, extension = view
        of_extension = NameDependency(schema, extension.name, extension.oid, EXTENSION_SPACE)
        binding.look_ups.add(of_extension)
        return table.oid
    oid = None if found is None else found.oid
    binding.look_ups.add(NameDependency(schema, name, oid))
    return oid


def _type(binding: Binding, text: str, place: int | None) -> int:
    name = parse_type_name(text, place)
    known = _catalog_type(name)
    if known is not None:
        return known
    used = {*binding.uses}
    try:
        name = with_array_bounds(binding, name)
        found = find_user_type(binding, name)
        if isinstance(found, DomainDefinition) and not name.arrayBounds:
            return found.oid
        return resolve_type(binding, name).oid
    except SqlError as error:
        raise error.at(place) from None
    finally:
        # G1: it is asked for like a type that is used.
        binding.look_ups |= binding.uses - used
        binding.uses = used


def _catalog_type(name: Node) -> int | None:
    """The oid of a type that only catalogs, or functions, have."""
    *schema, plain = string_values(name.names)
    if schema not in ([], [PG_CATALOG]):
        return None
    called = f"_{plain}" if name.arrayBounds else plain
    found = catalog_types().get(called)
    if found is not None:
        return found.oid
    return next((oid for oid, (own, _) in function_only_types().items() if own == called), None)


def _namespace(binding: Binding, text: str, place: int | None) -> int:
    parts = qualified_name_parts(text, place)
    known = (*CATALOG_SCHEMAS, *SYSTEM_SCHEMA_NAMES)
    if len(parts) != 1:
        raise SqlError("42602", "invalid name syntax", place)
    if parts[0] not in known and not schema_exists(binding, parts[0]):
        raise undefined_schema(parts[0], place)
    return schema_oid(parts[0])


def _function(oid: int | None, text: str, place: int | None) -> int:
    if oid is None:
        raise SqlError("42883", f'function "{text}" does not exist', place)
    return oid


def _role(binding: Binding, text: str, place: int | None) -> int:
    parts = qualified_name_parts(text, place)
    if len(parts) != 1:
        raise SqlError("42602", "invalid name syntax", place)
    role = roles_of(binding.context).named(parts[0])
    if role is None:
        raise SqlError("42704", f'role "{parts[0]}" does not exist', place)
    binding.read_catalog()
    binding.uses_session = True
    return role.oid
