"""Apply changes of roles, owners and privileges to a catalog.

Privileges are stored beside the definitions, as comments are: a grant changes no definition, so
that no statement is bound again.

INVARIANTS
  U1  a role and the privileges of an object are changed from exactly the version that was bound.
  U4  every role that owns an object, is named by a list of privileges or is a member of a role
      exists: it cannot be dropped while that is so.
  U5  the privileges of an object are removed with the object, in the same step.
  U7  the settings of a scope are changed from exactly those that were bound; they go with the role.
  U6  no role is a member of itself, however many grants that lead there.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from coordinator.core.catalog_annotations import subject_exists
from coordinator.core.messages.catalog_changes import (
    PutPrivileges,
    PutRole,
    PutSettings,
    RemoveRole,
)
from sql.catalog.acl import FIRST_OID, ObjectPrivileges, roles_in_acl
from sql.catalog.catalog import Table
from sql.catalog.objects import CatalogObject, Subject
from sql.catalog.roles import BUILT_IN_ROLES, Role
from sql.catalog.stored_settings import SettingScope
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS

Tables: TypeAlias = Mapping[tuple[str, str], Table]
Objects: TypeAlias = Mapping[tuple[str, str, str], CatalogObject]

_NONE: Final = ObjectPrivileges()


def apply_privilege_change(
    roles: dict[int, Role],
    rights: dict[Subject, ObjectPrivileges],
    settings: dict[SettingScope, tuple[str, ...]],
    change: PutRole | RemoveRole | PutPrivileges | PutSettings,
    things: tuple[Tables, Objects, set[str]],
    *,
    replayed: bool,
) -> str | None:
    """Apply it (U1); or say why it does not fit. `things`: tables, objects and schemas."""
    match change:
        case PutRole(role=role):
            return _put_role(roles, role, replayed=replayed)
        case RemoveRole(role=role):
            if roles.get(role.oid) != role:
                return f'role "{role.name}" was changed by a concurrent transaction'
            del roles[role.oid]
            for scope in [scope for scope in settings if scope.role == role.oid]:
                del settings[scope]
        case PutSettings():
            return _put_settings(settings, roles, change, replayed=replayed)
        case PutPrivileges(subject=subject, rights=said):
            if not (is_builtin_subject(subject) or subject_exists(subject, *things, roles)):
                return "something was dropped by a concurrent transaction"
            before = rights.get(subject, _NONE)
            if not replayed and said.version != before.version + 1:
                return "privileges were changed by a concurrent transaction"
            rights[subject] = said
    return None


def _put_role(roles: dict[int, Role], role: Role, *, replayed: bool) -> str | None:
    there = {**BUILT_IN_ROLES, **roles}
    if any(one.name == role.name and one.oid != role.oid for one in there.values()):
        return f'role "{role.name}" already exists'
    known = there.get(role.oid)
    if not replayed and role.version != (0 if known is None else known.version + 1):
        return f'role "{role.name}" was changed by a concurrent transaction'
    if not replayed and _is_member_of_itself(role, {**there, role.oid: role}):
        return f'members of role "{role.name}" were changed by a concurrent transaction'
    roles[role.oid] = role
    return None


def _is_member_of_itself(role: Role, roles: Mapping[int, Role]) -> bool:
    """Whether members lead back to the role (U6)."""
    seen: set[int] = set()
    left = [membership.member for membership in role.members]
    while left:
        oid = left.pop()
        if oid == role.oid:
            return True
        if oid not in seen and oid in roles:
            left += [membership.member for membership in roles[oid].members]
        seen.add(oid)
    return False


def _put_settings(
    settings: dict[SettingScope, tuple[str, ...]],
    roles: Mapping[int, Role],
    change: PutSettings,
    *,
    replayed: bool,
) -> str | None:
    """Apply it (U7); or say why it does not fit."""
    scope = change.scope
    if scope.role and scope.role not in roles and scope.role not in BUILT_IN_ROLES:
        return "a role was dropped by a concurrent transaction"
    if not replayed and settings.get(scope, ()) != change.before:
        return "settings were changed by a concurrent transaction"
    if change.texts:
        settings[scope] = change.texts
    else:
        settings.pop(scope, None)
    return None


def is_builtin_subject(subject: Subject) -> bool:
    """Whether it is PostgreSQL's own."""
    if subject.kind == "schema":
        return subject.of in SYSTEM_SCHEMAS
    return isinstance(subject.of, int) and subject.of < FIRST_OID


def missing_role(
    roles: Mapping[int, Role], rights: Mapping[Subject, ObjectPrivileges]
) -> int | None:
    """A role that is named and not there (U4)."""
    if not roles and not rights:
        return None
    return next(
        (oid for oid in _named(roles, rights) if oid not in roles and oid not in BUILT_IN_ROLES),
        None,
    )


def _named(roles: Mapping[int, Role], rights: Mapping[Subject, ObjectPrivileges]) -> Iterator[int]:
    for role in roles.values():
        for membership in role.members:
            yield membership.member
            yield membership.grantor
    for subject, said in rights.items():
        yield said.owner
        yield from roles_in_acl(said.acl or ())
        if subject.kind == "default" and isinstance(subject.of, int):
            yield subject.of
