"""Waiting until definitions and rows are in Delta's files, which then lie where others read."""

import asyncio
from pathlib import Path
from typing import TypeAlias

import psycopg

from storage.memory import MemoryObjectStore

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

TRIES = 500


def cut(connection: Connection) -> int:
    """The newest one that all tables have."""
    row = connection.execute("select coalesce(min(cut), 0) from meridian.frontiers").fetchone()
    assert row is not None
    return int(str(row[0]))


def wait_for_cut(connection: Connection, before: int) -> None:
    """The next one: nothing was left to flush before the change. Perhaps the change needs none."""
    for _ in range(TRIES):
        if cut(connection) > before:
            return


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
