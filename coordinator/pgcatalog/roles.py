"""Rows of pg_catalog about roles and their members: pg_roles, pg_auth_members, pg_user ..

A row names the columns it has (W2 of `pgcatalog/relations.py`). Only superusers see verifiers of
passwords (U3 of `sql/catalog/roles.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.resolve.role_names import current_role, roles_of
from sql.binder.state import BindContext
from sql.catalog.oids import derived_oid
from sql.catalog.roles import Role, Roles
from sql.catalog.stored_settings import SettingScope
from sql.types.sql_type import Value

_HIDDEN: Final = "********"


def _shown(role: Role, roles: Roles) -> dict[str, Value]:
    """What pg_roles and pg_authid have alike."""
    return {
        "oid": role.oid,
        "rolname": roles.name(role.oid),
        "rolsuper": role.superuser,
        "rolinherit": role.inherit,
        "rolcreaterole": role.create_role,
        "rolcreatedb": role.create_database,
        "rolcanlogin": role.login,
        "rolreplication": role.replication,
        "rolbypassrls": role.bypass_rls,
        "rolconnlimit": role.limit,
        "rolvaliduntil": role.valid_until,
    }


def _configuration(context: BindContext, role: Role) -> tuple[str, ...] | None:
    """What sessions of the role start with in every database."""
    return context.catalog.settings.get(SettingScope(0, role.oid))


def _pg_db_role_setting(context: BindContext) -> Iterator[NamedRow]:
    for scope, texts in sorted(context.catalog.settings.items()):
        yield {"setdatabase": scope.database, "setrole": scope.role, "setconfig": texts}


def _pg_roles(context: BindContext) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for role in roles.all():
        own = {"rolpassword": _HIDDEN, "rolconfig": _configuration(context, role)}
        yield _shown(role, roles) | own


def _pg_authid(context: BindContext) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for role in roles.all():
        yield _shown(role, roles) | {"rolpassword": _verifier(context, role)}


def _verifier(context: BindContext, role: Role) -> str | None:
    """As PostgreSQL has it for those who may read pg_authid: `pg_dumpall` moves roles with it."""
    if role.password is None or roles_of(context).is_super(current_role(context).oid):
        return role.password
    return _HIDDEN


def _pg_auth_members(context: BindContext) -> Iterator[NamedRow]:
    for role in roles_of(context).all():
        for one in role.members:
            yield {
                "oid": derived_oid("membership", role.oid, one.member, one.grantor),
                "roleid": role.oid,
                "member": one.member,
                "grantor": one.grantor,
                "admin_option": one.admin,
                "inherit_option": one.inherit,
                "set_option": one.set,
            }


def _users(context: BindContext) -> Iterator[dict[str, Value]]:
    roles = roles_of(context)
    for role in roles.all():
        if role.login:
            yield {
                "usename": roles.name(role.oid),
                "usesysid": role.oid,
                "usecreatedb": role.create_database,
                "usesuper": role.superuser,
                "userepl": role.replication,
                "usebypassrls": role.bypass_rls,
                "passwd": _verifier(context, role),
                "valuntil": role.valid_until,
                "useconfig": _configuration(context, role),
            }


def _pg_user(context: BindContext) -> Iterator[NamedRow]:
    for user in _users(context):
        yield user | {"passwd": _HIDDEN}


def _pg_shadow(context: BindContext) -> Iterator[NamedRow]:
    yield from _users(context)


def _pg_group(context: BindContext) -> Iterator[NamedRow]:
    roles = roles_of(context)
    for role in roles.all():
        if not role.login:
            members = tuple(dict.fromkeys(one.member for one in role.members))
            yield {"groname": role.name, "grosysid": role.oid, "grolist": members}


ROLE_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_auth_members": _pg_auth_members,
    "pg_authid": _pg_authid,
    "pg_db_role_setting": _pg_db_role_setting,
    "pg_group": _pg_group,
    "pg_roles": _pg_roles,
    "pg_shadow": _pg_shadow,
    "pg_user": _pg_user,
}
