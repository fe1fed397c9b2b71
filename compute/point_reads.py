"""Queries that show a row of a table by its key: found and read in process, without an engine.

    plan ─▶ PointRead: the key, what it must equal, the plan compiled ─┐
    view, parameters ─▶ KeyIndex.places ─▶ the row, as values ─────────┴─▶ a batch

INVARIANTS
  R1  it is for plans that do nothing but compare, sort and show columns of one table
      (`is_plain`), and ask for a whole key of it: a row that has another key changes nothing.
  R2  what is in memory is read at once; a file is read only by who may block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa

from compute.key_index import KeyIndex, Place
from compute.key_predicates import OneKey
from compute.plain_plans import is_plain
from compute.reference_arrow import BatchMaker, batch_schema, to_values
from compute.reference_expressions import Row, Source
from compute.reference_plans import PlanCompiler
from compute.row_predicates import equal_to_one
from sql.catalog import Key, Table
from sql.plan import Const, Param, Plan, RelationId, Scan, output_columns
from sql.read_conditions import read_conditions
from sql.traverse import inputs
from sql.types import SqlType, Value
from storage.batch import ShardView
from storage.known_rows import Column

_REMEMBERED_MAX: Final = 2_000

_PLAIN: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
     "bpchar", "name", "uuid", "json", "jsonb", "bytea", "time"}
)  # fmt: skip
"""Types whose values are what Arrow makes of them."""

_remembered: dict[int, "tuple[Plan, Table, PointRead | None]"] = {}


@dataclass(frozen=True, slots=True)
class _Compiler(PlanCompiler):
    """Of a plan with one scan, that is kept and run over other rows each time."""

    def _scan(self, plan: Scan) -> Source:
        return lambda: iter(self.read(plan))


class PointRead:
    """See the module. Not to be run by two at once: what it compiles to has its parameters."""

    def __init__(self, plan: Plan, table: Table, key: Key, wanted: Sequence[Const | Param]) -> None:
        self._plan = plan
        self._table = table
        self._key = key
        self._wanted = wanted
        self._scan = _scan_of(plan)
        columns = output_columns(plan)
        self._maker = BatchMaker([column.type for column in columns], batch_schema(columns))
        self._parameters: list[Value] = []
        self._rows: list[Row] = []
        compiler = _Compiler(lambda _scan: self._rows, self._parameters)
        self._run = compiler.compile(plan)

    def rows(
        self, index: KeyIndex, view: ShardView, parameters: Sequence[Value], *, may_read: bool
    ) -> list[Row] | None:
        """The rows of the scan that have the key; None if a file has to be read for them, and may
        not (R2). Thread-safe.
        """
        values = [_value(expr, parameters) for expr in self._wanted]
        if None in values:
            return []
        try:
            key = OneKey(self._table, self._key, tuple(values))
            places = index.places(view, key, may_read=may_read)
        except (pa.ArrowInvalid, OverflowError):
            return []  # a number that the column's type does not have
        if places is None:
            return None
        return self._read(index, view, places, may_read=may_read)

    def answer(self, rows: list[Row], parameters: Sequence[Value]) -> pa.RecordBatch:
        """The plan over these rows."""
        self._parameters[:] = parameters
        self._rows = rows
        return self._maker.batch(list(self._run()))

    def _read(
        self, index: KeyIndex, view: ShardView, places: Sequence[Place], *, may_read: bool
    ) -> list[Row] | None:
        found: list[Row] = []
        for source, row in places:
            file = next((part.file for part in view.files if part.file.name == source), None)
            if file is None:
                rows = next(part.rows for part in view.inline if part.source == source)
                found.append(self._row(rows, row, view.schema))
            elif may_read or index.rows_warm(view.shard, file, [row]):
                rows = index.read_rows(view.shard, file, [row])
                found.append(self._row(rows, 0, view.schema))
            else:
                return None
        return found

    def _row(self, rows: pa.Table, row: int, schema: pa.Schema) -> Row:
        """A row of the scan; the rows of a file may lack columns that are younger."""
        names = rows.schema.names
        values: list[Value] = []
        for column, ordinal in zip(self._scan.columns, self._scan.ordinals, strict=True):
            name = schema.field(ordinal).name
            there = name in names
            values.append(_cell(rows.column(name), row, column.type) if there else None)
        return tuple(values)


def _cell(column: Column, row: int, type_: SqlType) -> Value:
    if type_.name in _PLAIN:
        return cast("Value", column[row].as_py())
    return to_values(column.slice(row, 1), type_)[0]


def _value(expr: Const | Param, parameters: Sequence[Value]) -> Value:
    return expr.value if isinstance(expr, Const) else parameters[expr.index - 1]


def _scan_of(plan: Plan) -> Scan:
    while not isinstance(plan, Scan):
        (plan,) = inputs(plan)
    return plan


def point_read(plan: Plan, table: Table) -> PointRead | None:
    """How to answer a plan over a table by a key; None if it does not ask for one (R1)."""
    known = _remembered.get(id(plan))
    if known is not None and known[0] is plan and known[1] is table:
        return known[2]
    made = _point_read(plan, table)
    if len(_remembered) >= _REMEMBERED_MAX:
        _remembered.clear()
    # The plan is kept, so that its identity is not given to another one.
    _remembered[id(plan)] = (plan, table, made)
    return made


def _point_read(plan: Plan, table: Table) -> PointRead | None:
    if not table.keys or not is_plain(plan):
        return None
    conditions = read_conditions(plan).get(RelationId(table.shard)) or ()
    if len(conditions) != 1:
        return None
    found = [equal_to_one(expr) for expr in conditions[0].all_of]
    wanted = dict([pair for pair in found if pair is not None])
    for key in table.keys:
        if wanted.keys() >= set(key.columns):
            return PointRead(plan, table, key, [wanted[ordinal] for ordinal in key.columns])
    return None
