"""The statement that an engine would run for a plan, for EXPLAIN (VERBOSE); nothing is run."""

from collections.abc import Sequence

from compute.plan_nodes import nodes
from sql.emit import duckdb, spark
from sql.errors import SqlError
from sql.plan import Plan, Scan
from sql.types import Value


def engine_sql(engine: str, plan: Plan, parameters: Sequence[Value]) -> str | None:
    """Relations stand in it by their tables' names; None for an engine without SQL. What the
    engine refuses is told instead.
    """
    names = {node.relation: node.name for node in nodes(plan) if isinstance(node, Scan)}
    try:
        match engine:
            case "local":
                return duckdb.emit(plan, names, parameters).text
            case "spark":
                return spark.emit(plan, names, parameters).text
            case _:
                return None
    except SqlError as error:
        return f"none: {error.message}"
