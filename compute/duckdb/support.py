"""Decide whether the local engine can run a plan, without running it and without loading DuckDB."""

from collections.abc import Sequence
from typing import Final

from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.plan.traverse import scans
from sql.types.sql_type import Value

ROW_BY_ROW_MAX: Final = 50_000
"""Input rows above which functions computed in Python, row by row, are not worth it: each takes
about a microsecond, in which nothing else in the process runs."""


def local_engine_refusal(plan: Plan, parameters: Sequence[Value], rows: int) -> str | None:
    """Why the local engine should not run the plan over so many rows; None if it should."""
    # A server starts without it, and imports it with the local engine.
    from sql.emit.duckdb.dialect import emit

    names = {scan.relation: "t" for scan in scans(plan)}
    try:
        query = emit(plan, names, parameters)
    except SqlError as error:
        # Other errors than 0A000 are the same on every engine.
        return error.message if error.sqlstate == "0A000" else None
    if query.row_by_row and rows > ROW_BY_ROW_MAX:
        return "functions that the local engine computes row by row"
    return None
