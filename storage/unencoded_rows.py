"""Rows that short statements write, as Python values: they become Arrow for the first who asks.

    UnencodedRows ─┬─ the stash: JSON, and the schema (`codec.py`)
                   ├─ look-ups by key, validation: the values as they are
                   └─ scans, flushes ─▶ table()

A table of one row costs more than all that most statements do with the row.

INVARIANTS
  U1  the values are those that Arrow would give back, as `sql/types/sql_type.py` has them, and none
      can fail to be stored. The encoder has looked at each (`RowEncoder.rows`).
  U2  the table is made once, whoever asks: others tell rows apart by their table.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from storage.row_schema import concat_conforming

StoredValues: TypeAlias = Sequence[tuple[object, ...]]
"""Rows of values, in the order of the columns."""

VALUES_ROWS_MAX: Final = 64
"""Rows of a batch that stay values. Values take several times the memory of Arrow, and for many
rows more time, too."""

_TO_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


class RowEncoder(Protocol):
    """Turns rows of Python values, in the order of the columns, into a shard's schema."""

    @property
    def schema(self) -> pa.Schema:
        """The shard's; the same object for all encoders of a table."""
        ...

    @property
    def encoded_schema(self) -> bytes:
        """What `schema_message` says of the schema."""
        ...

    def table(self, rows: StoredValues) -> pa.Table:
        """The rows, in order. Raises ValueError, OverflowError or pa.ArrowException."""
        ...

    def rows(self, rows: StoredValues) -> "SliceRows":
        """The rows, without Arrow if they can be kept so (U1). Raises as `table`."""
        ...


class UnencodedRows:
    """See the module. `nbytes`: about what they take."""

    __slots__ = ("_made", "encoder", "nbytes", "values")

    def __init__(self, values: StoredValues, nbytes: int, encoder: RowEncoder) -> None:
        self.values = values
        self.nbytes = nbytes
        self.encoder = encoder
        self._made: list[pa.Table] = []

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UnencodedRows):
            return bool(self.table() == other.table())
        return isinstance(other, pa.Table) and bool(self.table() == other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def num_rows(self) -> int:
        """How many they are."""
        return len(self.values)

    @property
    def schema(self) -> pa.Schema:
        """Of the table."""
        return self.encoder.schema

    def get_total_buffer_size(self) -> int:
        """As a table says it (`bytes_of` of `batch.py`)."""
        return self.nbytes

    def table(self) -> pa.Table:
        """The rows as Arrow (U2)."""
        made = self._made
        if not made:
            # Two threads may make one each: that of the first counts.
            made.append(self.encoder.table(self.values))
        return made[0]

    def only(self, kept: Sequence[bool]) -> "UnencodedRows":
        """Some of the rows."""
        values = [row for row, is_kept in zip(self.values, kept, strict=True) if is_kept]
        share = self.nbytes * len(values) // max(1, len(self.values))
        return UnencodedRows(values, share, self.encoder)

    def to_json(self) -> bytes:
        """The values, for `table_of_json`."""
        return _TO_JSON.encode(self.values).encode()


SliceRows: TypeAlias = pa.Table | UnencodedRows
"""Rows in memory, as they came."""


def table_of(rows: SliceRows) -> pa.Table:
    """The rows as Arrow."""
    return rows.table() if isinstance(rows, UnencodedRows) else rows


def rows_of_parts(parts: Sequence[SliceRows]) -> SliceRows:
    """All rows, one part after the other, with the fields of all of them."""
    if len(parts) == 1:
        return parts[0]
    plain = [part for part in parts if isinstance(part, UnencodedRows)]
    if len(plain) == len(parts) and all(part.schema is plain[0].schema for part in plain):
        one = _one_of(plain)
        return one if one.num_rows <= VALUES_ROWS_MAX else one.table()
    return concat_conforming([table_of(part) for part in parts])


def table_of_parts(parts: Sequence[SliceRows]) -> pa.Table:
    """The same as Arrow."""
    return concat_conforming(tables_of_parts(parts))


def tables_of_parts(parts: Sequence[SliceRows]) -> Sequence[pa.Table]:
    """All rows as Arrow, in few tables: a tail has thousands of parts."""
    tables: list[pa.Table] = []
    run: list[UnencodedRows] = []
    for part in parts:
        if run and not (isinstance(part, UnencodedRows) and part.schema is run[0].schema):
            tables.append(_one_of(run).table())
            run = []
        if isinstance(part, UnencodedRows):
            run.append(part)
        else:
            tables.append(part)
    if run:
        tables.append(_one_of(run).table())
    return tables


def _one_of(parts: Sequence[UnencodedRows]) -> UnencodedRows:
    if len(parts) == 1:
        return parts[0]
    values = [row for part in parts for row in part.values]
    return UnencodedRows(values, sum(part.nbytes for part in parts), parts[0].encoder)


def schema_message(schema: pa.Schema) -> bytes:
    """The fields of a schema as a message of Arrow IPC."""
    return schema.remove_metadata().serialize().to_pybytes()


@lru_cache(maxsize=256)
def _decoded_schema(encoded: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(encoded))


def table_of_json(schema: bytes, values: bytes) -> pa.Table:
    """The rows of a `schema_message` and of `to_json`. Raises ValueError, pa.ArrowException."""
    fields = _decoded_schema(schema)
    rows = json.loads(values)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, schema=fields)
