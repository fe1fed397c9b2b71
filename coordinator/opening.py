"""Opening what a server keeps: data directory, stash, warehouse. What fails changes nothing.

DIR/lock is held first; then DIR/stash.db and DIR/warehouse, or where the settings say.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from coordinator.config import Settings, SettingsError
from storage.layout import DataDirectory
from storage.local_store import LocalObjectStore
from storage.stash_sqlite import SqliteStash


@dataclass(frozen=True, slots=True)
class Storage:
    """What is open; `close` lets go of locks and threads."""

    directory: DataDirectory
    stash: SqliteStash
    store: LocalObjectStore
    warehouse: Path

    async def close(self) -> None:
        """Finish what was handed over, then let the next process in."""
        await self.stash.close()
        self.store.close()
        self.directory.close()


async def open_storage(settings: Settings, *, make: bool = True) -> Storage:
    """Open everything; `make` what is not there. Raises SettingsError, StorageError."""
    stash_path = local_path(settings.stash, "sqlite")
    warehouse = local_path(settings.warehouse, "file")
    directory = await asyncio.to_thread(DataDirectory.open, settings.data_path, make=make)
    try:
        stash = await SqliteStash.open(stash_path or directory.stash)
    except BaseException:
        directory.close()
        raise
    root = (warehouse or directory.warehouse).absolute()
    try:
        store = LocalObjectStore.open(root)
    except BaseException:
        await stash.close()
        directory.close()
        raise
    return Storage(directory, stash, store, root)


def local_path(url: str, scheme: str) -> Path | None:
    """The path that a URL of this slice names: `scheme:PATH`, `scheme:///PATH`, a plain path."""
    if not url:
        return None
    found, colon, rest = url.partition(":")
    if not colon or "/" in found:
        return Path(url)
    if found != scheme:
        raise SettingsError(f'"{url}" is not supported: only {scheme}:PATH is, so far')
    if not rest:
        raise SettingsError(f'"{url}" names no path')
    return Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)
