"""Rows about owners and privileges: ACL columns, pg_default_acl, information_schema's grants.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.definitions import base_tables
from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.resolve.role_names import current_role, roles_of
from sql.binder.state import BindContext
from sql.catalog.acl import (
    ALL_PRIVILEGES,
    OWNER,
    PRIVILEGE_LETTERS,
    PUBLIC,
    Acl,
    ObjectPrivileges,
    acl_item_text,
    explode_acl,
)
from sql.catalog.catalog import Catalog, Table
from sql.catalog.meridian_schema import SYSTEM_RELATIONS, SYSTEM_SCHEMA_ALIAS
from sql.catalog.objects import CatalogObject, Subject, ViewDefinition
from sql.catalog.oids import DATABASE_OIDS, derived_oid, index_oid, schema_oid
from sql.catalog.ownership import (
    OwnedObject,
    effective_acl,
    object_privileges,
    owned_object,
    owned_objects,
    owned_schema,
)
from sql.catalog.system_catalogs import PG_CATALOG, SYSTEM_SCHEMAS, system_catalogs
from sql.types.sql_type import TYPE_OIDS, Value


class PrivilegeColumns:
    """Owners and privileges of objects, as columns of the catalogs."""

    def __init__(self, context: BindContext) -> None:
        self._catalog = context.catalog
        self.roles = roles_of(context)

    def of(self, thing: OwnedObject) -> tuple[int, tuple[str, ...] | None]:
        """Owner and list."""
        rights = object_privileges(self._catalog, thing)
        return rights.owner, self.acl(rights.acl)

    def named(self, found: Table | CatalogObject, start: str) -> dict[str, Value]:
        """The same as columns: `relowner`, `relacl`."""
        owner, acl = self.of(owned_object(found))
        return {f"{start}owner": owner, f"{start}acl": acl}

    def owner(self, found: Table | CatalogObject) -> str:
        """Its name."""
        return self.roles.name(object_privileges(self._catalog, owned_object(found)).owner)

    def column(self, table: int, number: int) -> tuple[str, ...] | None:
        """The list of a column."""
        if not self._catalog.rights:
            return None
        return self.acl(
            self._catalog.rights.get(Subject("column", table, number), ObjectPrivileges()).acl
        )

    def acl(self, acl: Acl | None) -> tuple[str, ...] | None:
        """A list as aclitem[] shows it."""
        return None if acl is None else tuple(acl_item_text(item, self.roles.name) for item in acl)


def _pg_default_acl(context: BindContext) -> Iterator[NamedRow]:
    shown = PrivilegeColumns(context)
    for subject, rights in context.catalog.rights.items():
        if subject.kind == "default" and rights.acl is not None:
            yield {
                "oid": derived_oid("default acl", subject.of, subject.part),
                "defaclrole": subject.of,
                "defaclnamespace": schema_oid(subject.schema) if subject.schema else 0,
                "defaclobjtype": str(subject.part)[0],
                "defaclacl": shown.acl(rights.acl),
            }


def _pg_init_privs(context: BindContext) -> Iterator[NamedRow]:
    """What the server began with, so that pg_dump moves only what was changed since."""
    shown, born = PrivilegeColumns(context), Catalog()
    for relation in builtin_relations():
        acl = shown.acl(object_privileges(born, owned_object(relation)).acl)
        yield {"objoid": relation.oid, "classoid": 1259, "privtype": "i", "initprivs": acl}
    for schema in (PG_CATALOG, "public"):
        acl = shown.acl(object_privileges(born, owned_schema(schema)).acl)
        oid = schema_oid(schema)
        yield {"objoid": oid, "classoid": 2615, "privtype": "i", "initprivs": acl}


def _members(context: BindContext) -> Iterator[NamedRow]:
    """What `meridian_may` and `meridian_member` of `compute/reference/functions/system.py` read."""
    roles = roles_of(context)
    for role in roles.all():
        if role.superuser:
            yield {"oid": role.oid, "roles": "*|*|*|*"}
            continue
        usage, member, set_ = (roles.above(role.oid, how) for how in ("usage", "member", "set"))
        admin = roles.administers(role.oid) - {role.oid}
        kinds = ({PUBLIC, *usage}, member, set_, admin)
        yield {"oid": role.oid, "roles": "|".join(",".join(map(str, sorted(k))) for k in kinds)}


def _rights(context: BindContext) -> Iterator[NamedRow]:
    catalog = context.catalog
    system = [owned_object(table) for table in builtin_relations()]
    types = (
        OwnedObject(Subject("type", oid), "type", "pg_catalog", n) for n, oid in TYPE_OIDS.items()
    )
    schemas = map(owned_schema, sorted(SYSTEM_SCHEMAS - {SYSTEM_SCHEMA_ALIAS}))
    for thing in (*owned_objects(catalog), *system, *types, *schemas):
        grants = _grants_text(
            effective_acl(rights := object_privileges(catalog, thing), thing.kind), rights.owner
        )
        oid: int | str = thing.subject.of
        if thing.kind == "schema":
            oid = schema_oid(thing.name)
        kind = thing.subject.kind
        for each in DATABASE_OIDS.values() if kind == "database" else (oid,):
            yield {"kind": kind, "oid": each, "part": 0, "grants": grants}
    for table in catalog.tables.values():
        owner = f"{object_privileges(catalog, owned_object(table)).owner}=/{PRIVILEGE_LETTERS}"
        for key in table.keys:
            yield {"kind": "relation", "oid": index_oid(table, key), "part": 0, "grants": owner}
        for index in catalog.indexes(table.oid):
            yield {"kind": "relation", "oid": index.oid, "part": 0, "grants": owner}
    columns: dict[int | str, str] = {}
    for subject, said in catalog.rights.items():
        if subject.kind == "column" and said.acl:
            text = _grants_text(said.acl, None)
            columns[subject.of] = f"{columns.get(subject.of, '')} {text}"
            yield {"kind": "column", "oid": subject.of, "part": subject.part, "grants": text}
    for oid, text in columns.items():
        yield {"kind": "columns", "oid": oid, "part": 0, "grants": text}


def _grants_text(acl: Acl, owner: int | None) -> str:
    items = [f"{item.grantee}={item.privileges}/{item.options}" for item in acl]
    return " ".join(items if owner is None else [*items, f"{owner}=/{PRIVILEGE_LETTERS}"])


def builtin_relations() -> Iterator[Table]:
    """The built-in relations of the system."""
    yield from system_catalogs().values()
    yield from SYSTEM_RELATIONS.values()


PRIVILEGE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "meridian_members": _members,
    "meridian_rights": _rights,
    "pg_default_acl": _pg_default_acl,
    "pg_init_privs": _pg_init_privs,
}


# --- information_schema ------------------------------------------------------------------------


def _grants(context: BindContext, thing: OwnedObject) -> Iterator[dict[str, Value]]:
    """The privileges of a thing that the session's roles have granted or have."""
    roles = roles_of(context)
    rights = object_privileges(context.catalog, thing)
    for grantor, grantee, privilege, is_grantable in explode_acl(effective_acl(rights, thing.kind)):
        if privilege != "MAINTAIN":
            yield {
                "grantor": roles.name(grantor),
                "grantee": "PUBLIC" if grantee == PUBLIC else roles.name(grantee),
                "privilege_type": privilege,
                "is_grantable": "YES" if is_grantable or grantee == rights.owner else "NO",
            }


