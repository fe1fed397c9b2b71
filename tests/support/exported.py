"""Copy a table's Delta files to a directory for foreign readers."""

import asyncio
from pathlib import Path

from storage.memory import MemoryObjectStore


def export(store: MemoryObjectStore, directory: Path) -> None:
    """The store as files."""
    for name in asyncio.run(store.list("")):
        path = directory / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(store.peek(name))


def exported(store: MemoryObjectStore, directory: Path) -> Path:
    """The only table of the store, as files."""
    export(store, directory)
    return directory / asyncio.run(store.list(""))[0].split("/")[0]
