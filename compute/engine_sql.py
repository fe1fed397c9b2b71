"""The statement that an engine would run for a plan, for EXPLAIN (VERBOSE); nothing is run."""

from collections.abc import Sequence
from itertools import starmap

from compute.plan_nodes import nodes
from sql.emit import duckdb, spark
from sql.emit.scope import OutsideFunction
from sql.errors import SqlError
from sql.explain import expression_text
from sql.plan import ColumnId, Plan, Scan
from sql.types import Value


def engine_sql(engine: str, plan: Plan, parameters: Sequence[Value]) -> str | None:
    """Relations stand in it by their tables' names; None for an engine without SQL. What the
    engine refuses is told instead, and what its workers compute is told behind.
    """
    names = {node.relation: node.name for node in nodes(plan) if isinstance(node, Scan)}
    try:
        match engine:
            case "local":
                return duckdb.emit(plan, names, parameters).text
            case "spark":
                query = spark.emit(plan, names, parameters)
                return "".join([query.text, *starmap(_shown, query.functions.items())])
            case _:
                return None
    except SqlError as error:
        return f"none: {error.message}"


def _shown(name: str, function: OutsideFunction) -> str:
    columns = {ColumnId(index): f"${index + 1}" for index in range(len(function.columns))}
    return f"; Arrow UDF {name}: {expression_text(function.expr, columns)}"
