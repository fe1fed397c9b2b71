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
    files, rows, ids, times = ([np.empty(0, np.int64)] for _ in range(4))
    for number, part in enumerate(parts):
        if part.file.origins is not None:
            first_rows, first_ids, commits = part.file.origins.pieces()
            files.append(np.full(len(first_rows), number, np.int64))
            rows.append(first_rows)
            ids.append(first_ids)
            times.append(commits)
    arrays = [pa.array(np.concatenate(column)) for column in (files, rows, ids, times)]
    return pa.table(arrays, names=["file", "row", "id", "ts"])
