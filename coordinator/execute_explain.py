"""EXPLAIN of a query or a modification: the plan, the engine, the files of each table."""

from collections.abc import AsyncIterator

import pyarrow as pa

from coordinator.choosing import Choice, choose
from coordinator.execute_query import start_query
from coordinator.execute_setting import text_table
from coordinator.execution import Execution, Rows, held
from coordinator.explain import plan_lines
from coordinator.point_access import point_access
from coordinator.read_predicates import read_predicates
from sql.errors import not_supported
from sql.statements import Explain, Modify, OutputColumn, Query
from sql.types import TEXT
from storage.types import Timestamp

EXPLAIN_COLUMNS = (OutputColumn("QUERY PLAN", TEXT),)
_IGNORED = frozenset({"verbose", "costs", "settings", "buffers", "timing", "summary", "wal"})


async def execute_explain(
    execution: Execution, statement: Explain, *, as_of: Timestamp | None
) -> Rows:
    """The lines; with ANALYZE the query runs and its rows are counted, with VERBOSE they say which
    rows the commit depends on.
    """
    analyze = _options(statement)
    lines = await _lines(execution, statement.statement, as_of)
    if _is_on(statement.options.get("verbose", "off")):
        lines += _reads(execution, statement.statement)
    if analyze:
        if not isinstance(statement.statement, Query):
            raise not_supported("EXPLAIN ANALYZE of a modification")
        rows = await _count(await start_query(execution, statement.statement, as_of=as_of))
        lines.append(f"Rows: {rows}")
    table = text_table(EXPLAIN_COLUMNS, [(line,) for line in lines])
    return Rows(EXPLAIN_COLUMNS, held(table), lambda _count: "EXPLAIN")


def _options(statement: Explain) -> bool:
    analyze = False
    for name, value in statement.options.items():
        match name:
            case "analyze":
                analyze = _is_on(value)
            case "format" if value.lower() == "text":
                pass
            case "format":
                raise not_supported(f"EXPLAIN (FORMAT {value.upper()})")
            case _ if name in _IGNORED:
                pass
            case _:
                raise not_supported(f"EXPLAIN ({name.upper()})")
    return analyze


def _is_on(value: str) -> bool:
    return value.lower() in ("", "true", "on", "1")


def _reads(execution: Execution, statement: Query | Modify) -> list[str]:
    """What validation will look at, one line per table (DESIGN §6)."""
    plan = statement.plan if isinstance(statement, Query) else statement.source
    predicates = read_predicates(plan, statement.tables, execution.parameters)
    return [
        f"Reads {table.name}: {'all rows' if predicate is None else predicate.describe()}"
        for table, predicate in zip(statement.tables, predicates, strict=True)
    ]


async def _lines(
    execution: Execution, statement: Query | Modify, as_of: Timestamp | None
) -> list[str]:
    plan = statement.plan if isinstance(statement, Query) else statement.source
    inputs = await execution.views(statement.tables, as_of=as_of)
    lines = plan_lines(plan, inputs)
    if isinstance(statement, Modify):
        head = f"{statement.kind.value.title()} on {statement.table.name}"
        lines = [head, *("  " + line for line in lines)]
        if point_access(execution, plan, statement.tables, inputs) is not None:
            return [*lines, Choice(None, "rows by key").line]
    return [*lines, choose(execution, plan, inputs).line]


async def _count(batches: AsyncIterator[pa.RecordBatch]) -> int:
    rows = 0
    async for batch in batches:
        rows += batch.num_rows
    return rows