def _named(context: BindContext, thing: OwnedObject, kind: str) -> dict[str, Value]:
    return {
        f"{kind}_catalog": context.database,
        f"{kind}_schema": thing.schema,
        f"{kind}_name": thing.name,
    }


def _table_privileges(context: BindContext) -> Iterator[dict[str, Value]]:
    system = map(owned_object, system_catalogs().values())
    hidden = context.catalog.named_tables.materialized
    for thing in (*owned_objects(context.catalog), *system):
        if thing.kind == "table" and thing.subject.of not in hidden:
            for grant in _grants(context, thing):
                hierarchy = "YES" if grant["privilege_type"] == "SELECT" else "NO"
                yield _named(context, thing, "table") | grant | {"with_hierarchy": hierarchy}


def _column_privileges(context: BindContext) -> Iterator[dict[str, Value]]:
    """Those of a table are those of all its columns, too."""
    names = set(ALL_PRIVILEGES["column"])
    relations: list[Table | ViewDefinition] = [*base_tables(context.catalog)]
    relations += system_catalogs().values()
    relations += context.catalog.views()
    for found in relations:
        thing = owned_object(found)
        whole = [g for g in _grants(context, thing) if _letter(g["privilege_type"]) in names]
        for number, column in _columns(found):
            own = OwnedObject(
                Subject("column", found.oid, number), "column", thing.schema, thing.name
            )
            owner = object_privileges(context.catalog, thing).owner
            more = [
                grant | {"is_grantable": "YES"} if grant["grantee"] == owner else grant
                for grant in _grants(context, own)
            ]
            seen: dict[tuple[Value, ...], dict[str, Value]] = {}
            for grant in (*whole, *more):
                key = (grant["grantor"], grant["grantee"], grant["privilege_type"])
                if key not in seen or grant["is_grantable"] == "YES":
                    seen[key] = grant
            for grant in seen.values():
                yield _named(context, thing, "table") | grant | {"column_name": column}


def _letter(privilege: Value) -> str:
    return {"INSERT": "a", "SELECT": "r", "UPDATE": "w", "REFERENCES": "x"}.get(str(privilege), "")


def _columns(found: Table | ViewDefinition) -> Iterator[tuple[int, str]]:
    if isinstance(found, Table):
        for at, column in enumerate(found.columns):
            yield found.number_of(at), column.name
    else:
        yield from enumerate(found.columns, 1)


