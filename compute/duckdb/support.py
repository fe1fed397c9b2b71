"""Whether the local engine can run a plan, without running it and without loading DuckDB."""

from collections.abc import Sequence
from typing import Final

from sql.emit.duckdb.dialect import emit
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.plan.traverse import scans
from sql.types.sql_type import Value

ROW_BY_ROW_MAX: Final = 50_000
"""Rows of the inputs above which functions computed in Python, one row at a time, are not worth
it: about a microsecond each, which nobody else in the process can use."""


def refusal(plan: Plan, parameters: Sequence[Value], rows: int) -> str | None:
    """Why the local engine should not run it over so many rows, None if it should."""
    names = {scan.relation: "t" for scan in scans(plan)}
    try:
        query = emit(plan, names, parameters)
    except SqlError as error:
        # Other errors than 0A000 are the same on every engine.
        return error.message if error.sqlstate == "0A000" else None
    if query.row_by_row and rows > ROW_BY_ROW_MAX:
        return "functions that the local engine computes row by row"
    return None
