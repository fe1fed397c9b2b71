"""Tables as the coordinator keeps them: snapshots and batches are folded onto them.

The model refuses what a coordinator could not do: a value that nobody knows, a row that is not
there. It knows no database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compute.reference.arrow import to_values
from ingest.postgres import fold
from ingest.postgres.fold import exact_values, folded_key
from ingest.postgres.table_decoder import RowDecoder, split_copy_line
from ingest.reader import (
    UNCHANGED,
    BadRecord,
    ChangeRow,
    SnapshotPart,
    SourceBatch,
    UpstreamChange,
    UpstreamTable,
)
from sql.types.sql_type import Value


class TableModel:
    """The rows of one table, as a bag."""

    def __init__(self, table: UpstreamTable) -> None:
        self.table = table
        names = [column.name for column in table.columns]
        self.key = [names.index(name) for name in table.key]
        self.rows: list[ChangeRow] = []

    def load(self, part: SnapshotPart) -> None:
        columns = [
            to_values(part.rows.column(at), column.type)
            for at, column in enumerate(self.table.columns)
        ]
        self.rows += zip(*columns, strict=True)

    def apply(self, changes: Sequence[UpstreamChange]) -> None:
        if self.key:
            self._apply_keyed(changes)
        else:
            self._apply_bag(changes)

    def _apply_keyed(self, changes: Sequence[UpstreamChange]) -> None:
        folded = fold.fold_changes(changes, self.key)
        before = {folded_key(row, self.key): row for row in self.rows}
        assert len(before) == len(self.rows), "keys are unique"
        kept = {} if folded.truncated else dict(before)
        for key in folded.gone:
            kept.pop(key, None)
        for key, state in folded.rows.items():
            row = state.row
            if UNCHANGED in row:
                own = None if state.origin is None else before.get(state.origin)
                assert own is not None, f"nobody knows the unchanged values of {key}"
                row = tuple(
                    old if value is UNCHANGED else value
                    for value, old in zip(row, own, strict=True)
                )
            assert key not in kept, f"key {key} is there already"
            kept[key] = row
        self.rows = list(kept.values())

    def _apply_bag(self, changes: Sequence[UpstreamChange]) -> None:
        folded = fold.fold_bag(changes)
        if folded.truncated:
            self.rows = []
        rows = {exact_values(row): row for row in self.rows}
        counts = Counter(exact_values(row) for row in self.rows)
        for row in folded.gone:
            assert counts[exact_values(row)], f"row {row} is not there"
            counts[exact_values(row)] -= 1
        for row in folded.rows:
            assert UNCHANGED not in row, "without a key rows come whole"
            rows[exact_values(row)] = row
            counts[exact_values(row)] += 1
        self.rows = [rows[exact] for exact in counts.elements()]

    def content(self) -> list[str]:
        """The rows, in an order of their own."""
        return sorted(map(repr, self.rows))


class TableModels:
    """All tables of a source."""

    def __init__(self, tables: Sequence[UpstreamTable]) -> None:
        self.models = {table.reference: TableModel(table) for table in tables}
        self.errors: list[BadRecord] = []

    def load(self, part: SnapshotPart) -> None:
        self.models[part.reference].load(part)
        self.errors += part.errors

    def apply(self, batch: SourceBatch) -> None:
        for reference, changes in batch.changes.items():
            self.models[reference].apply(changes)
        self.errors += batch.errors

    def content(self) -> dict[str, list[str]]:
        return {reference: model.content() for reference, model in self.models.items()}


def upstream_content(table: UpstreamTable, lines: Sequence[bytes]) -> list[str]:
    """The same of rows that upstream has copied."""
    decoder = RowDecoder(table, range(len(table.columns)))
    rows: list[tuple[Value, ...]] = []
    for line in lines:
        row = decoder.row(split_copy_line(line))
        rows.append(row)
    return sorted(map(repr, rows))
