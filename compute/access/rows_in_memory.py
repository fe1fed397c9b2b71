"""Find single rows by a unique key, with all of their columns, without reading a file.

    view, key ─▶ KeyIndex.places ─▶ identity ─▶ a slice in memory, or a warm row group ─▶ the row

Who gets no answer looks in another way, which may read files and warms what this needs.
"""

from collections.abc import Hashable
from typing import cast

from compute.access.key_index import KeyIndex
from compute.access.key_predicates import NoSuchKeyError, SingleKey
from compute.access.scanned_rows import ScannedCells, row_in_columns
from compute.reference.expressions import Row
from sql.catalog.catalog import Key, Table
from sql.plan.nodes import ColumnId, PlanColumn, RelationId, Scan
from storage.batch import RowIdentity, ShardView
from storage.unencoded_rows import UnencodedRows


class NotInMemoryError(Exception):
    """A file would have to be read."""


class RowsInMemory:
    """The rows of one table, as it is defined now."""

    def __init__(self, index: KeyIndex, table: Table) -> None:
        self._index = index
        self._table = table
        columns = [
            PlanColumn(ColumnId(at), column.name, column.type)
            for at, column in enumerate(table.columns)
        ]
        every = tuple(range(len(columns)))
        self._pattern: SingleKey | None = None
        self._scan = Scan(RelationId(table.shard), table.name, tuple(columns), every)

    def find(
        self, view: ShardView, key: Key, values: tuple[Hashable, ...]
    ) -> tuple[RowIdentity, Row] | None:
        """The row that has the key. Raises NotInMemoryError."""
        if self._pattern is None or self._pattern.key is not key:
            self._pattern = SingleKey(self._table, key, values)
        wanted = self._pattern.having(values)
        try:
            places = self._index.places(view, wanted, may_read=False, is_unique=True)
        except NoSuchKeyError:
            return None
        if places is None or len(places) > 1:
            raise NotInMemoryError
        return (places[0], self.row(view, places[0])) if places else None

    def row(self, view: ShardView, place: RowIdentity) -> Row:
        """A row of the view. Raises NotInMemoryError."""
        source, number = place
        part, index = view.inline_slice(source), self._index
        if part is not None:
            if isinstance(part.stored, UnencodedRows):
                return cast("Row", part.stored.values[number])
            return ScannedCells(part.rows, view.schema, self._scan).row(number)
        file = next(part.file for part in view.files if part.file.name == source)
        warm = index.warm_row(view.shard, file, number)
        row = None if warm is None else row_in_columns(*warm, view.schema, self._scan)
        if row is None:
            raise NotInMemoryError
        return row