def _usage_privileges(context: BindContext) -> Iterator[dict[str, Value]]:
    domains = {domain.oid for domain in context.catalog.domains()}
    owner = roles_of(context).name(OWNER)
    for collation in ("default", "C", "POSIX"):
        thing = OwnedObject(Subject("collation", 0), "collation", "pg_catalog", collation)
        yield _named(context, thing, "object") | {
            "object_type": "COLLATION",
            "grantor": owner,
            "grantee": "PUBLIC",
            "privilege_type": "USAGE",
            "is_grantable": "NO",
        }
    for thing in owned_objects(context.catalog):
        kind = "SEQUENCE" if thing.kind == "sequence" else "DOMAIN"
        # PostgreSQL takes a sequence of which nothing was granted for a table.
        is_granted = object_privileges(context.catalog, thing).acl is not None
        if (thing.kind == "sequence" and is_granted) or thing.subject.of in domains:
            for grant in _grants(context, thing):
                if grant["privilege_type"] == "USAGE":
                    yield _named(context, thing, "object") | grant | {"object_type": kind}


def _udt_privileges(context: BindContext) -> Iterator[dict[str, Value]]:
    """Those of composite types only: of the rows of tables and views, which everybody may use."""
    roles = roles_of(context)
    relations: list[Table | ViewDefinition] = [*context.catalog.tables.values()]
    relations += context.catalog.views()
    for relation in relations:
        owner = roles.name(object_privileges(context.catalog, owned_object(relation)).owner)
        for grantee in dict.fromkeys(("PUBLIC", owner)):
            yield {
                "grantor": owner,
                "grantee": grantee,
                "udt_catalog": context.database,
                "udt_schema": relation.schema,
                "udt_name": relation.name,
                "privilege_type": "TYPE USAGE",
                "is_grantable": "NO" if grantee == "PUBLIC" else "YES",
            }


def _granted(
    rows: Callable[[BindContext], Iterator[dict[str, Value]]],
) -> Callable[[BindContext], Iterator[NamedRow]]:
    """Those rows that a role of the session has granted or has."""

    def granted(context: BindContext) -> Iterator[NamedRow]:
        roles = roles_of(context)
        names = {roles.name(oid) for oid in session_role_oids(context)}
        return (row for row in rows(context) if {row["grantor"], row["grantee"]} & names)

    return granted


def _of_roles(
    rows: Callable[[BindContext], Iterator[dict[str, Value]]],
) -> Callable[[BindContext], Iterator[NamedRow]]:
    """Those rows that are not about PUBLIC, and are about the session's roles."""

    def of_roles(context: BindContext) -> Iterator[NamedRow]:
        roles, mine = roles_of(context), session_role_oids(context)
        names = {roles.name(oid) for oid in mine}
        for row in rows(context):
            if row["grantee"] != "PUBLIC" and {row["grantor"], row["grantee"]} & names:
                yield row

    return of_roles


def _seen(
    rows: Callable[[BindContext], Iterator[dict[str, Value]]],
) -> Callable[[BindContext], Iterator[NamedRow]]:
    """The same with those about PUBLIC."""

    def seen(context: BindContext) -> Iterator[NamedRow]:
        roles, mine = roles_of(context), session_role_oids(context)
        names = {"PUBLIC", *(roles.name(oid) for oid in mine)}
        return (row for row in rows(context) if {row["grantor"], row["grantee"]} & names)

    return seen


def session_role_oids(context: BindContext) -> frozenset[int]:
    """The roles whose privileges the session has (pg_has_role(.., 'USAGE'))."""
    roles, acting = roles_of(context), current_role(context).oid
    if roles.is_super(acting):
        return frozenset(role.oid for role in roles.all())
    return roles.above(acting, "usage")


def _enabled_roles(context: BindContext) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for oid in sorted(session_role_oids(context)):
        yield {"role_name": roles.name(oid)}


def _applicable_roles(context: BindContext) -> Iterator[dict[str, Value]]:
    roles, mine = roles_of(context), session_role_oids(context)
    for role in roles.all():
        for one in role.members:
            if one.member in mine:
                yield {
                    "grantee": roles.name(one.member),
                    "role_name": roles.name(role.oid),
                    "is_grantable": "YES" if one.admin else "NO",
                }


def _administrable(context: BindContext) -> Iterator[NamedRow]:
    return (row for row in _applicable_roles(context) if row["is_grantable"] == "YES")


PRIVILEGE_INFORMATION_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "administrable_role_authorizations": _administrable,
    "applicable_roles": _applicable_roles,
    "column_privileges": _seen(_column_privileges),
    "enabled_roles": _enabled_roles,
    "role_column_grants": _of_roles(_column_privileges),
    "role_table_grants": _of_roles(_table_privileges),
    "role_udt_grants": _granted(_udt_privileges),
    "role_usage_grants": _of_roles(_usage_privileges),
    "table_privileges": _seen(_table_privileges),
    "udt_privileges": _seen(_udt_privileges),
    "usage_privileges": _seen(_usage_privileges),
}
