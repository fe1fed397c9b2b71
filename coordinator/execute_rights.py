"""CREATE ROLE, GRANT and their kin: changes of the catalog like other definitions.

INVARIANTS
  W1  a password leaves this module as a SCRAM verifier only, and is not kept in the plan cache.
  W2  who grants or takes away a privilege is told, once a statement, that none is enforced yet.
"""

import base64
import hashlib
import hmac
import re
import secrets
import unicodedata
from dataclasses import replace
from typing import Final

from coordinator.core.messages import CatalogChange, PutRights, PutRole, RemoveRole
from coordinator.execution import Execution
from coordinator.pgwire.messages import Severity
from sql.bind_roles import UNASKED
from sql.definition_statements import ChangeRights
from sql.errors import SqlError, not_supported
from sql.roles import Role

NOT_ENFORCED: Final = "privileges are recorded and shown, but not enforced yet"
WARNINGS: Final = (NOT_ENFORCED, UNASKED[1])
"""What PostgreSQL does not say."""
_TOLD: Final = frozenset({"GRANT", "REVOKE", "ALTER DEFAULT PRIVILEGES"})
_VERIFIER: Final = re.compile(
    r"SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}"
)
_MD5: Final = re.compile(r"md5[0-9a-f]{32}")
_SALT_BYTES: Final = 16


async def changed_rights(execution: Execution, statement: ChangeRights) -> list[CatalogChange]:
    """The changes; a new role gets its oid."""
    for sqlstate, text, detail in statement.notices:
        severity = Severity.WARNING if sqlstate[:2] == "01" else Severity.NOTICE
        execution.notice(SqlError(sqlstate, text, detail=detail), severity)
    if statement.tag in _TOLD:
        execution.notice(SqlError("01000", NOT_ENFORCED), Severity.WARNING)
    roles = statement.roles
    if any(role.oid == 0 for role in roles):
        oid, _ = await execution.services.coordination.new_table_id()
        roles = tuple(_numbered(role, oid) for role in roles)
    if statement.password is not None:
        iterations = int(execution.variables.get("scram_iterations"))
        first = replace(roles[0], password=verifier(statement.password, iterations))
        roles = (first, *roles[1:])
    changes: list[CatalogChange] = [PutRole(role) for role in roles]
    changes += (RemoveRole(role) for role in statement.dropped)
    changes += (PutRights(subject, rights) for subject, rights in statement.rights)
    return changes


def _numbered(role: Role, oid: int) -> Role:
    members = tuple(
        replace(one, member=one.member or oid, grantor=one.grantor or oid) for one in role.members
    )
    return replace(role, oid=role.oid or oid, members=members)


def verifier(password: str, iterations: int) -> str:
    """What the server keeps of a password (RFC 5803); one that is one already stays (W1)."""
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
