"""The tables of `tests/postgres/fuzz/rows.py` as DuckDB reads them: files, deleted rows, a tail."""

import pyarrow as pa

from compute.arrow import table_schema
from compute.executor import Run
from coordinator.planning.planner import plan_prepared
from sql.binder.bind import bind
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog, Column, Table
from sql.errors import SqlError
from sql.parser.parse import parse
from sql.plan.nodes import RelationId
from sql.statements.bound import BoundQuery
from sql.types.sql_type import BOOL, DATE, FLOAT8, INT4, INT8, TEXT, TIMESTAMP, numeric
from storage.batch import ShardView
from storage.types import ShardId
from tests.engines.duckdb.local_engine import Engine, Shard
from tests.postgres.fuzz.rows import COLUMNS, SIZES, rows

_TYPES = {
    "int4": INT4, "int8": INT8, "numeric": numeric(10, 2), "float8": FLOAT8, "text": TEXT,
    "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP,
}  # fmt: skip
_COLUMNS = tuple(Column(name, _TYPES[type_]) for name, type_ in COLUMNS.items())
_SCHEMA = table_schema(_COLUMNS)
_CATALOG = Catalog(
    tables={
        ("public", name): Table(16_384 + place, "public", name, ShardId(name), _COLUMNS)
        for place, name in enumerate(SIZES)
    }
)
_TAIL = 50
"""Rows of a table in files that are in memory."""


class LargeTables:
    """Views of the tables, for queries over them."""

    def __init__(self, engine: Engine) -> None:
        self._views = {RelationId(name): _view(engine, name) for name in SIZES}

    def run(self, text: str) -> Run:
        """A query as the server runs it; may raise what is refused."""
        prepared = plan_prepared(bind(parse(text)[0], BindContext(_CATALOG, ["public"], 0), []))
        if prepared.fails is not None:
            raise prepared.fails
        if not isinstance(prepared.bound, BoundQuery):
            raise SqlError("0A000", "no query")
        return Run(prepared.bound.plan, self._views)


def _view(engine: Engine, name: str) -> ShardView:
    """Rows in memory if they are few; otherwise three files, two of them with holes, and a tail."""
    columns = list(zip(*rows(name), strict=True)) or [()] * len(_SCHEMA)
    table = pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)],
        schema=_SCHEMA,
    )
    shard = Shard(engine, _SCHEMA, ShardId(name))
    third = table.num_rows // 3
    if third < _TAIL:
        return shard.view([], [("@1", table, [])])
    for file, first in (("a", 0), ("b", third), ("c", 2 * third)):
        shard.file(f"{file}.parquet", table[first : first + third], row_group_size=1_000)
    gone = range(5, third, 7)
    # No row is there twice: rows could not be put into one order.
    c_rows = third - _TAIL
    files = [("a.parquet", None, ()), ("b.parquet", None, gone), ("c.parquet", c_rows, [0])]
    return shard.view(files, [("@1", table[-_TAIL:], [3])])
