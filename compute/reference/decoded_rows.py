"""Rows in memory as values: each commit's slice is decoded once, however many scans read it.

    slices of a view ─┬─ known ─────────────────▶ its rows, without the deleted ones ─┐
                      ├─ new ──▶ decoded, kept ─▶                                     ├─▶ rows
                      └─ own writes, catalogs ─────▶ decoded for this scan alone ─────┘

INVARIANTS
  T1  the rows of a scan are those that decoding its slices anew would give, in their order.
  T2  what is kept is bounded by DECODED_BYTES_MAX, beside the slices of one view.

Not here: rows of files; they are read anew (`executor.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.reference.arrow import to_values
from compute.reference.expressions import Row
from sql.catalog.meridian_schema import is_system_relation
from sql.plan.nodes import Scan
from sql.types.sql_type import SqlType, Value
from storage.batch import InlineSlice, bytes_of
from storage.types import OWN
from storage.unencoded_rows import SliceRows, tables_of_parts

DECODED_BYTES_MAX: Final = 32 << 20
"""Slices and their rows as values. Larger: more memory. Smaller: rows are decoded again."""

_ROW_BYTES: Final = 160
_VALUE_BYTES: Final = 48
"""About what a tuple with its place in a list and a dictionary takes, and a value."""

_Layout: TypeAlias = tuple[tuple[int, ...], tuple[SqlType, ...], bool]
"""The columns of a scan by ordinal, their types, and whether it wants identities."""


@dataclass(slots=True)
class _Slice:
    """The rows of a slice, and those that were live when it was looked at last."""

    table: pa.Table
    rows: list[Row]
    deleted: BitMap64
    live: list[Row]


class DecodedRows:
    """See the module. Not thread-safe."""

    def __init__(self) -> None:
        self._layouts: dict[_Layout, dict[int, _Slice]] = {}
        self._bytes = 0

    def rows(self, scan: Scan, slices: Sequence[InlineSlice]) -> list[Row]:
        """The live rows of all slices, for a scan (T1)."""
        if not slices or is_system_relation(scan.relation):
            return decode_slices(scan, slices)
        own = [part for part in slices[-1:] if part.source == OWN]
        kept = slices[: len(slices) - len(own)]
        types = tuple([column.type for column in scan.columns])
        layout = (scan.ordinals, types, scan.identity is not None)
        known = self._layouts.get(layout, {})
        found: list[Row] = []
        for part in kept:
            entry = known.get(id(part.rows))
            if entry is None or entry.table is not part.rows:
                known = self._decoded(scan, layout, kept)
                entry = known[id(part.rows)]
            if entry.deleted is not part.deleted:
                entry.live = _live(entry.rows, part.deleted)
                entry.deleted = part.deleted
            found += entry.live
        return found + decode_slices(scan, own) if own else found

    def _decoded(
        self, scan: Scan, layout: _Layout, slices: Sequence[InlineSlice]
    ) -> dict[int, _Slice]:
        """The rows of these slices, by the identity of their table."""
        known = self._layouts.setdefault(layout, {})
        missing = _missing(known, slices)
        self._bytes += sum(map(_bytes, missing))
        if self._bytes > DECODED_BYTES_MAX:
            self._layouts.clear()
            known = self._layouts[layout] = {}
            missing = [*slices]
            self._bytes = sum(map(_bytes, missing))
        rows = decode_slices(scan, missing, deleted_too=True)
        first = 0
        for part in missing:
            end = first + part.num_rows
            mine = rows[first:end]
            # The table is kept, so that its identity is not given to another.
            known[id(part.rows)] = _Slice(part.rows, mine, _NOTHING, mine)
            first = end
        return known


_NOTHING: Final = BitMap64()


def _missing(known: dict[int, _Slice], slices: Sequence[InlineSlice]) -> list[InlineSlice]:
    return [
        part
        for part in slices
        if (entry := known.get(id(part.rows))) is None or entry.table is not part.rows
    ]


def _bytes(part: InlineSlice) -> int:
    values = _VALUE_BYTES * part.rows.num_columns
    return bytes_of(part.rows) + part.num_rows * (_ROW_BYTES + values)


def _live(rows: list[Row], deleted: BitMap64) -> list[Row]:
    if not deleted:
        return rows
    mask = bytearray(b"\1") * len(rows)
    for place in deleted:
        mask[place] = 0
    return list(compress(rows, mask))


def decode_slices(
    scan: Scan, slices: Sequence[InlineSlice], *, deleted_too: bool = False
) -> list[Row]:
    """The rows of all slices, decoded at once: most slices of a tail have a row or two."""
    if not slices:
        return []
    table = slices[0].rows if len(slices) == 1 else _concatenated([part.stored for part in slices])
    columns: list[Sequence[Value]] = [
        to_values(table.column(ordinal), column.type)
        for column, ordinal in zip(scan.columns, scan.ordinals, strict=True)
    ]
    counts = [part.num_rows for part in slices]
    if scan.identity is not None:
        sources = [[part.source] * count for part, count in zip(slices, counts, strict=True)]
        columns += [list(chain(*sources)), list(chain(*map(range, counts)))]
    rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * sum(counts)
    if deleted_too or not any(part.deleted for part in slices):
        return rows
    live: list[Row] = []
    first = 0
    for part, count in zip(slices, counts, strict=True):
        live += _live(rows[first : first + count], part.deleted)
        first += count
    return live


def _concatenated(parts: Sequence[SliceRows]) -> pa.Table:
    """Rows of the same fields, of which some may let NULL in that others do not."""
    tables = tables_of_parts(parts)
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid:
        return pa.concat_tables(tables, promote_options="default")  # twenty times slower
