"""GRANT and REVOKE of roles: which role is a member of which, and the grantor (user.c)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast.enums import DropBehavior

from sql.binder.resolve.role_names import current_role, resolve_role, role_named, roles_of
from sql.binder.state import Binding
from sql.catalog.acl import OWNER
from sql.catalog.roles import Membership, Role, Roles
from sql.errors import SqlError
from sql.parser.syntax import Node, offset_to_position
from sql.statements.ddl import ChangePrivileges

_OPTIONS: Final = ("admin", "inherit", "set")


def grant_role(binding: Binding, node: Node) -> ChangePrivileges:
    """GRANT role TO role, REVOKE role FROM role."""
    roles = roles_of(binding.context)
    options = _options(node.opt or ())
    grantor = None if node.grantor is None else resolve_role(binding, roles, node.grantor)
    notices: list[SqlError] = []
    changed: dict[int, Role] = {}
    for granted in node.granted_roles:
        if granted.cols:
            message = "column names cannot be included in GRANT/REVOKE ROLE"
            raise SqlError("0LP01", message)
        role = role_named(roles, granted.priv_name)
        role = changed.get(role.oid, role)
        members = [resolve_role(binding, roles, spec) for spec in node.grantee_roles]
        by = _grantor(binding, roles, role, grantor)
        if node.is_grant:
            after = with_members(
                roles, role, members, admin=options.get("admin"), inherit=options.get("inherit"),
                set_=options.get("set"), grantor=by, notices=notices,
            )  # fmt: skip
        else:
            cascade = node.behavior == DropBehavior.DROP_CASCADE
            after = without_members(
                roles, role, members, option=next(iter(options), None), grantor=by,
                cascade=cascade, notices=notices,
            )  # fmt: skip
        changed[role.oid] = after
    known = {oid: roles.by_oid(oid) for oid in changed}
    news = [replace(r, version=r.version + 1) for oid, r in changed.items() if r != known[oid]]
    tag = "GRANT ROLE" if node.is_grant else "REVOKE ROLE"
    return ChangePrivileges(tag, tuple(news), notices=tuple(notices))


def _options(nodes: Sequence[Node]) -> dict[str, bool]:
    for option in nodes:
        if option.defname not in _OPTIONS:
            message = f'unrecognized role option "{option.defname}"'
            raise SqlError("42601", message, offset_to_position(option.location))
    return {option.defname: bool(option.arg.boolval) for option in nodes}


def _grantor(binding: Binding, roles: Roles, role: Role, given: Role | None) -> int:
    """In whose name it is granted (check_role_grantor)."""
    acting = current_role(binding.context)
    if given is not None:
        if given.oid != OWNER and not _administers(roles, role, given.oid):
            name = given.name
            message = f'permission denied to grant privileges as role "{name}"'
            detail = f'The grantor must have the ADMIN option on role "{role.name}".'
            raise SqlError("42501", message, detail=detail)
        return given.oid
    if acting.superuser:
        return OWNER
    above = roles.above(acting.oid, "usage")
    admins = [one.member for one in role.members if one.admin and one.member in above]
    return OWNER if not admins else acting.oid if acting.oid in admins else admins[0]


def _administers(roles: Roles, role: Role, oid: int) -> bool:
    above = roles.above(oid)
    return any(one.admin and one.member in above for one in role.members)


def with_members(
    roles: Roles,
    role: Role,
    members: Sequence[Role],
    *,
    admin: bool | None = None,
    inherit: bool | None = None,
    set_: bool | None = None,
    grantor: int = OWNER,
    notices: list[SqlError],
) -> Role:
    """The role with these members added. An option of None is left as it is. Raises 0LP01."""
    for member in members:
        if member.oid in roles.above(role.oid):
            name = roles.name(role.oid) if role.oid else role.name
            message = f'role "{name}" is a member of role "{roles.name(member.oid)}"'
            raise SqlError("0LP01", message)
        pair = (member.oid, grantor)
        known = next((one for one in role.members if (one.member, one.grantor) == pair), None)
        base = known or Membership(*pair, inherit=member.inherit)
        after = replace(
            base,
            admin=base.admin if admin is None else admin,
            inherit=base.inherit if inherit is None else inherit,
            set=base.set if set_ is None else set_,
        )
        if after == known:
            text = (
                f'role "{roles.name(member.oid)}" has already been granted membership in role '
                f'"{roles.name(role.oid)}" by role "{roles.name(grantor)}"'
            )
            notices.append(SqlError("00000", text))
        elif known is None:
            role = replace(role, members=(*role.members, after))
        else:
            others = tuple(after if one is known else one for one in role.members)
            role = replace(role, members=others)
    return role


def without_members(
    roles: Roles,
    role: Role,
    members: Sequence[Role],
    *,
    option: str | None = None,
    grantor: int = OWNER,
    cascade: bool = False,
    notices: list[SqlError],
) -> Role:
    """The role without these members, or with one option of them removed. Raises 2BP01."""
    for member in members:
        pair = (member.oid, grantor)
        known = next((one for one in role.members if (one.member, one.grantor) == pair), None)
        if known is None:
            text = (
                f'role "{roles.name(member.oid)}" has not been granted membership in role '
                f'"{roles.name(role.oid)}" by role "{roles.name(grantor)}"'
            )
            notices.append(SqlError("01000", text))
        else:
            role = replace(role, members=_taken(role.members, known, option, cascade=cascade))
    return role


def _taken(
    members: tuple[Membership, ...], gone: Membership, option: str | None, *, cascade: bool
) -> tuple[Membership, ...]:
    """Without a membership or its option, and without what that was the ground of."""
    after = None if option is None else replace(gone, **{option: False})
    left = tuple(kept for one in members if (kept := after if one is gone or one == gone else one))
    if not gone.admin or (after is not None and after.admin):
        return left
    if any(one.admin and one.member == gone.member for one in left):
        return left
    for one in left:
        if one.grantor == gone.member:
            if not cascade:
                hint = "Use CASCADE to revoke them too."
                raise SqlError("2BP01", "dependent privileges exist", hint=hint)
            return _taken(left, one, None, cascade=True) if one in left else left
    return left
