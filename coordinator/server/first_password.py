"""What the stash keeps about log-ins: whether a password is asked for, and a secret for mock salts.

    MERIDIAN_PASSWORD, `meridian passwd` ─▶ the first superuser's verifier ─▶ `password_asked`

INVARIANTS
  V1  once a password was set here, the built-in rules ask for it, at every later start: nothing
      but `hba_file` changes that. So they do at a start where the first superuser has one by SQL.
  V2  the mark follows the verifier: a crash between them leaves a password that nobody is asked for
      yet, and the next start with the same variable goes on.
  V3  a name that no role has is always answered with the same salt: the secret it is made of never
      changes.
"""

import asyncio
import logging
import secrets
from dataclasses import dataclass, field, replace
from typing import Final

from coordinator.authentication.verifier import (
    ITERATIONS_DEFAULT,
    SALT_BYTES,
    is_password_of,
    parse_verifier,
    stored_password,
)
from coordinator.config import Settings, SettingsError
from coordinator.core.messages.catalog_changes import CatalogChange, PutRole
from coordinator.driver.coordination import Coordination
from coordinator.driver.server_changes import SERVER, change_catalog_alone
from coordinator.driver.timelines import Timelines
from coordinator.variables.variables import Variables
from sql.catalog.acl import OWNER
from sql.catalog.catalog import Catalog
from sql.catalog.roles import BUILT_IN_ROLES, Role
from sql.errors import SqlError
from storage.stash import Put, Require, Stash
from storage.types import Epoch

log = logging.getLogger("meridian.access")

_COLLECTION: Final = "access"
_MOCK_SECRET: Final = "mock_secret"
_ASKED: Final = "password_asked"
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """See the module."""

    mock_secret: bytes = field(repr=False)
    password_asked: bool


async def load_access_record(stash: Stash, epoch: Epoch) -> AccessRecord:
    """What the stash keeps; the first start makes the secret (V3). Raises StorageError."""
    secret = await stash.read(_COLLECTION, _MOCK_SECRET)
    if secret is None:
        secret = secrets.token_bytes(_SECRET_BYTES)
        await stash.transact(
            epoch,
            [Put(_COLLECTION, _MOCK_SECRET, secret)],
            requires=[Require(_COLLECTION, _MOCK_SECRET, None)],
        )
    asked = await stash.read(_COLLECTION, _ASKED)
    return AccessRecord(secret, asked is not None)


async def ask_for_password(stash: Stash, epoch: Epoch) -> None:
    """From now on the built-in rules ask for passwords (V1, V2). Raises StorageError."""
    await stash.transact(epoch, [Put(_COLLECTION, _ASKED, b"1")])


def first_superuser(coordination: Coordination) -> Role:
    """The role that owns what nobody else does."""
    return coordination.newest_catalog.roles.get(OWNER, BUILT_IN_ROLES[OWNER])


async def set_verifier(coordination: Coordination, oid: int, verifier: str) -> None:
    """Store the verifier of a role. Raises RequestRefused, KeyError: there is no such role."""

    def changed(catalog: Catalog) -> list[CatalogChange]:
        role = {**BUILT_IN_ROLES, **catalog.roles}[oid]
        return [PutRole(replace(role, password=verifier, version=role.version + 1))]

    await change_catalog_alone(coordination, SERVER, changed)


async def take_first_password(
    settings: Settings, stash: Stash, timelines: Timelines
) -> AccessRecord:
    """What the stash keeps, after the environment's password was set if it is the first.

    Raises StorageError, RequestRefused; SettingsError for what is no password.
    """
    record = await load_access_record(stash, timelines.epoch)
    given = settings.first_password
    superuser = first_superuser(timelines)
    if not given:
        # One that SQL has set counts from the next start on.
        return replace(record, password_asked=record.password_asked or bool(superuser.password))
    if superuser.password is None and record.password_asked:
        log.warning(
            'the password of "%s" was taken away: the one of the environment is ignored',
            superuser.name,
        )
    elif superuser.password is None:
        variables = Variables(user=superuser.name, defaults=settings.variables)
        iterations = int(variables.get("scram_iterations"))
        try:
            verifier = await asyncio.to_thread(fresh_verifier, given, iterations)
        except SqlError as error:
            raise SettingsError(f"the first password: {error.message}") from error
        await set_verifier(timelines, superuser.oid, verifier)
        log.info('the password of "%s" is set', superuser.name)
    else:
        known = parse_verifier(superuser.password)
        if known is None or not await asyncio.to_thread(is_password_of, given, known):
            log.warning(
                'the password of "%s" was set before: the one of the environment is ignored',
                superuser.name,
            )
    await ask_for_password(stash, timelines.epoch)
    return replace(record, password_asked=True)


def fresh_verifier(password: str, iterations: int = ITERATIONS_DEFAULT) -> str:
    """What is stored for a password; it takes milliseconds. Raises SqlError, as CREATE ROLE."""
    salt = secrets.token_bytes(SALT_BYTES)
    return stored_password(password, iterations=iterations, salt=salt)
