"""CREATE, ALTER and DROP ROLE, and the USER and GROUP forms of them (user.c)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pglast import ast
from pglast.enums import RoleStmtType

from sql.binder.ddl.roles.dependents import role_dependents
from sql.binder.ddl.roles.membership import with_members, without_members
from sql.binder.resolve.role_names import (
    current_role,
    resolve_role,
    role_named,
    role_spec_name,
    roles_of,
    undefined_role,
)
from sql.binder.state import Binding
from sql.catalog.acl import OWNER
from sql.catalog.roles import Role, Roles, is_reserved_role_name
from sql.errors import SqlError, not_supported
from sql.parser.option_values import options_by_name
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.statements.ddl import ChangePrivileges
from sql.types.datetime.date_input import parse_timestamptz

_FLAGS: Final = {
    "superuser": "superuser",
    "inherit": "inherit",
    "createrole": "create_role",
    "createdb": "create_database",
    "canlogin": "login",
    "isreplication": "replication",
    "bypassrls": "bypass_rls",
}
_EMPTY: Final = SqlError("00000", "empty string is not a valid password, clearing password")


def create_role(binding: Binding, node: Node) -> ChangePrivileges:
    """CREATE ROLE, USER and GROUP."""
    name: str = node.role
    _check_name(name, 'Role names starting with "pg_" are reserved.')
    roles = roles_of(binding.context)
    if roles.named(name) is not None:
        raise SqlError("42710", f'role "{name}" already exists')
    options = options_by_name(node.options or ())
    made = _with_options(
        binding, Role(0, name, login=node.stmt_type == RoleStmtType.ROLESTMT_USER), options
    )
    notices: list[SqlError] = []
    if "sysid" in options:
        notices.append(SqlError("00000", "SYSID can no longer be specified"))
    above: dict[int, Role] = {}
    new = Roles({**binding.context.catalog.roles, 0: made}, "")
    for spec in _list(options, "addroleto"):
        group = resolve_role(binding, roles, spec)
        above[group.oid] = with_members(new, above.get(group.oid, group), [made], notices=notices)
    for option, admin in (("rolemembers", False), ("adminmembers", True)):
        members = [resolve_role(binding, roles, spec) for spec in _list(options, option)]
        made = with_members(new, made, members, admin=admin or None, notices=notices)
    acting = current_role(binding.context)
    if not acting.superuser:
        # Who may create roles may administer what he has created.
        made = with_members(
            new, made, [acting], admin=True, inherit=False, set_=False, notices=notices
        )
    password, more = _password(options)
    return ChangePrivileges(
        "CREATE ROLE", (made, *map(_next, above.values())), password=password,
        notices=(*notices, *more),
    )  # fmt: skip


def alter_role(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER ROLE, USER and GROUP .. with attributes, ADD USER, DROP USER."""
    roles = roles_of(binding.context)
    _check_name(role_spec_name(binding, node.role), "Cannot alter reserved roles.")
    role = resolve_role(binding, roles, node.role)
    options = options_by_name(node.options or ())
    notices: list[SqlError] = []
    members = [resolve_role(binding, roles, spec) for spec in _list(options, "rolemembers")]
    altered = _with_options(binding, role, options)
    _check_first_superuser(altered)
    if members and node.action > 0:
        altered = with_members(roles, altered, members, notices=notices)
    elif members:
        altered = without_members(roles, altered, members, notices=notices)
    password, more = _password(options)
    if "password" in options and password is None:
        altered = replace(altered, password=None)
    notices += more
    return ChangePrivileges(
        "ALTER ROLE", (_next(altered),), password=password, notices=tuple(notices)
    )


def _check_first_superuser(altered: Role) -> None:
    """0A000 for what would lock everybody out: nobody could give it back."""
    if altered.oid != OWNER:
        return
    if not altered.superuser:
        raise SqlError(
            "0A000",
            "permission denied to alter role",
            detail="The bootstrap superuser must have the SUPERUSER attribute.",
        )
    if not altered.login:
        raise not_supported("NOLOGIN of the first superuser")


