"""Check the domain constraints of a table's columns for new rows.

INVARIANTS
  D3  PostgreSQL converts values to their domains before it checks the constraints of the table. So
      the error for the first bad row names its domains first (`row_constraints.py` L2), column by
      column.
"""

from collections.abc import Awaitable, Callable, Hashable
from functools import partial

import pyarrow as pa

from sql.binder.state import BindContext, Binding
from sql.binder.stored.domain_checks import (
    check_violation,
    domain_check_plan,
    domain_checks_of,
    null_violation,
)
from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import Plan

FirstViolation = tuple[int, SqlError]
"""The row that breaks a rule, and what it breaks."""


class DomainConstraints:
    """The domains of one table."""

    def __init__(self, table: Table, context: Callable[[], BindContext]) -> None:
        self._context = context
        self._table = table
        self._required = [
            (ordinal, column.domain)
            for ordinal, column in enumerate(table.columns)
            if column.domain is not None and column.domain.not_null
        ]
        self._checks = list(domain_checks_of(table))
        self._plan: Plan | None = None

    @property
    def exist(self) -> bool:
        """Whether any column has a domain with constraints."""
        return bool(self._required or self._checks)

    async def first(
        self,
        batch: pa.RecordBatch,
        stored: Callable[[Hashable, Callable[[Binding], Plan]], Plan],
        run: Callable[[Plan, pa.RecordBatch], Awaitable[pa.Table]],
    ) -> FirstViolation | None:
        """The first row that violates a domain, and the first constraint that it violates (D3)."""
        found: list[tuple[int, int, int, SqlError]] = []
        for ordinal, domain in self._required:
            column = batch.column(ordinal)
            if column.null_count:
                row = column.is_null().index(True).as_py()
                found.append((row, ordinal, 0, null_violation(self._context(), domain)))
        if self._checks and batch.num_rows:
            if self._plan is None:
                self._plan = stored("domains", partial(domain_check_plan, table=self._table))
            verdicts = await run(self._plan, batch)
            for number, (ordinal, domain, name, _) in enumerate(self._checks, 1):
                row = verdicts.column(number - 1).index(pa.scalar(False)).as_py()
                if row >= 0:
                    found.append(
                        (row, ordinal, number, check_violation(self._context(), domain, name))
                    )
        if not found:
            return None
        row, _, _, error = min(found, key=lambda one: one[:3])
        return row, error
