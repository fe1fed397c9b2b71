"""Count the statements of one session, for pg_stat_statements and the views of tables.

    begin(statement) ─▶ CountedRun ─▶ ended(rows)        the general way, one look-up
    of_plan(statement, ..) ─▶ CountedStatement.add       short ways, which keep what they add to

INVARIANTS
  C1  a statement counts when it has ended without an error, as in PostgreSQL; one that a portal
      stops after some rows counts at the first stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from coordinator.execution.context import Execution
from coordinator.large_work import aside, is_large_statement
from coordinator.statistics.counted_statements import CountedStatement
from coordinator.statistics.server_statistics import ServerStatistics, query_of
from coordinator.variables.variables import Variables
from sql.catalog.catalog import Catalog
from sql.parser.parse import Statement
from sql.statements.bound import ParameterizedStatement


@dataclass(slots=True)
class CountedRun:
    """One run of a statement. `counted`: None: it is not counted."""

    statistics: ServerStatistics
    counted: CountedStatement | None
    execution: Execution | None = None
    """What it has run in, which tells its plan and its engines."""
    told: bool = False

    def ended(self, began: float, tag: str) -> None:
        """It has ended with this tag, or goes on later (C1)."""
        counted, execution = self.counted, self.execution
        if counted is None:
            return
        if self.told:
            counted.add_rows(began, perf_counter(), rows_of_tag(tag))
            return
        self.told = True
        if execution is not None and execution.planned is not None:
            self.statistics.plan(counted, *execution.planned)
        counted.add(began, perf_counter(), rows_of_tag(tag))
        if execution is not None:
            for engine in execution.engines:
                counted.ran_on(engine)


class StatementCounting:
    """See the module."""

    def __init__(self, statistics: ServerStatistics, variables: Variables, database: str) -> None:
        self._statistics = statistics
        self._variables = variables
        self._database = database

    def of(self, statement: Statement) -> CountedStatement | None:
        """Where a statement of the current user is counted."""
        if not self._statistics.is_on:
            return None
        user = self._variables.current_user.oid
        return self._statistics.counted(statement, user, self._database)

    def of_plan(
        self, statement: Statement, planned: ParameterizedStatement, catalog: Catalog
    ) -> CountedStatement | None:
        """Where one plan of it is counted."""
        user = self._variables.current_user.oid
        return self._statistics.counted_plan(statement, user, self._database, planned, catalog)

    async def begin(self, statement: Statement) -> CountedRun:
        """A run of a statement."""
        return CountedRun(self._statistics, await self._beside_the_loop(statement))

    async def _beside_the_loop(self, statement: Statement) -> CountedStatement | None:
        if not is_large_statement(statement) or not self._statistics.is_on:
            return self.of(statement)
        # To read it takes as long as to parse it.
        query = await aside(lambda: query_of(statement))
        user = self._variables.current_user.oid
        return self._statistics.counted(statement, user, self._database, query)

    def count_batch(
        self, statement: Statement, execution: Execution, began: float, tags: Sequence[str]
    ) -> None:
        """Runs of a statement that were one piece of work, one for each tag."""
        counted = self.of(statement)
        if counted is None:
            return
        if execution.planned is not None:
            self._statistics.plan(counted, *execution.planned)
        counted.add_calls(len(tags), began, perf_counter(), sum(map(rows_of_tag, tags)))

    async def replaced(self, run: CountedRun, statement: Statement) -> None:
        """EXECUTE counts as the statement that was prepared."""
        run.counted = await self._beside_the_loop(statement)


def rows_of_tag(tag: str) -> int:
    """The rows that a command tag tells, but for MOVE, which returns none."""
    last = tag[tag.rfind(" ") + 1 :]
    return int(last) if last.isdecimal() and not tag.startswith("MOVE") else 0
