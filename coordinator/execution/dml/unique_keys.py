"""Check that a statement's new primary and unique keys are free.

    new rows' keys ─▶ repeated among themselves? ─▶ in the view (base, tail, own writes)? ─▶ 23505
                                                        └─▶ the look-up is validated at the commit

INVARIANTS
  N1  a statement fails with 23505 if two of its rows have one key, or one of them and a row that it
      leaves in its view. Rows that it deletes or replaces do not count, in whatever order.
  N2  a key that is free in the view is looked up under a predicate, so that the commit is refused
      if another transaction has used it meanwhile (A8 of `coordinator/core/validation.py`).
  N3  files are read in a thread, and only those that may hold a key.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from compute.access.computed_keys import ComputedKey, key_ordinals
from compute.access.key_predicates import KeyValues, NewKeys, key_violation_text
from coordinator.execution.context import Execution
from coordinator.execution.dml.computed_keys import computed_keys
from coordinator.transaction.deferral import PendingCheck, PendingCheckKind
from sql.catalog.catalog import Key, Table
from sql.errors import SqlError
from storage.batch import Deletes, ShardView
from storage.types import ShardId

ON_LOOP_MAX: Final = 1_000
"""New keys that are looked up on the loop. Larger: longer stalls. Smaller: more threads."""


class DuplicateKey(SqlError):
    """23505. `row`: which of the statement's new rows has the key that is taken."""

    row: int = 0


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """Rows that an UPDATE replaces, as `view` names them; `assigned`: ordinals of its columns."""

    view: ShardView
    rows: Deletes
    assigned: Collection[int]


async def check_keys_free(
    execution: Execution,
    table: Table,
    keyed: pa.Table | None,
    going: ReplacedRows | None = None,
    *,
    but: Collection[Key] = (),
) -> None:
    """Raises 23505 (N1); a key whose constraint is deferred waits. `keyed`: the key columns of the
    new rows; `but`: keys that hold anyway.
    """
    if keyed is None or not keyed.num_rows:
        return
    found = [(table, key) for key in table.keys]
    found += [(index.table, index.key) for index in computed_keys(execution, table)]
    keys = [
        new
        for wide, key in found
        if key not in but
        and (going is None or not set(key_ordinals(key)).isdisjoint(going.assigned))
        and (new := NewKeys(wide, key, _key_columns(table, key, keyed))).count
    ]
    if not keys:
        return
    ts = await execution.transaction.timestamp([table])
    predicates = [new.predicate() for new in keys]
    coordination, txn = execution.services.coordination, execution.transaction.id
    views = await coordination.scan(txn, ts, [table] * len(keys), predicates)
    if going is not None:
        # A cut may have come since: the same rows, by other names.
        views = [going.view] * len(keys)
    gone = {} if going is None else going.rows
    checks = [_Check(new, view, gone) for new, view in zip(keys, views, strict=True)]
    deferral = execution.transaction.deferral
    strict = [check for check in checks if not deferral.defers(table.oid, check.new.key)]
    for check in checks:
        taken = await _taken(execution, check)
        if taken is None:
            continue
        if check in strict:
            raise await _first(execution, strict)
        key, rows = check.new.key, check.new.given
        deferral.add(PendingCheck(PendingCheckKind.KEY, table.oid, table.oid, key, rows))


def _key_columns(table: Table, key: Key, keyed: pa.Table) -> pa.Table:
    """The columns of a key of new rows."""
    if isinstance(key, ComputedKey):
        stored = {at: keyed.column(table.columns[at].field) for at in key.needed}
        return key.columns_of(stored, live=True)
    return keyed.select([table.columns[ordinal].field for ordinal in key.columns])


@dataclass(frozen=True, slots=True)
class _Check:
    """One constraint: the keys that are new, and the rows that must not have them, but for some."""

    new: NewKeys
    view: ShardView
    going: Deletes


async def _first(execution: Execution, checks: Sequence[_Check]) -> DuplicateKey:
    """The violation that PostgreSQL would find first: row by row, constraint by constraint.

    Rows up to some row violate a constraint, and so do all longer beginnings: it is searched for.
    """
    low, high = 0, max(check.new.rows for check in checks)
    while high - low > 1:
        middle = (low + high) // 2
        if await _first_of(execution, checks, middle) is None:
            low = middle
        else:
            high = middle
    found = await _first_of(execution, checks, high)
    assert found is not None, "N1: somewhere among the rows is a violation"
    return found


async def _first_of(
    execution: Execution, checks: Sequence[_Check], rows: int
) -> DuplicateKey | None:
    """The violation of the first constraint that the first `rows` rows violate."""
    for check in checks:
        beginning = check.new.beginning(rows)
        values = await _taken(execution, replace(check, new=beginning)) if beginning.count else None
        if values is not None:
            return duplicate_key(beginning, values, row=rows - 1)
    return None


async def _taken(execution: Execution, check: _Check) -> KeyValues | None:
    """A key that two of the new rows have, or one of them and a row that is there."""
    index, new, view = execution.services.key_index, check.new, check.view
    going = check.going
    if new.count <= ON_LOOP_MAX:
        taken = new.repeated() or index.find_in_memory(view, new, going)
    else:
        taken = await asyncio.to_thread(
            lambda: new.repeated() or index.find_in_memory(view, new, going)
        )
    if taken is not None:
        return taken
    files = index.files(view, new)
    if not files:
        return None
    shard = ShardId(new.table.shard)
    if index.is_warm(view, new, files):
        return index.find_in_files(shard, files, new, going)
    try:
        return await asyncio.to_thread(index.find_in_files, shard, files, new, going)
    except Exception:
        await execution.services.coordination.examine([view])
        raise


def duplicate_key(new: NewKeys, values: KeyValues, *, row: int = 0) -> DuplicateKey:
    """23505 of a row."""
    table, key = new.table, new.key
    error = DuplicateKey(
        "23505",
        f'duplicate key value violates unique constraint "{key.name}"',
        detail=f"Key {key_violation_text(table, key, values)} already exists.",
        schema=table.schema,
        table=table.name,
        constraint=key.name,
    )
    error.row = row
    return error
