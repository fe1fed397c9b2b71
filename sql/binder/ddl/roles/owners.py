"""ALTER .. OWNER TO, REASSIGN OWNED and DROP OWNED."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pglast.enums import AlterTableType, ObjectType

from sql.binder.ddl.comments import find_relation
from sql.binder.ddl.extended_statistics import find_statistics
from sql.binder.ddl.roles.grant_targets import type_to_grant
from sql.binder.resolve.catalog_lookup import check_database, relation_kind, schema_exists
from sql.binder.resolve.database_names import elsewhere
from sql.binder.resolve.role_names import resolve_role, roles_of
from sql.binder.state import Binding
from sql.binder.stored.type_users import find_domain
from sql.catalog.acl import OWNER, ObjectPrivileges, acl_with_owner, acl_without_role, roles_in_acl
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import CatalogObject, SequenceDefinition, Subject
from sql.catalog.ownership import (
    DATABASE_SUBJECT,
    OwnedObject,
    object_privileges,
    owned_object,
    owned_objects,
    owned_schema,
)
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, string_values
from sql.statements.ddl import ChangePrivileges

_WORDS: Final = {
    ObjectType.OBJECT_TABLE: "TABLE",
    ObjectType.OBJECT_VIEW: "VIEW",
    ObjectType.OBJECT_SEQUENCE: "SEQUENCE",
    ObjectType.OBJECT_INDEX: "INDEX",
    ObjectType.OBJECT_MATVIEW: "MATERIALIZED VIEW",
}


def changes_owner(node: Node) -> bool:
    """Whether an ALTER TABLE consists of OWNER TO alone."""
    return node.objtype in _WORDS and all(
        command.subtype == AlterTableType.AT_ChangeOwner for command in node.cmds
    )


def alter_relation_owner(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER TABLE, VIEW, SEQUENCE .. OWNER TO."""
    word, name = _WORDS[node.objtype], node.relation.relname
    tag = f"ALTER {word}"
    check_database(binding, node.relation, placed=False)
    schema = node.relation.schemaname
    try:
        found = find_relation(binding, [name] if schema is None else [schema, name])
    except SqlError as error:
        if not node.missing_ok or error.sqlstate not in ("42P01", "3F000"):
            raise
        text = f'relation "{name}" does not exist, skipping'
        return ChangePrivileges(tag, notices=(SqlError("00000", text),))
    kind = relation_kind(found)
    if word != "TABLE" and kind != word.lower():
        raise SqlError(
            "42809", f'"{name}" is not {"an" if word == "INDEX" else "a"} {word.lower()}'
        )
    new = resolve_role(binding, roles_of(binding.context), node.cmds[-1].newowner).oid
    if isinstance(found, tuple) or kind == "index":
        text = f'cannot change owner of index "{name}"'
        hint = "Change the ownership of the index's table instead."
        return ChangePrivileges(tag, notices=(SqlError("42809", text, hint=hint),))
    if isinstance(found, SequenceDefinition) and found.owner:
        table = binding.context.catalog.by_oid(found.owner)
        assert table is not None, "a sequence goes with its table"
        detail = f'Sequence "{name}" is linked to table "{table.name}".'
        raise SqlError("0A000", f'cannot change owner of sequence "{name}"', detail=detail)
    things = _with_own(binding.context.catalog, found)
    return ChangePrivileges(tag, rights=tuple(_owned(binding.context.catalog, things, new)))


