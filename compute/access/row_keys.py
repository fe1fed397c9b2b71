"""Keys of rows as Python tuples that are equal exactly when PostgreSQL says so."""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import pyarrow as pa

from compute.access.computed_keys import ComputedKey
from compute.access.key_predicates import comparable_column
from sql.catalog.catalog import Key
from storage.known_rows import KnownRows, equal_key

RowKey: TypeAlias = tuple[Hashable, ...]


def row_keys(key: Key, rows: pa.Table) -> Sequence[RowKey | None]:
    """The key of each row, from the key's columns; None for a row that has no key (Y1 of
    `key_predicates.py`).
    """
    columns = [comparable_column(column) for column in rows.columns]
    known = KnownRows.of(pa.table(columns, names=[f"k{place}" for place in range(len(columns))]))
    parts = [known.values(place) for place in range(len(columns))]
    keys: list[RowKey] = [equal_key(values) for values in zip(*parts, strict=True)]
    if isinstance(key, ComputedKey) and key.partial and not key.nulls_distinct:
        return [values if values[-1] else None for values in keys]
    if not key.nulls_distinct or not any(column.null_count for column in columns):
        return keys
    return [None if None in values else values for values in keys]
