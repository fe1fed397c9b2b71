"""Find definitions that are no longer what a transaction was bound to: A2, A6 of `validation.py`.

tables that it touched ──┐                     ┌ current: none
names that it rests on ──┴─▶ catalog of now ───┴ 40001, reason `stale`
"""

from collections.abc import Iterable

from coordinator.core.catalog import is_current, is_look_up_current
from coordinator.core.messages.catalog_changes import PutTable, RemoveTable
from coordinator.core.messages.replies import Refused, RefusedReason
from coordinator.core.transactions import VALIDATING, Transaction
from sql.catalog.catalog import Catalog, NameDependency, Table, is_whole_catalog
from sql.catalog.objects import TYPE_SPACE
from storage.types import ShardId

RETRY_HINT = "The transaction might succeed if retried."


def stale_tables_refusal(
    txn: Transaction, catalog: Catalog, *, every: bool = False
) -> Refused | None:
    """A2: the verdict on definitions; `catalog` has the transaction's own DDL applied. `every`: at
    every level, of all tables that it touched.
    """
    own = {change.table.oid for change in txn.changes if isinstance(change, PutTable | RemoveTable)}
    # Its own DDL is applied to the very definition that it has bound, or not at all (K2 of
    # `core/catalog.py`).
    bound = (table for table in txn.tables.values() if table.oid not in own)
    if txn.isolation not in VALIDATING and not every:
        bound = (table for table in bound if txn.relies_on(ShardId(table.shard)))
    return next(filter(None, (stale_table_refusal(table, catalog) for table in bound)), None)


def stale_table_refusal(table: Table, catalog: Catalog) -> Refused | None:
    """A2 for one table."""
    if is_current(catalog, table):
        return None
    return stale_refusal(f'table "{table.name}" was changed by a concurrent transaction')


def stale_name_refusal(names: Iterable[NameDependency], catalog: Catalog) -> Refused | None:
    """A6: the verdict on the first name that means something else now; `catalog` is without the
    transaction's own DDL.
    """
    for name in names:
        if not is_look_up_current(catalog, name):
            return stale_refusal(f"{_changed_name(name)} by a concurrent transaction")
    return None


def _changed_name(name: NameDependency) -> str:
    if is_whole_catalog(name):
        return "the catalog was changed"
    if name.name is None:
        return f'schema "{name.schema}" was created or dropped'
    kind = name.space
    defined = name.version is not None or (kind == TYPE_SPACE and name.oid is not None)
    return f'{kind} "{name.name}" was {"changed" if defined else "created"} or dropped'


def stale_refusal(detail: str) -> Refused:
    """40001 for a definition that changed; a statement nobody has seen is bound again."""
    return Refused(
        RefusedReason.STALE,
        "40001",
        "could not serialize access due to concurrent definition change",
        detail[0].upper() + detail[1:] + ".",
        RETRY_HINT,
    )
