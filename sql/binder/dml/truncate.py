"""TRUNCATE: the tables to empty, and the sequences to restart."""

from collections.abc import Sequence
from dataclasses import replace

from pglast.enums import DropBehavior

from sql.binder.resolve.catalog_lookup import refuse_fed_write, refuse_system_change
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.catalog.catalog import Table
from sql.catalog.foreign_keys import referencing_keys
from sql.errors import SqlError
from sql.parser.syntax import Node
from sql.statements.bound import Truncate
from sql.statements.ddl import ChangeObjects

TRUNCATE_TAG = "TRUNCATE TABLE"


def truncate(binding: Binding, node: Node) -> Truncate:
    """TRUNCATE [TABLE] .. [RESTART IDENTITY] [CASCADE]."""
    try:
        found = [find_table(binding, relation, _not_a_table) for relation in node.relations]
    except SqlError as error:
        # PostgreSQL looks for them when it executes the statement, and knows no places then.
        error.position = None
        raise
    tables = tuple(dict.fromkeys(found))
    for table in tables:
        refuse_system_change(table)
        if table.query is not None:
            raise _not_a_table(table.name, table.kind)
        refuse_fed_write(table)
    more: Sequence[Table] = ()
    if node.behavior == DropBehavior.DROP_CASCADE:
        more = _referring(binding, tables)
    else:
        _check_referred(binding, tables)
    every = (*tables, *more)
    restarted = _restarted(binding, every) if node.restart_seqs else None
    return Truncate(every, restarted, tuple([table.name for table in more]))


def _not_a_table(name: str, _kind: str) -> SqlError:
    return SqlError("42809", f'"{name}" is not a table')


def _restarted(binding: Binding, tables: Sequence[Table]) -> ChangeObjects | None:
    """RESTART of the sequences that belong to columns of these tables."""
    owners = {table.oid for table in tables}
    begun = tuple(
        replace(sequence, state=f"@{sequence.start}", version=sequence.version + 1)
        for sequence in binding.context.catalog.sequences()
        if sequence.owner in owners
    )
    if not begun:
        return None
    return ChangeObjects(
        TRUNCATE_TAG, objects=begun, fresh=frozenset(sequence.oid for sequence in begun)
    )


def _referring(binding: Binding, tables: Sequence[Table]) -> list[Table]:
    """The tables whose rows go too, as PostgreSQL finds them: step by step, each step by oid."""
    found: list[Table] = []
    newest: Sequence[Table] = tables
    while newest:
        known = {table.oid for table in (*tables, *found)}
        step = {
            child.oid: child
            for table in newest
            for child, _ in referencing_keys(binding.context.catalog, table.oid)
            if child.oid not in known
        }
        newest = [step[oid] for oid in sorted(step)]
        found += newest
    return found


def _check_referred(binding: Binding, tables: Sequence[Table]) -> None:
    """0A000, as in PostgreSQL, for a table that another one refers to, and keeps its rows."""
    oids = {table.oid for table in tables}
    for table in tables:
        for child, _ in referencing_keys(binding.context.catalog, table.oid):
            if child.oid in oids:
                continue
            message = "cannot truncate a table referenced in a foreign key constraint"
            detail = f'Table "{child.name}" references "{table.name}".'
            hint = f'Truncate table "{child.name}" at the same time, or use TRUNCATE ... CASCADE.'
            raise SqlError("0A000", message, detail=detail, hint=hint)
