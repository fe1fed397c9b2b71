"""Which tables and indexes a bound statement reads and writes, for their counts.

    select .. where id = $1        a scan of the primary key's index, each call
    select .. where v > 5          a scan of the table, each call
    insert into t ..               rows of the table; a look-up in each key's index, each row
    with a foreign key             a look-up in the index of the key that it refers to, each row

INVARIANTS
  A1  what is counted is read off the plan, not off the engine: a read that a key bounds counts as a
      scan of that key's index, whoever answers it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from compute.access.point_reads import bounding_key
from sql.catalog.catalog import Catalog, Table
from sql.catalog.foreign_keys import is_reference_to_key
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.oids import index_oid
from sql.plan.nodes import Plan
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyIn,
    CopyOut,
    Explain,
    Modify,
    ModifyingWith,
    ModifyKind,
)


class AccessKind(Enum):
    """What is done to a table."""

    SCAN = "all its rows are read, once a call"
    LOOK_UP = "a key is looked up in an index, once a call; it finds the statement's rows"
    CHECK = "a key is looked up in an index, once a row"
    INSERT = "the statement's rows are inserted"
    UPDATE = "they are updated"
    DELETE = "they are deleted"


@dataclass(frozen=True, slots=True)
class RelationAccess:
    """Oids of a table and of its index; 0: none."""

    kind: AccessKind
    table: int
    index: int = 0


_WRITES = {
    ModifyKind.INSERT: AccessKind.INSERT,
    ModifyKind.UPDATE: AccessKind.UPDATE,
    ModifyKind.DELETE: AccessKind.DELETE,
}


def accesses_of(bound: BoundStatement, catalog: Catalog) -> tuple[RelationAccess, ...]:
    """What each call does, and each row. What MERGE, ON CONFLICT DO UPDATE and WITH write is
    counted as they run (`ServerStatistics.changed`).
    """
    return tuple(_accesses(bound, catalog))


def _accesses(bound: BoundStatement, catalog: Catalog) -> Iterator[RelationAccess]:
    match bound:
        case BoundQuery(plan=plan, tables=tables):
            yield from _reads(plan, tables)
        case CopyOut(query=query):
            yield from _reads(query.plan, query.tables)
        case CopyIn(table=table):
            yield RelationAccess(AccessKind.INSERT, table.oid)
            yield from _checks(table, catalog, frozenset(range(len(table.columns))))
        case Modify():
            yield from _reads(bound.source, bound.tables)
            if is_counted_by_tag(bound):
                yield RelationAccess(_WRITES[bound.kind], bound.table.oid)
            if bound.kind is not ModifyKind.DELETE:
                yield from _checks(bound.table, catalog, _assigned(bound))
        case ModifyingWith():
            for modify in bound.modifications:
                yield from _reads(modify.source, modify.tables)
            if isinstance(bound.main, BoundQuery):
                yield from _reads(bound.main.plan, bound.main.tables)
        case Explain(runs=BoundQuery() | Modify() as runs):
            yield from _accesses(runs, catalog)
        case _:
            return


def is_counted_by_tag(modify: Modify) -> bool:
    """Whether the number in its command tag says what it has done to its table."""
    updates = modify.conflict is not None and modify.conflict.update is not None
    return modify.kind is not ModifyKind.MERGE and not updates


def _reads(plan: Plan, tables: Sequence[Table]) -> Iterator[RelationAccess]:
    for table in tables:
        if is_server_state(table):
            continue
        key = bounding_key(plan, table)
        if key is None:
            yield RelationAccess(AccessKind.SCAN, table.oid)
        else:
            yield RelationAccess(AccessKind.LOOK_UP, table.oid, index_oid(table, key))


def _assigned(modify: Modify) -> frozenset[int]:
    """The ordinals that it gives new values."""
    is_update = modify.kind is ModifyKind.UPDATE
    return frozenset(modify.old if is_update else range(len(modify.table.columns)))


def _checks(table: Table, catalog: Catalog, assigned: frozenset[int]) -> Iterator[RelationAccess]:
    """The look-ups for each new row: of keys and references in which it may be another one."""
    for key in table.keys:
        if not assigned.isdisjoint(key.columns):
            yield RelationAccess(AccessKind.CHECK, table.oid, index_oid(table, key))
    for index in catalog.indexes(table.oid):
        if index.unique and len(assigned) == len(table.columns):
            yield RelationAccess(AccessKind.CHECK, table.oid, index.oid)
    for foreign in table.foreign_keys:
        parent = catalog.by_oid(foreign.table)
        if parent is None or assigned.isdisjoint(foreign.columns):
            continue
        for key in parent.keys:
            if is_reference_to_key(parent, foreign, key):
                yield RelationAccess(AccessKind.CHECK, parent.oid, index_oid(parent, key))
                break
