"""Compute the catalog changes of CREATE ROLE, GRANT and their kin.

INVARIANTS
  W1  a password leaves this module as a SCRAM verifier only, and never enters the plan cache.
  W2  a statement that grants or revokes privileges warns once that none is enforced yet.
"""

import base64
import hashlib
import hmac
import re
import secrets
import unicodedata
from dataclasses import replace
from typing import Final

from coordinator.core.messages import (
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
from sql.binder.ddl.roles.roles import PASSWORD_NOT_CHECKED
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
from sql.errors import SqlError, not_supported
from sql.statements.ddl import ChangePrivileges

NOT_ENFORCED: Final = "privileges are recorded and shown, but not enforced yet"
WARNINGS: Final = (NOT_ENFORCED, PASSWORD_NOT_CHECKED.message)
"""What PostgreSQL does not say."""
_TOLD: Final = frozenset({"GRANT", "REVOKE", "ALTER DEFAULT PRIVILEGES"})
_VERIFIER: Final = re.compile(
    r"SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}"
)
_MD5: Final = re.compile(r"md5[0-9a-f]{32}")
_SALT_BYTES: Final = 16


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
        first = replace(roles[0], password=scram_verifier(statement.password, iterations))
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


def scram_verifier(password: str, iterations: int) -> str:
    """The SCRAM verifier stored for a password (RFC 5803); a given verifier is stored as it is
    (W1).
    """
    if _VERIFIER.fullmatch(password):
        return password
    if _MD5.fullmatch(password):
        raise not_supported("an MD5 password")
    prepared = password if password.isascii() else unicodedata.normalize("NFKC", password)
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", prepared.encode(), salt, iterations)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(client).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    parts = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(iterations, *parts)
