"""Resolve role names in a statement, including CURRENT_USER, SESSION_USER and PUBLIC."""

from collections.abc import Sequence

from pglast.enums import RoleSpecType

from sql.binder.state import BindContext, Binding
from sql.catalog.acl import PUBLIC, ObjectPrivileges
from sql.catalog.catalog import Catalog
from sql.catalog.objects import Subject
from sql.catalog.ownership import DATABASE_SUBJECT
from sql.catalog.roles import Role, Roles
from sql.errors import SqlError
from sql.parser.syntax import Node


def session_roles(catalog: Catalog, login: str) -> Roles:
    """All roles, as a session that has connected under this name sees them."""
    owner = catalog.rights.get(DATABASE_SUBJECT, ObjectPrivileges()).owner
    return Roles(catalog.roles, login, owner)


def roles_of(context: BindContext) -> Roles:
    """All roles, as the session sees them."""
    return session_roles(context.catalog, context.login or context.session_user or context.user)


def current_role(context: BindContext) -> Role:
    """The role that executes the statement and will own new objects. 42704 if it was dropped."""
    found = roles_of(context).by_oid(context.user_oid)
    if found is None:
        raise SqlError("42704", f"invalid role OID: {context.user_oid}")
    return found


def undefined_role(name: str) -> SqlError:
    """42704."""
    return SqlError("42704", f'role "{name}" does not exist')


def role_named(roles: Roles, name: str) -> Role:
    """The role of that name, or 42704."""
    found = roles.named(name)
    if found is None:
        raise undefined_role(name)
    return found


def role_spec_name(binding: Binding, spec: Node) -> str:
    """The name that a RoleSpec stands for."""
    match spec.roletype:
        case RoleSpecType.ROLESPEC_CSTRING:
            name: str = spec.rolename
            return name
        case RoleSpecType.ROLESPEC_SESSION_USER:
            return binding.context.session_user or binding.context.user
        case RoleSpecType.ROLESPEC_PUBLIC:
            return "public"
        case _:
            return binding.context.user


def resolve_role(binding: Binding, roles: Roles, spec: Node) -> Role:
    """The role that a RoleSpec means, or 42704. The plan is then specific to the session."""
    binding.uses_session = True
    return role_named(roles, role_spec_name(binding, spec))


def grantees(binding: Binding, roles: Roles, specs: Sequence[Node]) -> tuple[int, ...]:
    """The oids of the grantees; PUBLIC may be among them."""
    return tuple(
        PUBLIC
        if spec.roletype == RoleSpecType.ROLESPEC_PUBLIC
        else resolve_role(binding, roles, spec).oid
        for spec in specs
    )


def owner_of(catalog: Catalog, subject: Subject) -> int:
    """The owner of an object."""
    return catalog.rights.get(subject, ObjectPrivileges()).owner
