"""Queries of ctid and xmin in a transaction that has written rows: these have neither yet.

INVARIANTS
  N1  such a row has NULL for both in a plan (W4 of `storage/row_versions.py`). A query whose answer
      might show it, or depend on it in another way than by a comparison that fails, is refused:
      who asks for a row by a ctid or xmin that it was given never means these.
"""

from collections.abc import AsyncIterator, Mapping

import pyarrow as pa

from coordinator.streams import closing_batches
from sql.errors import not_supported
from sql.plan.nodes import Plan, RelationId
from sql.plan.system_columns import relations_with_versions, version_uses
from storage.batch import ShardView

_WHAT = "reading ctid or xmin of rows that the transaction itself has written"


def refuse_uncommitted_versions(
    plan: Plan, inputs: Mapping[RelationId, ShardView], batches: AsyncIterator[pa.RecordBatch]
) -> AsyncIterator[pa.RecordBatch]:
    """The answer, as long as it shows no such row. Raises 0A000 (N1)."""
    relations = relations_with_versions(plan)
    if not any(_has_uncommitted(view) for name, view in inputs.items() if name in relations):
        return batches
    uses = version_uses(plan)
    if not uses.compared:
        raise not_supported(_WHAT)
    return _checked(batches, uses.shown) if uses.shown else batches


def _has_uncommitted(view: ShardView) -> bool:
    return any(part.first_id is None for part in view.inline) or any(
        part.file.origins is None for part in view.files
    )


async def _checked(
    batches: AsyncIterator[pa.RecordBatch], shown: tuple[int, ...]
) -> AsyncIterator[pa.RecordBatch]:
    async with closing_batches(batches) as arriving:
        async for batch in arriving:
            if any(batch.column(place).null_count for place in shown):
                raise not_supported(_WHAT)
            yield batch
