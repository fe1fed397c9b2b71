"""ctid and xmin in SQL of DuckDB: the twin of `compute/row_versions.py` for rows of files.

file, row ─ pieces (ASOF) ─▶ id, commit ─▶ ctid, xmin
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from compute.row_versions import BLOCK_MIN, NUMBER_MIN, NUMBERS, XMIN_MIN, XMINS
from storage.batch import FileSlice


def version_expressions(id_: str, commit: str) -> list[str]:
    """`__ctid` and `__xmin` of a row with this id and commit (C1, C3)."""
    block, number = f"({id_}) // {NUMBERS} + {BLOCK_MIN}", f"({id_}) % {NUMBERS} + {NUMBER_MIN}"
    return [
        f"'(' || cast({block} as bigint) || ',' || cast({number} as bigint) || ')' as __ctid",
        f"cast(({commit}) % {XMINS} + {XMIN_MIN} as bigint) as __xmin",
    ]


def version_pieces(parts: Sequence[FileSlice]) -> pa.Table:
    """Stretches of rows of one commit and one range of ids: number of the file, the first row, its
    id, the commit.
    """
    found = [
        (number, *part.file.origins.pieces())
        for number, part in enumerate(parts)
        if part.file.origins is not None
    ]
    empty = [np.empty(0, np.int64)]
    files = [np.full(len(rows), number, np.int64) for number, rows, _, _ in found]
    columns = [files, *([piece[place] for piece in found] for place in (1, 2, 3))]
    arrays = [pa.array(np.concatenate([*column, *empty]), pa.int64()) for column in columns]
    return pa.table(arrays, names=["file", "row", "id", "ts"])
