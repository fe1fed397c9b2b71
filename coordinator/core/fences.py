"""Tell the users of a fenced table why it is neither read nor written (A4 of `validation.py`)."""

from collections.abc import Mapping
from typing import Final

from coordinator.core.messages.replies import Refused, RefusedReason
from sql.catalog.catalog import Table
from storage.shard import Fence, ShardState
from storage.types import ShardId


def fenced_table_refusal(table: Table, shards: Mapping[ShardId, ShardState]) -> Refused | None:
    """A4: the verdict on a table that is to be read or written."""
    state = shards.get(ShardId(table.shard))
    if state is None or state.fence is None:
        return None
    return fence_refusal(table, state.fence)


def fence_refusal(table: Table, fence: Fence) -> Refused:
    """What the users of a fenced table hear."""
    sqlstate, reason, hint = _FENCED[fence]
    message = f'table "{table.name}" {reason}'
    return Refused(RefusedReason.OTHER, sqlstate, message, hint=hint, table=table)


_FENCED: Final = {
    Fence.FOREIGN: (
        "58030",
        "was changed by another writer",
        "Its Delta log was written by something other than this server.",
    ),
    Fence.DAMAGED: (
        "XX001",
        "is damaged: files of it are missing or broken",
        "The server's log says more. It is looked at again when the server starts;"
        " DROP TABLE removes it.",
    ),
    Fence.UNREADABLE: (
        "58030",
        "could not be read when the server started",
        "The server's log says why. It is looked at again when the server starts;"
        " DROP TABLE removes it.",
    ),
}
