"""What a stash of today would look like if a program of format 1 had written it.

commits/<ts> ──▶ batches/<ts>/<shard>, tokens/<token>, txns/upper      of every timeline
"""

import sqlite3
import struct
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from storage.memory import MemoryStash
from storage.outstanding import COMMITS, decode_stored_commit

Entries: TypeAlias = Mapping[tuple[str, str], bytes]
"""Collection and key, and the value."""


def former_entries(entries: Entries) -> Entries:
    """The same commits as format 1 has them."""
    found: dict[tuple[str, str], bytes] = {}
    for (collection, key), value in entries.items():
        if collection.rpartition("/")[2] != COMMITS:
            found.setdefault((collection, key), value)
            continue
        part = collection.removesuffix(COMMITS)
        commit = decode_stored_commit(key, value)
        for shard, batch in commit.batches.items():
            found[f"{part}batches", f"{key}/{shard}"] = batch
        outcome = struct.pack(">qI", commit.ts, len(commit.batches))
        found[f"{part}tokens", commit.token] = outcome
        upper = (f"{part}txns", "upper")
        after = struct.pack(">q", commit.ts + 1)
        # Big-endian, and never negative: the bytes are in the order of the numbers.
        found[upper] = max(found.get(upper, b""), entries.get(upper, b""), after)
    return found


def as_before(stash: MemoryStash) -> MemoryStash:
    """A twin with the same contents in format 1."""
    before = MemoryStash(stored_format=1)
    for (collection, key), value in former_entries(contents(stash)).items():
        before._collections.setdefault(collection, {})[key] = value
    before._epoch = stash.epoch
    return before


def contents(stash: MemoryStash) -> dict[tuple[str, str], bytes]:
    """All entries of a twin, without asking it."""
    return {
        (collection, key): value
        for collection, rows in stash._collections.items()
        for key, value in rows.items()
    }


def write_as_before(path: Path) -> int:
    """Turn the file of a stash that is closed into one of format 1; how many commits it has."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT collection, key, value FROM entries").fetchall()
        entries = {(collection, key): value for collection, key, value in rows}
        connection.execute("DELETE FROM entries")
        for (collection, key), value in former_entries(entries).items():
            checksum = zlib.crc32(value, zlib.crc32(f"{collection}\0{key}\0".encode()))
            row = (collection, key, value, checksum)
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'format'")
    return sum(collection == COMMITS for collection, _ in entries)
