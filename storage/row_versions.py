"""Row versions: the id of each row, and the commit that wrote it, wherever the row lies.

    commit at ts: inline rows, then staged files ─▶ the next ids of the shard, in this order

    where the row lies     its id                           its commit
    tail                   first id of the slice, index     the slice's source
    file of a flush        `row_ids` of the file, index     `runs` of the file
    staged file            the same: one range              the same: one run
    rewritten file         a column of the file, beside     a column of the file, beside
                           the table's                      the table's

INVARIANTS
  W1  an id is given once in a shard, and never again: the log keeps the count (`txn` of
      `row_count_id`), so ids of rows that are gone are counted, too. It is a function of the
      commits: who replays them gives the same ids.
  W2  a row has the same id and commit wherever it lies: cuts, compaction, pruning and a restart
      change neither. A row that is written anew, as by UPDATE, has others.
  W3  who does not ask for them pays nothing: no column, no byte per row in memory.
  W4  rows that are not committed have neither.
  W5  a log that Meridian wrote before there were ids has no count. Its newest version's files get
      theirs in the order of their names, from 0; files that only older versions have get theirs
      from PAST_IDS on, and later commits from FIRST_NEW_ID on. So the ids depend on that version
      alone. The first flush notes them in the log. The rows of a file that was rewritten before
      count as written by the cut that the rewriting began from.

Columns of a file that are not in the table's schema are seen by no other reader of Delta, as the
materialized columns of Delta's row tracking. Row tracking itself does not serve: its ids survive
UPDATE, and its commit versions are those of cuts.

Ranges of ids in memory would not do for rewritten files: after deletes here and there every row may
be a range, and all of them would lie in every checkpoint.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage.types import Timestamp

Integers: TypeAlias = npt.NDArray[np.int64]

PAST_IDS: Final = 1 << 39
FIRST_NEW_ID: Final = 1 << 40
"""W5: more rows than a table of before has."""

ROW_ID_FIELD: Final = "__meridian_row_id__this_is_not_a_column_of_the_table_but_of_its_rows"
COMMIT_FIELD: Final = "__meridian_commit__this_is_not_a_column_of_the_table_but_of_its_rows"
"""Columns of rewritten files. Longer than a name in SQL may be, so no column has this name."""
VERSION_FIELDS: Final = (ROW_ID_FIELD, COMMIT_FIELD)


_ROW_COUNT: Final = ".rows"


def row_count_id(shard: str) -> str:
    """The appId of the `txn` that has the count of a shard's rows (W1)."""
    return f"{shard}{_ROW_COUNT}"


def is_row_count(app_id: str) -> bool:
    """Whether a `txn` has such a count."""
    return app_id.endswith(_ROW_COUNT)


@dataclass(frozen=True, slots=True)
class RowIds:
    """Rows from `first_rows[i]` on have ids from `first_ids[i]` on. Empty: a column has them."""

    first_rows: tuple[int, ...] = ()
    first_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.first_rows) == len(self.first_ids), "W1: a range has a row and an id"
        assert self.first_rows[:1] in ((), (0,)), "W1: the first range begins at row 0"

    @property
    def in_file(self) -> bool:
        """Whether the file has them as a column."""
        return not self.first_rows

    @classmethod
    def from_first(cls, first_id: int) -> "RowIds":
        """The ids from one on, in the order of the rows."""
        return cls((0,), (first_id,))

    @classmethod
    def of_commits(cls, commits: Iterable[tuple[int, int]]) -> "RowIds":
        """Rows of commits one after the other: the number of each one's rows, and its first id."""
        rows: list[int] = []
        ids: list[int] = []
        row, next_id = 0, -1
        for count, first_id in commits:
            if first_id != next_id:
                rows.append(row)
                ids.append(first_id)
            row, next_id = row + count, first_id + count
        return cls(tuple(rows), tuple(ids))


IN_FILE: Final = RowIds()


@dataclass(frozen=True, slots=True)
class RowOrigins:
    """Where the rows of a file come from: their ids, and the times of its runs by first row."""

    ids: RowIds
    times: Integers = field(repr=False)
    first_rows: Integers = field(repr=False)

    @property
    def is_single(self) -> bool:
        """Whether all rows are of one commit, and their ids one range."""
        return len(self.times) == 1 and len(self.ids.first_ids) == 1

    def row_ids(self, rows: Integers) -> Integers:
        """The ids of these rows, given by index."""
        assert not self.ids.in_file, "W2: the file says which ids its rows have"
        firsts = np.asarray(self.ids.first_rows, np.int64)
        offsets = np.asarray(self.ids.first_ids, np.int64) - firsts
        return rows + offsets[np.searchsorted(firsts, rows, "right") - 1]

    def commits(self, rows: Integers) -> Integers:
        """The commits of these rows, given by index."""
        assert not self.ids.in_file, "W2: the file says which commits its rows are of"
        return self.times[np.searchsorted(self.first_rows, rows, "right") - 1]

    def pieces(self) -> tuple[Integers, Integers, Integers]:
        """First row, first id and commit of each stretch of rows of one commit and one range."""
        starts = np.union1d(self.first_rows, np.asarray(self.ids.first_rows, np.int64))
        return starts, self.row_ids(starts), self.commits(starts)


def single_origin(ts: Timestamp, first_id: int) -> RowOrigins:
    """Of a file that one commit brought (V4 of `shard.py`)."""
    return RowOrigins(RowIds.from_first(first_id), np.array([ts], np.int64), np.zeros(1, np.int64))


def version_columns(rows: pa.Table, origins: RowOrigins, first_row: int = 0) -> pa.Table:
    """VERSION_FIELDS of these rows of a file, which begin at one."""
    if origins.ids.in_file:
        return rows.select([*VERSION_FIELDS])
    indexes = np.arange(first_row, first_row + rows.num_rows, dtype=np.int64)
    columns = [pa.array(origins.row_ids(indexes)), pa.array(origins.commits(indexes))]
    return pa.table(columns, names=[*VERSION_FIELDS])


def with_version_columns(rows: pa.Table, versions: pa.Table) -> pa.Table:
    """The rows with VERSION_FIELDS behind their columns."""
    for name, column in zip(VERSION_FIELDS, versions.columns, strict=True):
        rows = rows.append_column(name, column)
    return rows


def table_columns(names: Sequence[str]) -> list[str] | None:
    """The columns of a file that are the table's; None: all of them."""
    if VERSION_FIELDS[0] not in names:
        return None
    return [name for name in names if name not in VERSION_FIELDS]
