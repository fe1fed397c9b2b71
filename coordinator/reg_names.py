"""Results of the reg types: oids become the names of what they are, on their way to the client.

INVARIANTS
  R1  names are those of the catalog that the statement was bound with; an oid that names nothing
      is shown as it is.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from coordinator.ending import ending
from coordinator.name_catalog_rows import registered_names
from coordinator.pgwire.kernels import Column, listed
from sql.binding import BindContext
from sql.statements import OutputColumn
from sql.types import REGISTERED

_KINDS: Final = {name: name.removeprefix("reg") for name in REGISTERED}


def has_names(columns: Sequence[OutputColumn]) -> bool:
    """Whether a result has columns to be named."""
    return any(column.type.name in REGISTERED for column in columns)


async def named(
    batches: AsyncIterator[pa.RecordBatch],
    columns: Sequence[OutputColumn],
    context: BindContext,
) -> AsyncIterator[pa.RecordBatch]:
    """The rows, with names as text."""
    names: dict[str, dict[int, str]] = {kind: {0: "-"} for kind in _KINDS.values()}
    for kind, oid, text, _ in registered_names(context):
        names[kind][oid] = text

    def shown(column: OutputColumn, array: Column) -> Column:
        if column.type.name not in REGISTERED:
            return array
        return _texts(array, names[_KINDS[column.type.name]])

    async with ending(batches):
        async for batch in batches:
            arrays = list(map(shown, columns, batch.columns))
            yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _texts(column: Column, names: Mapping[int, str]) -> Column:
    oids: list[int | None] = listed(column)
    return pa.array(
        [None if oid is None else names.get(oid, str(oid)) for oid in oids], pa.string()
    )
