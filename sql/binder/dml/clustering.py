"""Sort the rows that a statement writes to a clustered table."""

from typing import Final

from sql.catalog.catalog import Table
from sql.plan.nodes import ColumnRef, Limit, Plan, Project, Sort, SortKey

CLUSTERING_TYPES: Final = frozenset(
    {"bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bpchar",
     "date", "time", "timestamp", "timestamptz", "uuid", "bytea"}
)  # fmt: skip
"""Types to cluster by (O2)."""


def sorted_by_clustering(table: Table, plan: Project) -> Plan:
    """The rows of a query in the order of the table's clustering, unless the query has its own
    order.
    """
    if not table.clustered or isinstance(plan.input, Sort | Limit):
        return plan
    ordinals = [table.ordinal_of(number) for number in table.clustered]
    columns = [plan.columns[ordinal] for ordinal in ordinals]
    keys = [SortKey(ColumnRef(column.id, column.type), False, False) for column in columns]
    return Sort(plan, tuple(keys))
