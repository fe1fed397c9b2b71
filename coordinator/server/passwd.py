"""`meridian passwd NAME`: set a role's password while no server runs.

The catalog changes as by ALTER ROLE: through the core, under an epoch of its own. If NAME is the
first superuser, the built-in rules ask for passwords from then on (V1 of `first_password.py`).
"""

import asyncio
import getpass
import os
import sys
from dataclasses import replace

from coordinator.config import Settings, SettingsError
from coordinator.core.settings import CoreSettings
from coordinator.driver.coordination import RequestRefused
from coordinator.exit_line import report_failure
from coordinator.server.first_password import ask_for_password, fresh_verifier, set_verifier
from coordinator.server.open_storage import Storage, open_storage
from coordinator.server.recovery import recover_timelines
from coordinator.server.serve import schema_of
from sql.binder.resolve.role_names import session_roles
from sql.catalog.acl import OWNER
from sql.catalog.roles import is_reserved_role_name
from sql.errors import SqlError
from storage.clock import SystemClock
from storage.errors import StorageError
from storage.stash_sqlite import SqliteStash


def passwd(settings: Settings, name: str) -> int:
    """Ask for a password, on the terminal or by standard input, and store its verifier."""
    if not settings.stash and not (settings.data_path / "stash.db").exists():
        return report_failure(f"there is no stash in {settings.data_dir}")
    os.umask(0o077)
    try:
        password = _read_password()
        verifier = fresh_verifier(password)
        asyncio.run(_store(replace(settings, standby=False), name, verifier))
    except (SettingsError, StorageError, RequestRefused, SqlError) as error:
        return report_failure(str(error))
    return 0


def _read_password() -> str:
    """From the terminal, twice; else the first line of standard input. Raises SettingsError."""
    try:
        password = _asked_for() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except (EOFError, KeyboardInterrupt):
        raise SettingsError("no password was given") from None
    except UnicodeError:
        raise SettingsError("the password is not UTF-8") from None
    if not password:
        raise SettingsError("an empty password opens nothing")
    return password


def _asked_for() -> str:
    password = getpass.getpass("New password: ")
    if getpass.getpass("Again: ") != password:
        raise SettingsError("the passwords differ")
    return password


async def _store(settings: Settings, name: str, verifier: str) -> None:
    storage = await open_storage(settings)
    try:
        await _store_in(storage, name, verifier)
    finally:
        await storage.close()


async def _store_in(storage: Storage, name: str, verifier: str) -> None:
    if not isinstance(storage.stash, SqliteStash):
        # Whoever leads would be deposed by a new epoch.
        await storage.stash.refuse_if_led()
    timelines = await recover_timelines(
        storage.stash, storage.store, SystemClock(), CoreSettings(), schema_of
    )
    if is_reserved_role_name(name):
        raise SqlError("42939", f'role name "{name}" is reserved')
    role = session_roles(timelines.newest_catalog, "").named(name)
    if role is None:
        raise SettingsError(f'role "{name}" does not exist')
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        group.create_task(timelines.run())
        try:
            await set_verifier(timelines, role.oid, verifier)
            if role.oid == OWNER:
                await ask_for_password(storage.stash, timelines.epoch)
        except (StorageError, RequestRefused) as error:
            # Raised in the group it would come out as one of a group.
            failure = error
        await timelines.stop()
    if failure is not None:
        raise failure
