"""Rows, writes and predicates of the core's stories: a table has one column, `value`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap64

from compute.arrow import table_schema
from coordinator.core.messages.identities import ConnectionId, RequestId, TransactionId
from coordinator.core.messages.requests import Insertion, InsertRows, WriteRows
from coordinator.core.predicates import KeyLookUp
from sql.catalog.catalog import Column, Table
from sql.types.sql_type import INT8
from storage.batch import DataFile, WriteBatch
from storage.known_rows import KnownRows, OldRows, Points
from storage.types import Source
from storage.unencoded_rows import UnencodedRows, schema_message

COLUMNS = (Column("value", INT8),)


@dataclass(frozen=True)
class ValueIn:
    """A predicate for stories: value in (a, b, ..); `range`: looked at row by row, not by key."""

    values: frozenset[int]
    by_key: bool = True
    nbytes: int = 100
    look_up: KeyLookUp | None = None

    @classmethod
    def parse(cls, text: str) -> "ValueIn":
        """`1,2` or `range:1,2`."""
        kind, _, listed = text.rpartition(":")
        return cls(frozenset(map(int, listed.split(","))), kind != "range")

    @property
    def points(self) -> Points | None:
        keys = frozenset((value,) for value in self.values)
        return Points((0,), keys, only=True) if self.by_key else None

    def matches(self, rows: KnownRows) -> bool:
        return 0 not in rows.columns or not self.values.isdisjoint(rows.values(0))

    def may_match_file(self, file: DataFile) -> bool:
        return not self.values.isdisjoint(map(int, file.stats_json.split(",")))

    def describe(self) -> str:
        return f"value in {sorted(self.values)}"


def written(txn: TransactionId, table: Table, arguments: Mapping[str, str]) -> WriteRows:
    """`rows=1,null` inline, `file=1,2` staged; `deletes=@5:0,1/f:7`, and `old=3,4`, their
    values.
    """
    rows = arguments.get("rows")
    inserts = None if rows is None else table_of(numbers_or_nulls(rows))
    staged: tuple[DataFile, ...] = ()
    if "file" in arguments:
        values = arguments["file"]
        staged = (DataFile(Source(f"file{values}"), len(numbers(values)), 100, values),)
    deletes = {
        Source(part.rpartition(":")[0]): BitMap64(numbers(part.rpartition(":")[2]))
        for part in arguments.get("deletes", "").split("/")
        if part
    }
    old = None
    if "old" in arguments:
        old = OldRows(deletes, KnownRows.of(table_of(numbers(arguments["old"]))))
    return WriteRows(txn, table, WriteBatch(inserts, staged, deletes), old)


class Numbers:
    """Implements RowEncoder; 13 cannot be stored."""

    @property
    def schema(self) -> pa.Schema:
        return table_schema(COLUMNS)

    @property
    def encoded_schema(self) -> bytes:
        return schema_message(self.schema)

    def table(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        values = [value if isinstance(value, int) else None for (value,) in rows]
        if 13 in values:
            raise ValueError("13 brings bad luck")
        return table_of(values)

    def rows(self, rows: Sequence[tuple[object, ...]]) -> UnencodedRows:
        self.table(rows)
        return UnencodedRows(rows, 8 * len(rows), self)


def inserted(request: RequestId, table: Table, arguments: Mapping[str, str]) -> InsertRows:
    """`rows=1,null`."""
    rows = [(number,) for number in numbers_or_nulls(arguments["rows"])]
    return InsertRows(request, ConnectionId(request), Insertion(table, rows, 8, Numbers(), ()))


def numbers(text: str) -> list[int]:
    return [int(value) for value in text.split(",")]


def numbers_or_nulls(text: str) -> list[int | None]:
    return [None if value == "null" else int(value) for value in text.split(",")]


def table_of(values: Sequence[int | None]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(values, pa.int64())], schema=table_schema(COLUMNS))
