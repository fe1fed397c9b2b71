"""`meridian check`: stash, txns shard and Delta tables agree, offline. Nothing is changed.

The lock, the stash's file, txns shard and catalog, every table's log and files; findings to stdout.
"""

import asyncio
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from compute.arrow import table_schema
from coordinator.committing import ORACLE, SYSTEM
from coordinator.config import Settings, SettingsError
from coordinator.core.catalog import COLLECTION, decode_changes
from coordinator.opening import Storage, open_storage_to_look
from coordinator.startup import known_shards
from storage.check import Finding, ShardRecord, check_shard
from storage.errors import StorageError
from storage.object_store import RESERVED
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp


def check(settings: Settings) -> int:
    """Check stash and warehouse; 0 if everything acknowledged is there and whole."""
    from coordinator.main import failed

    if not settings.stash and not (settings.data_path / "stash.db").exists():
        return failed(f"there is no stash in {settings.data_dir}")
    try:
        return asyncio.run(_check(settings))
    except (SettingsError, StorageError) as error:
        return failed(str(error))


async def _check(settings: Settings) -> int:
    storage = await open_storage_to_look(settings)
    try:
        damage = list(await storage.stash.verify())
        findings, tables = ([], 0) if damage else await _findings(storage)
    finally:
        await storage.close()
    errors = len(damage) + sum(found.severity == "error" for found in findings)
    for line in damage:
        _say(f"error: stash: {line}")
    for found in findings:
        _say(f"{found.severity}: {found.place}: {found.problem}")
    _say(f"checked {tables} tables: {'ok' if errors == 0 else f'{errors} errors'}")
    return 0 if errors == 0 else 1


async def _findings(storage: Storage) -> tuple[Sequence[Finding], int]:
    """Findings about every table that exists, and how many there are."""
    # Only `load` is called, which writes nothing: an epoch is not needed for that.
    found = await TxnsShard(storage.stash, Epoch(0)).load()
    history = decode_changes(await storage.stash.scan(COLLECTION))
    ceiling = await storage.stash.read(ORACLE, SYSTEM)
    findings: list[Finding] = []
    tables = 0
    known = known_shards(history)
    for shard, table in known.items():
        if table.dropped is not None:
            continue
        tables += 1
        if shard not in found.shards:
            findings.append(Finding("error", shard, shard, "is not registered in the txns shard"))
        record = ShardRecord(
            shard=ShardId(shard),
            schema=table_schema(table.table.columns),
            registered=found.shards.get(shard, table.created),
            applied=found.applied,
            batches=[(ts, batch) for ts, owner, batch in found.batches if owner == shard],
            flushed=found.flushed.get(shard),
            present=None if ceiling is None else Timestamp(int.from_bytes(ceiling, "big")),
        )
        findings += await check_shard(storage.store, record)
    findings += await _strays(storage, known.keys(), found.shards.keys())
    if history and ceiling is None:
        findings.append(Finding("error", ShardId(""), "stash", "the oracle's ceiling is missing"))
    return findings, tables


async def _strays(
    storage: Storage, known: Collection[ShardId], registered: Collection[ShardId]
) -> list[Finding]:
    """Shards that only one of catalog, txns shard and warehouse knows."""
    findings = [
        Finding("error", shard, shard, "is registered, but the catalog has never had it")
        for shard in sorted({*registered} - {*known})
    ]
    directories = await asyncio.to_thread(lambda: sorted(_not_empty(storage.warehouse)))
    findings += [
        Finding("orphan", ShardId(name), name, "the catalog knows no such table")
        for name in directories
        if name not in known and name != RESERVED
    ]
    return findings


def _not_empty(warehouse: Path) -> Iterator[str]:
    """Directories with a file below; of a table that was dropped, an empty one is left."""
    for entry in os.scandir(warehouse):
        if not entry.is_dir() or any(files for _, _, files in os.walk(entry.path)):
            yield entry.name


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
