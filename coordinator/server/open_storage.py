"""Open a server's storage: data directory, stash, warehouse; a failure changes nothing.

DIR/lock is held first; then DIR/stash.db and DIR/warehouse, or the places that the settings name.
With a stash in PostgreSQL the data directory holds only files of this process (scratch, unpacked
classes), and its lock keeps no other coordinator out: the epoch does.

A standby waits until the stash is free: a SQLite stash when its locks are released, a PostgreSQL
stash when it reports so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from coordinator.config import Settings, SettingsError, read_secret
from storage.errors import Corrupt, Determinate, Indeterminate, Locked, NewerFormat, NotFound
from storage.layout import DataDirectory
from storage.local_store import LocalObjectStore
from storage.stash_sqlite import SqliteStash
from storage.txns import TxnsShard
from storage.types import Epoch

if TYPE_CHECKING:
    # Its driver takes long to import, and a stash in SQLite does without (E3 of `main.py`).
    from storage.stash_postgres import PostgresStash

log = logging.getLogger("meridian.opening")

LOCK_PAUSE_S: Final = 0.1
"""Between two looks at a lock that somebody else holds."""

STASH_PAUSE_S: Final = 0.2
"""Between two attempts to reach a stash that is away; each of them takes its time, too."""

Opened = TypeVar("Opened")

AnyStash: TypeAlias = "SqliteStash | PostgresStash"


@dataclass(frozen=True, slots=True)
class Storage:
    """The open storage; `close` releases locks and threads. `lock` is None in `meridian check` if
    the stash is elsewhere.
    """

    lock: DataDirectory | None
    stash: AnyStash
    store: LocalObjectStore
    warehouse: Path

    @property
    def directory(self) -> DataDirectory:
        """The data directory of a server."""
        assert self.lock is not None, "a server has a data directory"
        return self.lock

    @property
    def cluster(self) -> str:
        """The system identifier of the PostgreSQL that has the stash; empty: none, or not known."""
        return "" if isinstance(self.stash, SqliteStash) else self.stash.system

    async def taken_over(self) -> None:
        """Clean up after the previous coordinator, which is fenced by now."""
        if not self.stash.exclusive:
            await self.store.remove_unfinished()

    async def close(self) -> None:
        """Finish pending work, then release the lock for the next process."""
        await self.stash.close()
        self.store.close()
        if self.lock is not None:
            self.lock.close()


async def open_storage(settings: Settings) -> Storage:
    """Open everything, and make what is not there. Raises SettingsError, StorageError.

    On standby it returns when nobody else serves it.
    """
    _check_places(settings)
    directory = await _when_free(
        lambda: asyncio.to_thread(DataDirectory.open, settings.data_path), settings
    )
    try:
        stash = await _open_stash(settings, directory)
    except BaseException:
        directory.close()
        raise
    storage = await _with_store(settings, directory, stash)
    if isinstance(stash, SqliteStash):
        return storage
    # What cannot start must not take over.
    try:
        await _when_reachable(lambda: _refuse_other_warehouse(storage), settings)
        if settings.standby:
            log.info("standing by")
            await stash.stand_by()
            log.info("taking over")
    except BaseException:
        await storage.close()
        raise
    return storage


async def _refuse_other_warehouse(storage: Storage) -> None:
    """Raise SettingsError unless some table of the stash is in this warehouse.

    Somebody else may lead and forget dropped tables meanwhile: first the stash, then the files.
    """
    txns = TxnsShard(storage.stash, Epoch(0))
    known = sorted(await txns.with_log())
    for shard in known:
        if await storage.store.list(shard):
            return
    suspects = {*known} & await txns.with_log()
    if suspects:
        raise SettingsError(
            f"the warehouse {storage.warehouse} has nothing of {min(suspects)}, which the stash"
            " knows: is it the one that the other coordinators use?"
        )


async def open_storage_for_check(settings: Settings) -> Storage:
    """Open existing storage to read it. Raises SettingsError, StorageError (Locked: in use)."""
    _check_places(settings)
    if settings.shares_stash:
        from storage.stash_postgres import PostgresStash

        shared = await PostgresStash.open(stash_dsn(settings), make=False)
        try:
            await shared.refuse_if_led()
        except BaseException:
            await shared.close()
            raise
        return await _with_store(settings, None, shared)
    directory = await asyncio.to_thread(DataDirectory.open, settings.data_path, make=False)
    try:
        stash = await SqliteStash.open(local_path(settings.stash, "sqlite") or directory.stash)
    except BaseException:
        directory.close()
        raise
    return await _with_store(settings, directory, stash)


def _check_places(settings: Settings) -> None:
    local_path(settings.warehouse, "file")
    if not settings.shares_stash:
        local_path(settings.stash, "sqlite")


async def _with_store(
    settings: Settings, directory: DataDirectory | None, stash: AnyStash
) -> Storage:
    root = local_path(settings.warehouse, "file")
    if root is None:
        assert directory is not None, "settings have been checked"
        root = directory.warehouse
    root = root.absolute()
    try:
        store = LocalObjectStore.open(root, shared=settings.shares_stash)
    except NotFound as error:
        await stash.close()
        if directory is not None:
            directory.close()
        raise SettingsError(f"cannot open the warehouse {root}: no such directory") from error
    except BaseException:
        await stash.close()
        if directory is not None:
            directory.close()
        raise
    return Storage(directory, stash, store, root)


async def _open_stash(settings: Settings, directory: DataDirectory) -> AnyStash:
    if not settings.shares_stash:
        path = local_path(settings.stash, "sqlite") or directory.stash
        return await _when_free(lambda: SqliteStash.open(path), settings)
    from storage.stash_postgres import PostgresStash

    dsn = stash_dsn(settings)
    return await _when_reachable(lambda: PostgresStash.open(dsn), settings)


def stash_dsn(settings: Settings) -> str:
    """Where a stash in PostgreSQL is, with the password of `stash_password_file`; without one the
    driver looks into PGPASSFILE. Raises SettingsError.
    """
    if not settings.stash_password_file:
        return settings.stash
    password = quote(read_secret(Path(settings.stash_password_file)), safe="")
    parts = urlsplit(settings.stash)
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}:{password}@{host}").geturl()


async def _when_reachable(ask: Callable[[], Awaitable[Opened]], settings: Settings) -> Opened:
    """On standby ask a stash that is away again and again. Raises StorageError if not on standby,
    and for what will not pass.
    """
    from storage.postgres_link import UnfitServer

    while True:
        try:
            return await ask()
        except (UnfitServer, Corrupt, NewerFormat):
            raise
        except (Determinate, Indeterminate) as error:
            if not settings.standby:
                raise
            log.warning("standing by, and the stash does not answer: %s", error)
        await asyncio.sleep(STASH_PAUSE_S)


async def _when_free(take: Callable[[], Awaitable[Opened]], settings: Settings) -> Opened:
    """Take a lock; on standby wait until it is free. Raises Locked if not on standby."""
    waiting = False
    while True:
        try:
            return await take()
        except Locked:
            if not settings.standby:
                raise
            if not waiting:
                log.info("standing by")
            waiting = True
        await asyncio.sleep(LOCK_PAUSE_S)


def local_path(url: str, scheme: str) -> Path | None:
    """The path that a URL of this slice names: `scheme:PATH`, `scheme:///PATH`, a plain path."""
    if not url:
        return None
    found, colon, rest = url.partition(":")
    if not colon or "/" in found:
        return Path(url)
    if found != scheme:
        raise SettingsError(f'"{found}:" is not supported here: only {scheme}:PATH is, so far')
    if not rest:
        raise SettingsError(f'"{url}" names no path')
    return Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)