def alter_owner(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER SCHEMA, TYPE, DOMAIN, DATABASE_SUBJECT .. OWNER TO."""
    kind = node.objectType
    word = object_type_name(kind)
    match kind:
        case ObjectType.OBJECT_SCHEMA:
            name = node.object.sval
            if name in SYSTEM_SCHEMAS:
                raise SqlError("42501", f"permission denied for schema {name}")
            if not schema_exists(binding, name):
                raise undefined_schema(name)
            thing = owned_schema(name)
        case ObjectType.OBJECT_DATABASE:
            if node.object.sval != binding.context.database:
                raise elsewhere(node.object.sval)
            thing = OwnedObject(DATABASE_SUBJECT, "database", "", "")
        case ObjectType.OBJECT_TYPE | ObjectType.OBJECT_DOMAIN:
            is_domain = kind == ObjectType.OBJECT_DOMAIN
            names = string_values(node.object)
            if is_domain:
                find_domain(binding, names)
            thing = type_to_grant(binding, names)
            if thing.schema == "pg_catalog":
                raise not_supported("another owner of a built-in type")
        case ObjectType.OBJECT_STATISTIC_EXT:
            thing = owned_object(find_statistics(binding, string_values(node.object)))
        case _:
            raise not_supported(f"ALTER {word} .. OWNER TO")
    new = resolve_role(binding, roles_of(binding.context), node.newowner).oid
    rights = tuple(_owned(binding.context.catalog, [thing], new))
    return ChangePrivileges(f"ALTER {word}", rights=rights)


def owned_by(
    catalog: Catalog, thing: OwnedObject, role: int
) -> tuple[tuple[Subject, ObjectPrivileges], ...]:
    """The rights of a thing that a role owns from now on."""
    return tuple(_owned(catalog, [thing], role))


def _with_own(catalog: Catalog, found: Table | CatalogObject) -> list[OwnedObject]:
    """A relation, and the sequences that go with it."""
    own = [owned_object(one) for one in catalog.sequences() if one.owner == found.oid]
    return [owned_object(found), *own]


def _owned(
    catalog: Catalog, things: list[OwnedObject], new: int
) -> Iterator[tuple[Subject, ObjectPrivileges]]:
    """Their rights, and those of their columns, when another owns them."""
    for thing in things:
        rights = object_privileges(catalog, thing)
        old = rights.owner
        if old == new:
            continue
        yield thing.subject, _moved(rights, old, new)
        for subject, said in catalog.rights.items():
            if subject.kind == "column" and subject.of == thing.subject.of and said.acl:
                yield subject, replace(_moved(said, old, new), owner=OWNER)


def _moved(rights: ObjectPrivileges, old: int, new: int) -> ObjectPrivileges:
    return ObjectPrivileges(new, acl_with_owner(rights.acl, old, new), rights.version + 1)


def reassign_owned(binding: Binding, node: Node) -> ChangePrivileges:
    """REASSIGN OWNED BY .. TO: change the owner of everything that these roles own."""
    catalog, roles = binding.context.catalog, roles_of(binding.context)
    olds = [resolve_role(binding, roles, spec) for spec in node.roles]
    new = resolve_role(binding, roles, node.newrole)
    for role in olds:
        if role.oid == OWNER:
            raise _required("reassign ownership of", roles.name(role.oid))
    oids = {role.oid for role in olds}
    things = [t for t in owned_objects(catalog) if object_privileges(catalog, t).owner in oids]
    return ChangePrivileges("REASSIGN OWNED", rights=tuple(_owned(catalog, things, new.oid)))


def drop_owned(binding: Binding, node: Node) -> ChangePrivileges:
    """DROP OWNED BY: revoke the privileges of these roles. Refused if they own objects."""
    catalog, roles = binding.context.catalog, roles_of(binding.context)
    dropped = [resolve_role(binding, roles, spec) for spec in node.roles]
    for role in dropped:
        if role.oid == OWNER:
            raise _required("drop", roles.name(role.oid))
    oids = {role.oid for role in dropped}
    if any(object_privileges(catalog, thing).owner in oids for thing in owned_objects(catalog)):
        hint = "REASSIGN OWNED first, or drop them one by one."
        raise not_supported("DROP OWNED of a role to which something belongs", hint=hint)
    rights: list[tuple[Subject, ObjectPrivileges]] = []
    for subject, said in catalog.rights.items():
        acl = said.acl
        for oid in oids & roles_in_acl(acl or ()):
            if acl is not None and not (subject.kind == "default" and subject.of == oid):
                acl = acl_without_role(acl, oid, _owner(catalog, subject, said))
        if subject.kind == "default" and subject.of in oids:
            acl = None
        if acl != said.acl:
            rights.append((subject, replace(said, acl=acl, version=said.version + 1)))
    return ChangePrivileges("DROP OWNED", rights=tuple(rights))


def _owner(catalog: Catalog, subject: Subject, rights: ObjectPrivileges) -> int:
    if subject.kind != "column":
        return rights.owner
    return catalog.rights.get(Subject("relation", subject.of), ObjectPrivileges()).owner


def _required(what: str, name: str) -> SqlError:
    message = (
        f"cannot {what} objects owned by role {name} because they are required by the database "
        "system"
    )
    return SqlError("2BP01", message)
