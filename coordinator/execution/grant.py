"""Compute the catalog changes of CREATE ROLE, GRANT and their kin.

INVARIANTS
  W1  a password leaves this module as a SCRAM verifier only, and never enters the plan cache.
  W2  a statement that grants or revokes privileges warns once that none is enforced yet.
"""

import asyncio
import secrets
from dataclasses import replace
from typing import Final

from coordinator.authentication.verifier import SALT_BYTES, stored_password
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutPrivileges,
    PutRole,
    PutSchema,
    PutTable,
    RemoveRole,
)
from coordinator.execution.context import Execution
from coordinator.execution.stored_settings import settings_changes
from coordinator.pgwire.messages import Severity
from sql.binder.resolve.role_names import current_role
from sql.binder.state import BindContext
from sql.catalog.acl import OWNER, ObjectPrivileges
from sql.catalog.catalog import Catalog
from sql.catalog.objects import SequenceDefinition
from sql.catalog.ownership import (
    OwnedObject,
    object_privileges,
    owned_object,
    owned_schema,
    user_default_acl,
)
from sql.catalog.roles import Role
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError
from sql.statements.ddl import ChangePrivileges

NOT_ENFORCED: Final = "privileges are recorded and shown, but not enforced yet"
WARNINGS: Final = (NOT_ENFORCED,)
"""What PostgreSQL does not say."""
_TOLD: Final = frozenset({"GRANT", "REVOKE", "ALTER DEFAULT PRIVILEGES"})


async def role_changes(execution: Execution, statement: ChangePrivileges) -> list[CatalogChange]:
    """The changes; a new role gets its oid."""
    for told in statement.notices:
        is_notice = told.sqlstate == "00000"
        execution.notice(told, Severity.NOTICE if is_notice else Severity.WARNING)
    if statement.tag in _TOLD:
        execution.notice(SqlError("01000", NOT_ENFORCED), Severity.WARNING)
    if statement.setting is not None:
        return settings_changes(execution, statement.setting)
    roles = statement.roles
    if any(role.oid == 0 for role in roles):
        oid, _ = await execution.services.coordination.new_table_id()
        roles = tuple(_numbered(role, oid) for role in roles)
    if statement.password is not None:
        iterations = int(execution.variables.get("scram_iterations"))
        salt = secrets.token_bytes(SALT_BYTES)
        kept = await asyncio.to_thread(
            stored_password, statement.password, iterations=iterations, salt=salt
        )
        first = replace(roles[0], password=kept)
        roles = (first, *roles[1:])
    changes: list[CatalogChange] = [PutRole(role) for role in roles]
    changes += (RemoveRole(role) for role in statement.dropped)
    changes += (PutPrivileges(subject, rights) for subject, rights in statement.rights)
    return changes


def with_owners(execution: Execution, changes: list[CatalogChange]) -> list[CatalogChange]:
    """The changes, and the owner of each new object: the current role."""
    assert execution.bind_context is not None, "a definition knows what it is bound in"
    context = execution.bind_context()
    catalog, known = context.catalog, {c.subject for c in changes if isinstance(c, PutPrivileges)}
    owner = _owner(execution, context)
    if owner == OWNER and not (catalog.rights or PutSchema("public") in changes):
        return changes
    owned: list[CatalogChange] = []
    for change in changes:
        owned.append(change)
        thing = _made(change)
        if thing is not None and thing.subject not in known:
            whose = OWNER if is_temporary_schema(thing.name) else _of_table(catalog, change, owner)
            acl = (
                None
                if is_temporary_schema(thing.schema)
                else user_default_acl(catalog, thing, whose)
            )
            if (whose, acl) != (OWNER, None) or thing.name == "public":
                owned.append(PutPrivileges(thing.subject, ObjectPrivileges(whose, acl, 1)))
    return owned


def _of_table(catalog: Catalog, change: CatalogChange, owner: int) -> int:
    """The owner of a new object; a sequence for a column has the owner of the column's table."""
    made = change.object if isinstance(change, PutObject) else None
    if not isinstance(made, SequenceDefinition) or not made.owner:
        return owner
    table = catalog.by_oid(made.owner)
    return owner if table is None else object_privileges(catalog, owned_object(table)).owner


def _owner(execution: Execution, context: BindContext) -> int:
    """The current role. 42704 if it was dropped; 40001 if the transaction reads before it."""
    oid, newest = context.user_oid, execution.services.coordination.newest_catalog
    if oid in newest.roles and oid not in context.catalog.roles:
        message = "could not serialize access: the current role is newer than the snapshot"
        raise SqlError("40001", message)
    return current_role(context).oid


_UNOWNED: Final = ("index", "extension")
"""Kinds of objects that have no owner of their own."""


def _made(change: CatalogChange) -> OwnedObject | None:
    """What did not exist before, if it has an owner of its own."""
    match change:
        case PutSchema(name=name):
            return owned_schema(name)
        case PutTable(table=thing) if thing.version == 0:
            return owned_object(thing)
        case PutObject(object=thing) if thing.version == 0 and thing.kind not in _UNOWNED:
            return owned_object(thing)
        case _:
            return None


def _numbered(role: Role, oid: int) -> Role:
    members = tuple(
        replace(one, member=one.member or oid, grantor=one.grantor or oid) for one in role.members
    )
    return replace(role, oid=role.oid or oid, members=members)
