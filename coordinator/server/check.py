"""`meridian check`: verify offline that stash, txns shard and Delta tables agree; changes nothing.

It examines the lock, the stash's file, txns shard and catalog, and every table's log and files. It
prints its findings to stdout.
"""

import asyncio
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from compute.arrow import table_schema
from coordinator.config import Settings, SettingsError
from coordinator.core.catalog import COLLECTION, VersionedCatalog, decode_changes
from coordinator.core.catalog_references import broken_references
from coordinator.driver.commit_effects import ORACLE
from coordinator.server.open_storage import Storage, open_storage_for_check
from coordinator.server.recovery import KnownShard, known_shards, ticks_per_ms, timeline_stash
from sql.binder.broken_definitions import find_broken_definitions
from sql.catalog.catalog import SYSTEM_TIMELINE, Catalog, Table, Timeline
from storage.check import Finding, ShardRecord, check_shard
from storage.errors import StorageError
from storage.object_store import RESERVED, ObjectStore
from storage.shard import Definition
from storage.stash import Stash
from storage.txns import Recovered as Found
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp


def check(settings: Settings) -> int:
    """Check stash and warehouse; 0 if everything acknowledged is there and whole."""
    from coordinator.exit_line import report_failure

    if not settings.stash and not (settings.data_path / "stash.db").exists():
        return report_failure(f"there is no stash in {settings.data_dir}")
    try:
        return asyncio.run(_check(settings))
    except (SettingsError, StorageError) as error:
        return report_failure(str(error))


async def _check(settings: Settings) -> int:
    storage = await open_storage_for_check(settings)
    try:
        damage = list(await storage.stash.verify())
        findings, tables = ([], 0) if damage else await _look(storage)
    finally:
        await storage.close()
    errors = len(damage) + sum(found.severity == "error" for found in findings)
    for line in damage:
        _say(f"error: stash: {line}")
    for found in findings:
        _say(f"{found.severity}: {found.place}: {found.problem}")
    _say(f"checked {tables} tables: {'ok' if errors == 0 else f'{errors} errors'}")
    return 0 if errors == 0 else 1


async def _look(storage: Storage) -> tuple[Sequence[Finding], int]:
    directories = await asyncio.to_thread(lambda: sorted(_not_empty(storage.warehouse)))
    return await find_inconsistencies(storage.stash, storage.store, directories)


async def find_inconsistencies(
    stash: Stash, store: ObjectStore, directories: Collection[str]
) -> tuple[Sequence[Finding], int]:
    """Findings about the catalog and every table that exists, and how many there are.

    `directories`: those of the warehouse with anything in them.
    """
    history = decode_changes(await stash.scan(COLLECTION))
    known = known_shards(history)
    catalog = VersionedCatalog(history).current
    lines = [await _line(stash, timeline) for timeline in catalog.timelines.values()]
    findings = [*_misfits(catalog)]
    tables = 0
    for line in lines:
        for shard, table in known.items():
            if table.dropped is None and table.table.timeline == line.timeline.name:
                tables += 1
                findings += await _table_findings(store, shard, table, line)
    registered = {shard for line in lines for shard in line.found.shards}
    findings += _strays(directories, known.keys(), registered)
    if history and any(line.present is None for line in lines):
        findings.append(Finding("error", ShardId(""), "stash", "the oracle's ceiling is missing"))
    return findings, tables


def _misfits(catalog: Catalog) -> Iterator[Finding]:
    """Definitions that refer to what is not there, or else those whose texts have no meaning."""
    found = [(misfit.what, misfit.why) for misfit in broken_references(catalog)]
    found = found or [(thing.qualified, why) for thing, why in find_broken_definitions(catalog)]
    yield from (Finding("error", ShardId(""), what, why) for what, why in found)


_NEVER: Final = Timestamp(1 << 62)
"""Later than any cut."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A timeline, what its txns shard holds, and its present (see ShardRecord)."""

    timeline: Timeline
    found: Found
    present: Timestamp | None


async def _line(stash: Stash, timeline: Timeline) -> _Line:
    # Only `load` is called, which writes nothing: an epoch is not needed for that.
    found = await TxnsShard(timeline_stash(stash, timeline), Epoch(0)).load()
    if timeline.manual:
        return _Line(timeline, found, found.upper)
    ceiling = await stash.read(ORACLE, timeline.name)
    present = None if ceiling is None else Timestamp(int.from_bytes(ceiling, "big"))
    return _Line(timeline, found, present)


async def _table_findings(
    store: ObjectStore, shard: ShardId, table: KnownShard, line: _Line
) -> list[Finding]:
    found = line.found
    # In other timelines the first rows bring the registration, not the definition, whose timestamp
    # says nothing there: a cut above it may be older than the table.
    by_definition = line.timeline == SYSTEM_TIMELINE
    unregistered = table.created if by_definition else Timestamp(found.applied + 1)
    record = ShardRecord(
        shard=shard,
        schema=_schema_of(table.table),
        registered=found.shards.get(shard, unregistered),
        applied=found.applied,
        batches=[(ts, batch) for ts, owner, batch in found.batches if owner == shard],
        flushed=found.flushed.get(shard),
        ticks_per_ms=ticks_per_ms(line.timeline),
        present=line.present,
        definitions=_definitions(table, by_definition=by_definition),
    )
    findings = await check_shard(store, record)
    if shard not in found.shards and by_definition:
        findings.append(Finding("error", shard, shard, "is not registered in the txns shard"))
    return findings


def _schema_of(table: Table) -> pa.Schema:
    return table_schema(table.stored_columns, table.numbers, change_feed=table.change_feed)


def _definitions(table: KnownShard, *, by_definition: bool) -> tuple[Definition, ...]:
    found = table.definitions(_schema_of)
    if found and not by_definition:
        return (Definition(_NEVER, found[-1].schema),)
    return found


def _strays(
    directories: Collection[str], known: Collection[ShardId], registered: Collection[ShardId]
) -> list[Finding]:
    """Shards that only one of catalog, txns shard and warehouse knows."""
    findings = [
        Finding("error", shard, shard, "is registered, but the catalog has never had it")
        for shard in sorted({*registered} - {*known})
    ]
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
