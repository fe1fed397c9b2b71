"""ctid and xmin of rows, as engines read them: made of the rows' ids and commits.

    id ─▶ ctid (block,number)        commit ─▶ xmin

INVARIANTS
  C1  two ids have two ctids, and a ctid is never another row's (W1 of `storage/row_versions.py`).
  C2  the texts of all ctids are as long as each other, so they are ordered as tids are.
  C3  a row that is written anew has another xmin: commits of one row whose timestamps differ by a
      multiple of about 71 minutes to the microsecond, 2^32 - 3 of them, are told apart by ctid
      alone. The first values are PostgreSQL's special ones.
  C4  rows that are not committed have NULL for both.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sql.plan.system_columns import CTID, SCANNED_NAMES, XMIN
from storage.batch import FileSlice, InlineSlice
from storage.row_versions import Integers, version_columns
from storage.types import inline_ts

BLOCK_MIN: Final = 1_000_000_000
NUMBER_MIN: Final = 10_000
NUMBERS: Final = 65_536 - NUMBER_MIN
"""C2: blocks of ten digits, numbers of five: 2^47 ids, 1.8 * 10^14."""
IDS_MAX: Final = ((1 << 32) - 1 - BLOCK_MIN) * NUMBERS

XMIN_MIN: Final = 3
XMINS: Final = (1 << 32) - XMIN_MIN

_FIELDS: Final[Sequence[tuple[str, pa.DataType]]] = [
    (SCANNED_NAMES[CTID], pa.string()),
    (SCANNED_NAMES[XMIN], pa.int64()),
]
VERSION_SCHEMA: Final = pa.schema(_FIELDS)

ReadVersions: TypeAlias = Callable[[FileSlice], pa.Table]
"""Reads the version columns of a rewritten file."""


def ctids(ids: Integers) -> "pa.Array[Any]":
    """The texts of the ctids of rows with these ids (C1)."""
    assert not len(ids) or int(ids.max()) < IDS_MAX, "C1: a tid has six bytes"
    blocks = pc.cast(pa.array(ids // NUMBERS + BLOCK_MIN), pa.string())
    numbers = pc.cast(pa.array(ids % NUMBERS + NUMBER_MIN), pa.string())
    join: Any = pc.binary_join_element_wise  # the stubs know no mixture of arrays and texts
    texts: pa.Array[Any] = join("(", blocks, ",", numbers, ")", "")
    return texts


def xmins(commits: Integers) -> "pa.Array[Any]":
    """The xmin of rows of these commits (C3)."""
    return pa.array(commits % XMINS + XMIN_MIN)


def _table(ctid: "pa.Array[Any]", xmin: "pa.Array[Any]") -> pa.Table:
    return pa.table([ctid, xmin], schema=VERSION_SCHEMA)


def _unknown(count: int) -> pa.Table:
    """Of rows that are not committed (C4)."""
    return _table(pa.nulls(count, pa.string()), pa.nulls(count, pa.int64()))


def inline_versions(part: InlineSlice) -> pa.Table:
    """Ctid and xmin of all rows of a slice (C4)."""
    count = part.num_rows
    if part.first_id is None:
        return _unknown(count)
    ids = np.arange(part.first_id, part.first_id + count, dtype=np.int64)
    commits = np.full(count, inline_ts(part.source), np.int64)
    return _table(ctids(ids), xmins(commits))


def file_versions(part: FileSlice, rows: int, read: ReadVersions) -> pa.Table:
    """Ctid and xmin of all rows of a file, which has so many (C4)."""
    origins = part.file.origins
    if origins is None:
        return _unknown(rows)
    stored = read(part) if origins.ids.in_file else pa.table({"row": pa.nulls(rows)})
    ids, commits = version_columns(stored, origins).columns
    return _table(ctids(ids.to_numpy()), xmins(commits.to_numpy()))
