"""Cache the SQL that is emitted for a plan, and its parsed DuckDB statement.

    plan, relations, parameters ─▶ EmittedQuery ─▶ text ─▶ duckdb.Statement

DuckDB 2.0 plans a statement at each run, also at EXECUTE of a prepared one, and parses a text at
least twice to run it once. Only parsing can be saved: it costs as much as everything else.

INVARIANTS
  L1  a plan is recognised by its identity. The cache refers to it, so that no other plan gets the
      same identity.
  L2  a parsed statement belongs to its text, and running it does not change it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import duckdb
import pyarrow as pa

from compute.duckdb.database import SMALL_BUFFER_STATEMENT
from compute.plan_nodes import relations_with_identity
from sql.emit.duckdb.dialect import emit, with_other_parameters, without_parameter_values
from sql.emit.emitted_query import EmittedQuery
from sql.plan.nodes import Const, Filter, GroupBy, Limit, Plan, Project, RelationId, Sort
from sql.plan.system_columns import relations_with_versions
from sql.types.sql_type import Value

VECTOR_ROWS: Final = 2_048
"""Rows that are asked for at once, as many as DuckDB computes at once: a few megabytes, also if
they are wide."""
PLANS_MAX: Final = 500
PARSED_TEXTS_MAX: Final = 1 << 19
"""Characters of all statements that stay parsed: some 100 bytes of DuckDB's for each."""
STATEMENTS_MAX: Final = 8
"""Statements of one plan, which differ in their relations and parameters."""
FEW_ROWS: Final = 100
"""Rows that are fetched as Python values. More: Arrow is worth the second parsing."""
TEXT_MAX: Final = 16_384
"""Characters. Longer statements seldom come again."""

_Names: TypeAlias = tuple[tuple[RelationId, str], ...]


@dataclass(slots=True)
class _Known:
    """Facts about a plan. `rows`: the most rows that it has given or can give; None if unknown."""

    plan: Plan
    identified: frozenset[RelationId]
    versioned: frozenset[RelationId]
    rows: int | None = None
    queries: list[tuple[_Names, EmittedQuery]] = field(
        default_factory=list[tuple[_Names, EmittedQuery]]
    )


class LocalStatements:
    """See the module. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[int, _Known] = OrderedDict()
        self._parsed: OrderedDict[str, duckdb.Statement] = OrderedDict()
        self._parsed_length = 0

    def identified(self, plan: Plan) -> frozenset[RelationId]:
        """The relations that the plan scans with the identity of their rows."""
        return self._known(plan).identified

    def versioned(self, plan: Plan) -> frozenset[RelationId]:
        """The relations of which the plan reads ctid or xmin."""
        return self._known(plan).versioned

    def emitted(
        self, plan: Plan, names: Mapping[RelationId, str], parameters: Sequence[Value]
    ) -> EmittedQuery:
        """See `sql.emit.duckdb.dialect.emit`; cached by plan and names."""
        known = self._known(plan)
        relations = tuple(names.items())
        with self._lock:
            for entry in reversed(known.queries):
                again = (
                    with_other_parameters(entry[1], parameters) if entry[0] == relations else None
                )
                if again is not None:
                    return again
        query = emit(plan, names, parameters)
        if len(query.text) <= TEXT_MAX:
            with self._lock:
                known.queries.append((relations, without_parameter_values(query)))
                del known.queries[:-STATEMENTS_MAX]
        return query

    def parsed(self, connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement | str:
        """A generated statement, parsed; cached by its text (L2). A long one is its text: to parse
        it alone takes the GIL until it is done.
        """
        if len(text) > TEXT_MAX:
            return text
        with self._lock:
            statement = self._parsed.get(text)
            if statement is not None:
                self._parsed.move_to_end(text)
                return statement
        (statement,) = connection.extract_statements(text)
        with self._lock:
            if text not in self._parsed:
                self._parsed_length += len(text)
            self._parsed[text] = statement
            while len(self._parsed) > PLANS_MAX or self._parsed_length > PARSED_TEXTS_MAX:
                self._parsed_length -= len(self._parsed.popitem(last=False)[0])
        return statement

    def gives_few(self, plan: Plan) -> bool:
        """Whether a run of the plan will most likely give no more than FEW_ROWS rows."""
        rows = self._known(plan).rows
        return rows is not None and rows <= FEW_ROWS

    def has_given(self, plan: Plan, rows: int) -> None:
        """Note how many rows a run of the plan gave."""
        known = self._known(plan)
        known.rows = max(rows, known.rows or 0)

    def _known(self, plan: Plan) -> _Known:
        with self._lock:
            known = self._plans.get(id(plan))
            if known is not None and known.plan is plan:
                self._plans.move_to_end(id(plan))
                return known
        identified, versioned = relations_with_identity(plan), relations_with_versions(plan)
        known = _Known(plan, identified, versioned, _rows_at_most(plan))
        with self._lock:
            self._plans[id(plan)] = known
            while len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)
        return known


def _rows_at_most(plan: Plan) -> int | None:
    """An upper bound of the rows that follows from the plan alone."""
    match plan:
        case Project() | Sort() | Filter():
            return _rows_at_most(plan.input)
        case GroupBy(keys=(), sets=None):
            return 1
        case Limit(limit=Const(value=int(count))) if not plan.ties:
            return count
        case _:
            return None


@dataclass(frozen=True, slots=True)
class PreparedStatementText:
    """A statement and its arguments by name."""

    text: str
    arguments: dict[str, object]

    def stream(self, connection: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
        """Start the statement and stream its rows as they are computed."""
        connection.execute(SMALL_BUFFER_STATEMENT)
        # The public way, `sql(..)`, binds every statement twice.
        result = connection._submit(self.text, self.arguments or None, "stream", VECTOR_ROWS)
        return result.arrow_reader()
