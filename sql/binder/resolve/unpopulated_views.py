"""Refuse to read a materialized view that is not populated (M3 of `ddl/materialized_views.py`).

PostgreSQL finds out when it opens the relation, so such a statement may be prepared and explained.
"""

from collections.abc import Iterable

from sql.catalog.catalog import Table
from sql.errors import SqlError
from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import scans
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyOut,
    CopySubscription,
    CreateTableAs,
    Explain,
    Modify,
    ModifyingWith,
    RefreshMaterializedView,
    Subscribe,
)

_HINT = "Use the REFRESH MATERIALIZED VIEW command."


def is_unpopulated(table: Table) -> bool:
    """Whether it is a materialized view without rows to read."""
    return table.query is not None and not table.query.is_populated


def unpopulated_copy_error(table: Table) -> SqlError:
    """0A000 of COPY TO."""
    message = f'cannot copy from unpopulated materialized view "{table.name}"'
    return SqlError("0A000", message, hint=_HINT)


def unpopulated_view_error(bound: BoundStatement) -> SqlError | None:
    """55000 for a statement that reads one, when it runs."""
    match bound:
        case BoundQuery(plan=plan, tables=tables):
            return _error(tables, plan)
        case CopyOut(query=query) | Subscribe(query=query):
            return _error(query.tables, query.plan)
        case Modify():
            return _error(bound.tables, bound.source) or _error(bound.returning_tables)
        case ModifyingWith(main=main):
            modified = (unpopulated_view_error(part) for part in bound.modifications)
            return next(filter(None, (*modified, unpopulated_view_error(main))), None)
        case CopySubscription(subscribe=subscribe):
            return unpopulated_view_error(subscribe)
        case CreateTableAs(with_data=True, source=source) if not bound.table.exists:
            return _error(bound.tables, source)
        case RefreshMaterializedView(source=source) if source is not None:
            return _error(bound.tables, source)
        case Explain(runs=runs) if runs is not None:
            return unpopulated_view_error(runs)
        case _:
            return None


def _error(tables: Iterable[Table], plan: Plan | None = None) -> SqlError | None:
    """`plan`: reads those of `tables` that it scans; None: all of them."""
    found = [table for table in tables if is_unpopulated(table)]
    if found and plan is not None:
        read = {scan.relation for scan in scans(plan)}
        found = [table for table in found if RelationId(table.shard) in read]
    if not found:
        return None
    message = f'materialized view "{found[0].name}" has not been populated'
    return SqlError("55000", message, hint=_HINT)
