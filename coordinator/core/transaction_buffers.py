"""Buffers of an open transaction: savepoints, spilled rows, files that no commit will name.

Every function takes the transaction and answers with effects; what it changes is the transaction's
own (X4, X5 of `transactions.py`).
"""

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from coordinator.core.effects import Effect, RemoveStaged, Reply
from coordinator.core.messages import (
    InlineRows,
    ReleaseSavepoint,
    RollbackTo,
    Savepoint,
    Spilled,
    TakeInlineRows,
)
from coordinator.core.transactions import StagedFiles, Transaction
from storage.batch import WriteBatch
from storage.types import ShardId

BufferMessage: TypeAlias = Savepoint | ReleaseSavepoint | RollbackTo | TakeInlineRows | Spilled


def change_buffers(txn: Transaction, message: BufferMessage) -> list[Effect]:
    """Handle one message about the transaction's writes and DDL."""
    match message:
        case Savepoint(number=number):
            txn.savepoint(number)
            return []
        case ReleaseSavepoint(number=number):
            txn.release(number)
            return []
        case RollbackTo(number=number):
            return _removal(txn.rollback_to(number))
        case TakeInlineRows(request=request):
            return [Reply(request, InlineRows(txn.inline_rows()))]
        case Spilled(files=files):
            txn.spilled(files)
            return []
        case _:
            assert_never(message)


def orphaned_staged_files(
    txn: Transaction, committed: Mapping[ShardId, WriteBatch]
) -> list[Effect]:
    """At the transaction's end: its staged files that no commit names (X5 of `transactions.py`)."""
    files = set(txn.staged_files())
    if not files:
        return []
    for shard, batch in committed.items():
        files -= {(shard, file.name) for file in batch.staged}
    return _removal(tuple(sorted(files)))


def _removal(files: StagedFiles) -> list[Effect]:
    return [RemoveStaged(files)] if files else []
