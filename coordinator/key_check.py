"""Primary keys and unique constraints, at the statement: are the new keys free?

    new rows' keys ─▶ repeated among themselves? ─▶ in the view (base, tail, own writes)? ─▶ 23505
                                                        └─▶ the look-up is validated at the commit

INVARIANTS
  N1  a statement fails with 23505 if two of its rows, or one of them and a row that it leaves in
      its view, have one key; rows that it deletes or replaces do not count, in whatever order.
  N2  what is free in the view is looked up under a predicate, so that the commit is refused if
      somebody else has given the key to a row meanwhile (A8 of `core/validation.py`).
  N3  files are read in a thread, and only those that may hold a key.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from compute.key_predicates import KeyValues, NewKeys, key_text
from coordinator.execution import Execution
from sql.catalog import Table
from sql.errors import SqlError
from storage.batch import Deletes, ShardView
from storage.types import ShardId

IN_ORDER_MAX: Final = 100
"""Rows of a statement that fails which are checked one by one, to name the first violation."""

ON_LOOP_MAX: Final = 1_000
"""New keys that are looked up on the loop. Larger: longer stalls. Smaller: more threads."""


@dataclass(frozen=True, slots=True)
class Going:
    """Rows that an UPDATE replaces, as `view` names them; `assigned`: ordinals of its columns."""

    view: ShardView
    rows: Deletes
    assigned: Collection[int]


async def check_keys(
    execution: Execution, table: Table, keyed: pa.Table | None, going: Going | None = None
) -> None:
    """Raises 23505 (N1). `keyed`: the key columns of the new rows."""
    if keyed is None or not keyed.num_rows:
        return
    found = [
        NewKeys(table, key, keyed.select([table.columns[ordinal].field for ordinal in key.columns]))
        for key in table.keys
        if going is None or not set(key.columns).isdisjoint(going.assigned)
    ]
    keys = [new for new in found if new.count]
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
    for check in checks:
        taken = await _taken(execution, check)
        if taken is not None:
            raise await _first(execution, checks) or duplicate_key(check.new, taken)


@dataclass(frozen=True, slots=True)
class _Check:
    """One constraint: the keys that are new, and the rows that must not have them, but for some."""

    new: NewKeys
    view: ShardView
    going: Deletes


async def _first(execution: Execution, checks: Sequence[_Check]) -> SqlError | None:
    """The violation that PostgreSQL would find first: row by row, constraint by constraint."""
    rows = max(check.new.rows for check in checks)
    if len(checks) == 1 or rows > IN_ORDER_MAX:
        return None
    seen: list[set[KeyValues]] = [set() for _ in checks]
    for row in range(rows):
        for check, before in zip(checks, seen, strict=True):
            one = check.new.of_row(row)
            if not one.count:
                continue
            (values,) = one.values
            if values in before or await _taken(execution, replace(check, new=one)):
                return duplicate_key(one, values)
            before.add(values)
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
    try:
        return await asyncio.to_thread(index.find_in_files, shard, files, new, going)
    except Exception:
        await execution.services.coordination.examine([view])
        raise


def duplicate_key(new: NewKeys, values: KeyValues) -> SqlError:
    """23505."""
    table, key = new.table, new.key
    return SqlError(
        "23505",
        f'duplicate key value violates unique constraint "{key.name}"',
        detail=f"Key {key_text(table, key, values)} already exists.",
        schema=table.schema,
        table=table.name,
        constraint=key.name,
    )
