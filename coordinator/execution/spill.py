"""Bound the memory of a transaction's writes: move its inline rows into staged files.

    rows ─▶ transaction (inline) ──more than the limit──▶ staged files, in order

INVARIANTS
  B1  a transaction holds at most `transaction_inline_bytes_max` and one statement's inline rows in
      memory; the excess is moved into staged files, the largest tables first.
  B2  nothing of the session runs between taking the rows and reporting their new files.
  B3  files that were not handed over are discarded here; the coordinator owns the others.
"""

from collections.abc import Mapping

import pyarrow as pa

from coordinator.execution.context import Execution, Spooler
from sql.catalog.catalog import Table
from storage.batch import DataFile, WriteBatch, bytes_of
from storage.known_rows import OldRows
from storage.types import ShardId


async def write_rows(
    execution: Execution, table: Table, batch: WriteBatch, old: OldRows | None = None
) -> None:
    """Buffer what a statement wrote into the transaction (B1)."""
    buffer_rows(execution, table, batch, old)
    await spill_if_large(execution)


def buffer_rows(
    execution: Execution,
    table: Table,
    batch: WriteBatch,
    old: OldRows | None = None,
    *,
    keeps_keys: bool = False,
) -> None:
    """Buffer a part of a statement's writes; after the last one comes `spill_if_large`.

    `keeps_keys`: rows that it deletes come again with the same keys.
    """
    transaction = execution.transaction
    nbytes = 0 if batch.rows is None else bytes_of(batch.rows)
    transaction.inline.add(nbytes)
    transaction.wrote = True
    execution.services.coordination.write(transaction.id, table, batch, old, keeps_keys=keeps_keys)


async def spill_if_large(execution: Execution) -> None:
    """Move rows out of memory if there are too many (B1)."""
    limit = execution.services.limits.transaction_inline_bytes_max
    if execution.transaction.inline.nbytes > limit:
        await _spill(execution)


async def _spill(execution: Execution) -> None:
    transaction, coordination = execution.transaction, execution.services.coordination
    rows = await coordination.inline_rows(transaction.id)
    held = sum(table.nbytes for table in rows.values())
    chosen = _largest(rows, held - execution.services.limits.transaction_inline_bytes_max // 2)
    spoolers: list[Spooler] = []
    files: dict[ShardId, tuple[DataFile, ...]] = {}
    try:
        for shard, table in chosen.items():
            spooler = execution.services.spool(shard, table.schema)
            spoolers.append(spooler)
            for batch in table.to_batches():
                await spooler.write(batch)
            files[shard] = tuple(await spooler.finish())
    except BaseException:
        for spooler in spoolers:
            await spooler.discard()
        raise
    coordination.spilled(transaction.id, files)
    transaction.inline.left(held - sum(table.nbytes for table in chosen.values()))


def _largest(rows: Mapping[ShardId, pa.Table], excess: int) -> dict[ShardId, pa.Table]:
    """The largest tables that together hold `excess` bytes."""
    chosen: dict[ShardId, pa.Table] = {}
    for shard in sorted(rows, key=lambda shard: -rows[shard].nbytes):
        if excess <= 0:
            break
        chosen[shard] = rows[shard]
        excess -= rows[shard].nbytes
    return chosen