def rename_role(binding: Binding, old: str, new: str) -> ChangePrivileges:
    """ALTER ROLE .. RENAME TO."""
    context, roles = binding.context, roles_of(binding.context)
    role = role_named(roles, old)
    if old == (context.session_user or context.user):
        raise SqlError("0A000", "session user cannot be renamed")
    if old == context.user:
        raise SqlError("0A000", "current user cannot be renamed")
    _check_name(old, 'Role names starting with "pg_" are reserved.')
    _check_name(new, 'Role names starting with "pg_" are reserved.')
    if role.oid == OWNER:
        raise not_supported("renaming the first superuser")
    if roles.named(new) is not None:
        raise SqlError("42710", f'role "{new}" already exists')
    return ChangePrivileges("ALTER ROLE", (_next(replace(role, name=new)),))


def drop_role(binding: Binding, node: Node) -> ChangePrivileges:
    """DROP ROLE, USER and GROUP."""
    context, roles = binding.context, roles_of(binding.context)
    dropped: dict[int, Role] = {}
    notices: list[SqlError] = []
    for spec in node.roles:
        name = role_spec_name(binding, spec)
        if spec.roletype:
            raise SqlError("22023", "cannot use special role specifier in DROP ROLE")
        role = roles.named(name)
        if role is None:
            if not node.missing_ok:
                raise undefined_role(name)
            notices.append(SqlError("00000", f'role "{name}" does not exist, skipping'))
            continue
        if name == context.user:
            raise SqlError("55006", "current user cannot be dropped")
        if name == (context.session_user or context.user):
            raise SqlError("55006", "session user cannot be dropped")
        if role.oid == OWNER or is_reserved_role_name(name):
            message = f"cannot drop role {name} because it is required by the database system"
            raise SqlError("2BP01", message)
        dropped[role.oid] = role
    left = _without(binding, dropped)
    for role in dropped.values():
        needed = role_dependents(binding, roles, left, role.oid)
        if needed:
            message = f'role "{role.name}" cannot be dropped because some objects depend on it'
            raise SqlError("2BP01", message, detail="\n".join(needed))
    changed = [role for oid, role in left.items() if role is not binding.context.catalog.roles[oid]]
    return ChangePrivileges(
        "DROP ROLE", tuple(map(_next, changed)), tuple(dropped.values()), notices=tuple(notices)
    )


def _without(binding: Binding, dropped: dict[int, Role]) -> dict[int, Role]:
    """The roles that are left, without these among their members."""
    left: dict[int, Role] = {}
    for oid, role in binding.context.catalog.roles.items():
        if oid not in dropped:
            members = tuple(one for one in role.members if one.member not in dropped)
            left[oid] = role if members == role.members else replace(role, members=members)
    return left


def _next(role: Role) -> Role:
    return replace(role, version=role.version + 1)


def _check_name(name: str, detail: str) -> None:
    if is_reserved_role_name(name):
        raise SqlError("42939", f'role name "{name}" is reserved', detail=detail)


def _list(options: dict[str, Node], name: str) -> Iterator[Node]:
    return iter(options[name].arg if name in options else ())


def _with_options(binding: Binding, role: Role, options: dict[str, Node]) -> Role:
    for name, option in options.items():
        if name in _FLAGS:
            role = replace(role, **{_FLAGS[name]: bool(option.arg.boolval)})  # type: ignore[arg-type] # flags are Booleans
    if "connectionlimit" in options:
        limit = int(options["connectionlimit"].arg.ival or 0)
        if limit < -1:
            raise SqlError("22023", f"invalid connection limit: {limit}")
        role = replace(role, limit=limit)
    if "validUntil" in options:
        context = binding.context
        text, order = options["validUntil"].arg.sval, context.styles.order
        until = parse_timestamptz(text, timezone=context.timezone, order=order)
        role = replace(role, valid_until=until)
    return role


def _password(
    options: dict[str, Node],
) -> tuple[str | None, tuple[SqlError, ...]]:
    """The PASSWORD option, and the notices about it."""
    option = options.get("password")
    if option is None or option.arg is None:
        return None, ()
    if not is_a(option.arg, ast.String):
        raise SqlError("42601", 'syntax error at or near "$1"', offset_to_position(option.location))
    if not option.arg.sval:
        return None, (_EMPTY,)
    return str(option.arg.sval), ()
