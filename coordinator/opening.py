"""Opening what a server keeps: data directory, stash, warehouse. What fails changes nothing.

    DIR/stash.sqlite   (its lock is the lock of the directory)        DIR/warehouse/<shard>/..
"""

import os
from dataclasses import dataclass
from pathlib import Path

from coordinator.config import Settings, SettingsError
from storage.local_store import LocalObjectStore
from storage.stash_sqlite import SqliteStash


@dataclass(frozen=True, slots=True)
class Storage:
    """What is open; `close` lets go of locks and threads."""

    stash: SqliteStash
    store: LocalObjectStore

    async def close(self) -> None:
        """Finish what was handed over, then close."""
        await self.stash.close()
        self.store.close()


async def open_storage(settings: Settings) -> Storage:
    """Open or make everything. Raises SettingsError, StorageError (Locked, NewerFormat ..)."""
    directory = settings.data_path
    stash_path = local_path(settings.stash, "sqlite", directory / "stash.sqlite")
    warehouse = local_path(settings.warehouse, "file", directory / "warehouse")
    for path in (directory, stash_path.parent, warehouse.parent):
        _make(path)
    stash = await SqliteStash.open(stash_path)
    try:
        _make(warehouse)
        store = LocalObjectStore.open(warehouse)
    except BaseException:
        await stash.close()
        raise
    return Storage(stash, store)


def local_path(url: str, scheme: str, default: Path) -> Path:
    """The path that a URL of this slice names: `scheme:PATH`, `scheme://PATH` or a plain path."""
    if not url:
        return default
    found, colon, rest = url.partition(":")
    if not colon or "/" in found:
        return Path(url)
    if found != scheme:
        raise SettingsError(f'"{url}" is not supported: only {scheme}:PATH is, so far')
    return Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = os.access(directory, os.R_OK | os.W_OK | os.X_OK)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SettingsError(f"cannot use {directory}: {reason}") from error
    if not usable:
        raise SettingsError(f"cannot use {directory}: permission denied")
