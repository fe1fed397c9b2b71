"""The unique indexes of a table that are no keys, as keys that are computed from its rows.

    table ─▶ its IndexDefinitions ─▶ plans, bound once ─▶ ComputedKey, over a table with its columns

INVARIANTS
  D1  `Table.unique_indexes` changes with the indexes that it stands for, so that a statement that
      was bound before an index came is stale (A2 of `coordinator/core/validation.py`).
  D2  whoever makes such an index, or gives the rows of its table other values, looks at all rows
      with the evaluator that will look at new ones.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from compute.access.computed_keys import ComputedKey, computed_key
from compute.access.key_predicates import NewKeys, columns_of_key, key_violation_text
from coordinator.execution.context import Execution
from coordinator.execution.run_plan import run_plan
from coordinator.streams import closing_batches
from sql.binder.bind import bind_with_context
from sql.binder.resolve.relations import table_scan
from sql.binder.stored.unique_indexes import (
    expressions_by_ordinal,
    index_element_text,
    unique_index_plan,
    unique_indexes_of,
)
from sql.catalog.catalog import Key, Table
from sql.catalog.objects import IndexDefinition
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Project
from storage.batch import bytes_of

INDEXED_BYTES_MAX = 256 << 20
"""Keys of all rows of a table: they are compared with each other in memory."""

PIECE_ROWS = 8_192
"""Rows whose keys are computed at once, beside the loop."""


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """A computed key, and the table with the columns that are computed for it."""

    table: Table
    key: ComputedKey


def computed_keys(execution: Execution, table: Table) -> Sequence[UniqueIndex]:
    """The computed keys of a table, in the order in which they were made."""
    if not table.unique_indexes:
        return ()
    indexes = unique_indexes_of(execution.catalog(), table)
    return [unique_index(execution, table, index) for index in indexes]


def unique_index(execution: Execution, table: Table, index: IndexDefinition) -> UniqueIndex:
    """One of them. Raises 0A000 for an expression that the evaluator does not know."""
    part = "unique index", index.elements, index.predicate
    plan = execution.stored_plan(table, part, partial(unique_index_plan, table=table, index=index))
    assert isinstance(plan, Project), "it was bound as one"
    exprs = expressions_by_ordinal(plan)
    names = [index_element_text(text) for text in index.elements]
    key = Key(index.name, (), nulls_distinct=index.nulls_distinct)
    elements = list(zip(names, exprs, strict=False))
    predicate = (index.predicate, exprs[len(names)]) if index.predicate else None
    try:
        made = computed_key(table, key, elements, predicate, oid=index.oid)
    except SqlError as error:
        raise not_supported("a unique index over an expression of this kind") from error
    return UniqueIndex(*made)


async def check_unique_rows(execution: Execution, table: Table, index: IndexDefinition) -> None:
    """Raises 23505 if two rows that the transaction sees have the same key (D2)."""
    found = unique_index(execution, table, index)
    scanned = bind_with_context(execution.context(), partial(table_scan, table=table))
    inputs = await execution.views([table])
    pieces: list[pa.Table] = []
    nbytes = 0
    async with closing_batches(run_plan(execution, scanned, inputs, is_check=True)) as batches:
        async for batch in batches:
            for start in range(0, batch.num_rows, PIECE_ROWS):
                piece = pa.Table.from_batches([batch.slice(start, PIECE_ROWS)])
                keys = await asyncio.to_thread(columns_of_key, found.key, piece, live=True)
                pieces.append(keys)
                nbytes += bytes_of(keys)
                if nbytes > INDEXED_BYTES_MAX:
                    raise SqlError("54000", "the keys of a unique index are too large")
    if not pieces:
        return
    new = NewKeys(found.table, found.key, pa.concat_tables(pieces))
    values = await asyncio.to_thread(new.repeated) if new.count else None
    if values is not None:
        raise SqlError(
            "23505",
            f'could not create unique index "{index.name}"',
            detail=f"Key {key_violation_text(found.table, found.key, values)} is duplicated.",
            schema=table.schema,
            table=table.name,
            constraint=index.name,
        )
