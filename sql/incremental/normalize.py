"""Prepare a query for derivation: WITH queries stand where they are read."""

from collections.abc import Callable
from typing import TypeVar

from sql.plan.nodes import ColumnId, CteScan, Plan, Project, With, output_columns
from sql.plan.projections import column_references
from sql.plan.renumbering import rebuild_parts, replace_cte_scans, with_fresh_ids

_T = TypeVar("_T")


def with_queries_inlined(value: _T, new_id: Callable[[], ColumnId]) -> _T:
    """The plan without With, at every depth. Nothing in it is volatile, so each reading of a WITH
    query gives the same rows.
    """
    made = rebuild_parts(value, lambda part: with_queries_inlined(part, new_id))
    if not isinstance(made, With):
        return made
    cte, definition = made.cte, made.definition

    def expanded(scan: CteScan) -> Plan:
        if scan.cte != cte:
            return scan
        copy, _ = with_fresh_ids(definition, new_id)
        return Project(copy, scan.columns, column_references(output_columns(copy)))

    return replace_cte_scans(made.input, expanded)  # type: ignore[return-value]
