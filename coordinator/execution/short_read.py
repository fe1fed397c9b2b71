"""Answer a query in one plain call: rows of constants, or the row of a table that has a unique key.

    known plan ─▶ ShortRead ─ rows ─┬─ constants: computed
                                    └─ by key: newest view ─▶ key index ─▶ the row, in memory

Every other query begins a transaction, takes a snapshot, scans and commits, since the world may
change whenever it waits. Here nothing waits: what is read is true at one timestamp, the newest.

INVARIANTS
  U1  None stands for "not here", and so does an error: nothing has been done, and the general way
      says what there is to say. No file is read.
  U2  every feature of a query or a statement is either handled here, or rules this way out:
      `tests/session/short/test_short_reads.py` knows all fields.
  U3  the work is bounded: by the nodes of the plan, the sizes of the parameters, one row.

Not here: whether the session may take this way now (`session/short_answers.py`).
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

import pyarrow as pa

from compute.access.point_reads import PointRead, plan_point_query
from compute.arrow import batch_schema
from compute.computed_values import computed_values
from compute.plan_cost import is_large, may_run_long
from compute.reference.executor import PreparedPlan
from compute.reference.expressions import Row
from coordinator.core.messages.identities import TransactionId
from coordinator.execution.context import Services
from coordinator.execution.read_predicates import read_predicates
from sql.catalog.catalog import SYSTEM_TIMELINE, NameDependency
from sql.catalog.meridian_schema import is_server_state
from sql.plan.nodes import Plan, Project, Values, output_columns
from sql.plan.traverse import has_more_nodes, plan_has_subquery
from sql.statements.bound import BoundQuery, OutputColumn, ParameterizedStatement
from sql.types.sql_type import Value

SHORT_NODES_MAX: Final = 200
"""Nodes of a plan. Larger: others wait longer for the loop."""

SHORT_TYPES: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
     "bpchar", "uuid", "date", "timestamp", "timestamptz", "json", "jsonb", "bytea"}
)  # fmt: skip
"""Of result columns: values that an Arrow array would give back as they are."""


class ShortRead:
    """A query that is answered here. Not to be shared by threads."""

    def __init__(
        self,
        services: Services,
        prepared: ParameterizedStatement,
        query: BoundQuery,
        reading: PointRead | None = None,
    ) -> None:
        self.columns: tuple[OutputColumn, ...] = query.columns
        self.tag = prepared.tag
        self._plan = query.plan
        self._services = services
        self._table = query.tables[0] if query.tables else None
        self._reading = reading
        self._constant = PreparedPlan(query.plan) if reading is None else None
        self._values = computed_values(query.plan) if reading is None else None

    def may_run_on(self, engine: str) -> bool:
        """Whether the variable `engine` lets a query like this be answered in process."""
        return self._reading is None or engine in ("local", "auto")

    def rows(self, parameters: Sequence[Value]) -> Sequence[Row] | None:
        """The answer; None: see U1. Raises SqlError and others for what the data did."""
        if self._is_for_a_thread(parameters):
            return None
        if self._constant is not None:
            return self._constant.rows(parameters)
        return self._by_key(parameters)

    def rows_in_block(
        self, txn: TransactionId, parameters: Sequence[Value], names: Collection[NameDependency]
    ) -> Sequence[Row] | None:
        """The answer in an open transaction, which is told what was read; None: see U1."""
        if self._is_for_a_thread(parameters):
            return None
        if self._constant is not None:
            return None if names else self._constant.rows(parameters)
        reading, table = self._reading, self._table
        assert reading is not None, "who has no constants has a table"
        assert table is not None, "who has no constants has a table"
        (predicate,) = read_predicates(self._plan, [table], parameters)
        view = self._services.coordination.read_in_block(txn, table, predicate, names)
        if view is None:
            return None
        found = reading.rows(self._services.key_index, view, parameters, may_read=False)
        return reading.rows_of_plan(found, parameters) if isinstance(found, list) else None

    def _is_for_a_thread(self, parameters: Sequence[Value]) -> bool:
        values = self._values
        if values is not None and not values.are_few(parameters):
            return True
        return any(map(is_large, parameters))

    @cached_property
    def no_rows(self) -> pa.Table:
        """An answer without rows."""
        return batch_schema(output_columns(self._plan)).empty_table()

    def _by_key(self, parameters: Sequence[Value]) -> Sequence[Row] | None:
        reading, table = self._reading, self._table
        assert reading is not None, "who has no constants has a table"
        assert table is not None, "who has no constants has a table"
        view = self._services.coordination.newest_view(table)
        if view is None:
            return None
        found = reading.rows(self._services.key_index, view, parameters, may_read=False)
        # Of a table without the row there is nothing to run.
        return reading.rows_of_plan(found, parameters) if isinstance(found, list) else None


def compile_short_read(prepared: ParameterizedStatement, services: Services) -> ShortRead | None:
    """The statement as a short read; None if it goes the general way (U2)."""
    query = prepared.bound
    if not isinstance(query, BoundQuery) or prepared.fails is not None:
        return None
    if query.as_of is not None or query.calls is not None or query.locking or not query.columns:
        return None
    if prepared.supplied or prepared.filled or prepared.rebind or prepared.uses_now:
        return None
    if prepared.tells_timestamp or has_more_nodes(query.plan, SHORT_NODES_MAX):
        return None
    if any(column.type.name not in SHORT_TYPES for column in query.columns):
        return None
    if not query.tables:
        plan = query.plan
        short = _is_constant(plan) and services.in_process.refusal(plan) is None
        return ShortRead(services, prepared, query) if short else None
    return _by_key(prepared, query, services)


def _is_constant(plan: Plan) -> bool:
    below = plan
    while isinstance(below, Project):
        below = below.input
    is_rows = isinstance(below, Values) and len(below.rows) <= SHORT_NODES_MAX
    return is_rows and not plan_has_subquery(plan) and not may_run_long(plan)


def _by_key(
    prepared: ParameterizedStatement, query: BoundQuery, services: Services
) -> ShortRead | None:
    if len(query.tables) != 1 or services.local is None:
        return None
    table = query.tables[0]
    if table.query is not None and table.query.on_commit:
        return None  # V4 of `core/views`: who has written reads its definition
    if is_server_state(table) or table.timeline != SYSTEM_TIMELINE.name:
        return None
    reading = plan_point_query(query.plan, table)
    if reading is None or not reading.is_unique:
        return None
    return ShortRead(services, prepared, query, reading)
