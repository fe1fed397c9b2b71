"""TRUNCATE: the tables to empty, and the sequences that begin anew."""

from collections.abc import Sequence
from dataclasses import replace

from sql.bind_from import find_table
from sql.binding import Binding
from sql.catalog import Table
from sql.errors import SqlError
from sql.look_up import refuse_system_change
from sql.statements import ChangeObjects, Truncate
from sql.syntax import Node

TAG = "TRUNCATE TABLE"


def truncate(binding: Binding, node: Node) -> Truncate:
    """TRUNCATE [TABLE] .. [RESTART IDENTITY] [CASCADE]."""
    try:
        found = [find_table(binding, relation) for relation in node.relations]
    except SqlError as error:
        # PostgreSQL looks for them when it executes the statement, and knows no places then.
        error.position = None
        raise
    tables = tuple(dict.fromkeys(found))
    for table in tables:
        refuse_system_change(table)
    return Truncate(tables, _restarted(binding, tables) if node.restart_seqs else None)


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
    return ChangeObjects(TAG, objects=begun, fresh=frozenset(sequence.oid for sequence in begun))
