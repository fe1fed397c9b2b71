"""Buffers of an open transaction: savepoints, spilled rows, files that no commit will name.

Every function answers with effects; what it changes is the transaction's own (X4, X5 of
`transactions.py`), and the locks that ROLLBACK TO gives back.
"""

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from coordinator.core.effects import Effect, RemoveStaged, Reply
from coordinator.core.locking.requests import serve_waiters
from coordinator.core.messages.replies import InlineRows
from coordinator.core.messages.requests import (
    ReleaseSavepoint,
    RollbackTo,
    Savepoint,
    Spilled,
    TakeInlineRows,
)
from coordinator.core.state import CoreState
from coordinator.core.transactions import StagedFiles, Transaction
from storage.batch import WriteBatch
from storage.types import ShardId

BufferMessage: TypeAlias = Savepoint | ReleaseSavepoint | RollbackTo | TakeInlineRows | Spilled


def change_buffers(core: CoreState, message: BufferMessage) -> list[Effect]:
    """Handle one message about the transaction's writes, DDL and locks."""
    txn = core.transactions[message.txn]
    match message:
        case Savepoint(number=number):
            txn.savepoint(number)
            return []
        case ReleaseSavepoint(number=number):
            txn.release(number)
            return []
        case RollbackTo(number=number, keeps_locks=keeps_locks):
            served = () if keeps_locks else core.locks.rollback_to(txn.owner, txn.id, number)
            return [*removal(txn.rollback_to(number)), *serve_waiters(core, served)]
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
    return removal(tuple(sorted(files)))


def removal(files: StagedFiles) -> list[Effect]:
    """Of staged files that no commit names, if there are any."""
    return [RemoveStaged(files)] if files else []
