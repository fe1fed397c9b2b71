"""Decide whether Spark can run a plan, without a JVM."""

from collections.abc import Sequence

from sql.emit.spark.dialect import emit
from sql.errors import SqlError
from sql.plan.nodes import Plan
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import scans
from sql.types.sql_type import Value


def can_run_on_spark(plan: Plan, parameters: Sequence[Value]) -> bool:
    """Whether Spark does not refuse the plan (0A000)."""
    if relations_with_versions(plan):
        return False
    try:
        emit(plan, {scan.relation: "t" for scan in scans(plan)}, parameters)
    except SqlError as error:
        return error.sqlstate != "0A000"
    return True
