"""Deleted rows of Parquet files as blocks of bits, which Spark joins to filter them out.

    file │ block │ bits ── joined by (file, index / 65,536) ──▶ rows whose bit is not set

INVARIANTS
  L1  the join takes at most one bit per row of the files, however many rows are deleted. It is
      broadcast; one row per deleted row did not fit into the memory of a small JVM.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from compute.scan import INDEX, SOURCE, file_name
from storage.batch import FileSlice

_BLOCK_BITS: Final = 16
"""Rows of a block, as a power of two. Larger: more bits sent for few deleted rows."""
_BLOCK_ROWS: Final = 1 << _BLOCK_BITS

DELETED_BLOCK: Final = f"shiftright({INDEX}, {_BLOCK_BITS})"
"""The block of a row of a file."""
IS_NOT_DELETED: Final = (
    "__bits is null or bit_get("
    f"__bits[cast(shiftright({INDEX} & {_BLOCK_ROWS - 1}L, 6) as int)], cast({INDEX} & 63L as int)"
    ") = 0"
)
"""The condition of rows that are not deleted, after the join."""
DELETED_BLOCK_SCHEMA: Final = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": type_, "nullable": True, "metadata": {}}
            for name, type_ in (
                (SOURCE, "string"),
                ("__block", "long"),
                ("__bits", {"type": "array", "elementType": "long", "containsNull": False}),
            )
        ],
    }
)
_BITS_TYPE: Final = pa.list_(pa.field("element", pa.int64(), nullable=False))


def deleted_row_blocks(parts: Sequence[FileSlice]) -> pa.Table:
    """The deleted rows of these files, in blocks of bits."""
    found = [(part, block, bits) for part in parts for block, bits in _blocks(part)]
    names = [file_name(part.file.name) for part, _, _ in found]
    bits = np.concatenate([bits for _, _, bits in found])
    offsets = pa.array(range(0, len(bits) + 1, _BLOCK_ROWS // 64), pa.int32())
    columns = [
        pa.array(names, pa.string()),
        pa.array([block for _, block, _ in found], pa.int64()),
        pa.ListArray.from_arrays(offsets, pa.array(bits), type=_BITS_TYPE),
    ]
    return pa.table(columns, names=[SOURCE, "__block", "__bits"])


def _blocks(part: FileSlice) -> Iterator[tuple[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]]:
    """The blocks that have deleted rows, and their bits in integers of 64."""
    # A bitmap is sorted.
    indexes = np.fromiter(part.deleted, dtype=np.int64, count=len(part.deleted))
    blocks, starts = np.unique(indexes >> _BLOCK_BITS, return_index=True)
    for block, deleted in zip(blocks.tolist(), np.split(indexes, starts[1:]), strict=False):
        rows = np.zeros(_BLOCK_ROWS, dtype=np.uint8)
        rows[deleted & (_BLOCK_ROWS - 1)] = 1
        yield block, np.packbits(rows, bitorder="little").view(np.int64)
