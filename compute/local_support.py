"""Whether the local engine can run a plan, without running it and without loading DuckDB."""

from collections.abc import Sequence

from compute.plan_nodes import nodes
from sql.emit.duckdb import emit
from sql.errors import SqlError
from sql.plan import Plan, Scan
from sql.types import Value


def refusal(plan: Plan, parameters: Sequence[Value]) -> str | None:
    """Why the local engine does not run it, None if it does."""
    names = {node.relation: "t" for node in nodes(plan) if isinstance(node, Scan)}
    try:
        emit(plan, names, parameters)
    except SqlError as error:
        # Other errors than 0A000 are the same on every engine.
        return error.message if error.sqlstate == "0A000" else None
    return None
