"""Owners and privileges of catalog objects, with the defaults of those that have no record.

INVARIANTS
  R1  an object without a record belongs to the first superuser, with its kind's default privileges.
      But the schema `public` belongs to the database owner, and everybody may read the catalogs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sql.catalog.acl import (
    FIRST_OID,
    OWNER,
    PUBLIC,
    Acl,
    AclItem,
    ObjectPrivileges,
    default_acl,
    is_same_acl,
    merge_acls,
    sorted_acl,
)
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import (
    TYPE_SPACE,
    CatalogObject,
    ConnectionDefinition,
    ExtensionDefinition,
    IndexDefinition,
    SequenceDefinition,
    SourceDefinition,
    StatisticsDefinition,
    Subject,
)
from sql.catalog.roles import DATABASE_OWNER
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS

_PUBLIC: Final = ObjectPrivileges(
    DATABASE_OWNER,
    (AclItem(DATABASE_OWNER, DATABASE_OWNER, "UC"), AclItem(PUBLIC, DATABASE_OWNER, "U")),
)
_SYSTEM_SCHEMA: Final = ObjectPrivileges(
    OWNER, (AclItem(OWNER, OWNER, "UC"), AclItem(PUBLIC, OWNER, "U"))
)
_SYSTEM_TABLE: Final = ObjectPrivileges(
    OWNER, (AclItem(OWNER, OWNER, "arwdDxtm"), AclItem(PUBLIC, OWNER, "r"))
)
_SECRET_TABLE: Final = ObjectPrivileges(OWNER, (AclItem(OWNER, OWNER, "arwdDxtm"),))
DEFAULT_ACL_LETTERS: Final = {
    "table": "r", "sequence": "S", "function": "f", "type": "T", "schema": "n", "large object": "L"
}  # fmt: skip
"""Kinds of objects that ALTER DEFAULT PRIVILEGES knows, as pg_default_acl calls them."""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object with an owner. `kind`: a key of `acl.ALL`; `name` without its schema."""

    subject: Subject
    kind: str
    schema: str
    name: str


def owned_object(found: Table | CatalogObject) -> OwnedObject:
    """The object for a relation or type."""
    if isinstance(found, Table):
        return OwnedObject(Subject("relation", found.oid), "table", found.schema, found.name)
    if found.space == TYPE_SPACE:
        return OwnedObject(Subject("type", found.oid), "type", found.schema, found.name)
    if isinstance(found, StatisticsDefinition):
        subject = Subject("statistics", found.oid)
        return OwnedObject(subject, "statistics", found.schema, found.name)
    if isinstance(found, SourceDefinition | ConnectionDefinition):
        return OwnedObject(Subject(found.kind, found.oid), found.kind, found.schema, found.name)
    kind = "sequence" if isinstance(found, SequenceDefinition) else "table"
    return OwnedObject(Subject("relation", found.oid), kind, found.schema, found.name)


def owned_schema(name: str) -> OwnedObject:
    """The object for a schema."""
    return OwnedObject(Subject("schema", name), "schema", name, name)


def object_privileges(catalog: Catalog, thing: OwnedObject) -> ObjectPrivileges:
    """The owner and the privileges of an object (R1)."""
    known = catalog.rights.get(thing.subject)
    if known is not None:
        return known
    if thing.kind == "schema" and thing.name in SYSTEM_SCHEMAS:
        return _SYSTEM_SCHEMA
    if thing.kind == "schema" and thing.name == "public":
        return _PUBLIC
    of = thing.subject.of
    if thing.subject.kind == "relation" and isinstance(of, int) and of < FIRST_OID:
        return _SECRET_TABLE if thing.name in ("pg_authid", "pg_shadow") else _SYSTEM_TABLE
    return ObjectPrivileges()


def effective_acl(rights: ObjectPrivileges, kind: str) -> Acl:
    """The effective list of privileges: the default one if none is recorded."""
    return default_acl(kind, rights.owner) if rights.acl is None else rights.acl


def owned_objects(catalog: Catalog) -> Iterator[OwnedObject]:
    """All user-defined objects with an owner, and the database."""
    yield OwnedObject(DATABASE_SUBJECT, "database", "", "")
    for name in sorted(catalog.schemas):
        yield owned_schema(name)
    for table in catalog.tables.values():
        yield owned_object(table)
    for found in catalog.objects.values():
        if not isinstance(found, IndexDefinition | ExtensionDefinition):
            yield owned_object(found)


def user_default_acl(catalog: Catalog, thing: OwnedObject, owner: int) -> Acl | None:
    """What ALTER DEFAULT PRIVILEGES gives a new thing (get_user_default_acl); None: nothing."""
    letter = DEFAULT_ACL_LETTERS.get(thing.kind)
    if letter is None:
        return None
    everywhere = catalog.rights.get(Subject("default", owner, letter), ObjectPrivileges()).acl
    inside = Subject("default", owner, letter + thing.schema)
    here = None if thing.kind == "schema" else catalog.rights.get(inside, ObjectPrivileges()).acl
    if everywhere is None and here is None:
        return None
    plain = default_acl(thing.kind, owner)
    made = merge_acls(plain if everywhere is None else everywhere, here or ())
    return None if is_same_acl(made, plain) else sorted_acl(made)


def privileges_of_renamed_schema(
    catalog: Catalog, old: str, new: str
) -> tuple[tuple[Subject, ObjectPrivileges], ...]:
    """The privileges of a renamed schema, and the default privileges in it."""
    moved = [(Subject("schema", new), object_privileges(catalog, owned_schema(old)))]
    for subject, said in catalog.rights.items():
        if subject.kind == "default" and subject.schema == old:
            moved.append((Subject("default", subject.of, f"{str(subject.part)[0]}{new}"), said))
    return tuple((subject, replace(said, version=1)) for subject, said in moved)


DATABASE_SUBJECT: Final = Subject("database", "")
"""The subject of the one database, regardless of its name."""
