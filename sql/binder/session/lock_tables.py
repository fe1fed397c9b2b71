"""LOCK TABLE: the tables to lock, and the mode."""

from typing import Final

from sql.binder.resolve.catalog_lookup import refuse_system_change
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node
from sql.statements.locking import LockTables

_SHARE: Final = 5
"""PostgreSQL's number of this mode; it and those above keep writers away."""


def lock_tables(binding: Binding, node: Node) -> LockTables:
    """LOCK [TABLE] .. [IN mode MODE] [NOWAIT]."""
    try:
        tables = [find_table(binding, relation, _not_a_table) for relation in node.relations]
    except SqlError as error:
        # PostgreSQL looks for them when it executes the statement, and knows no places then.
        error.position = None
        raise
    for table in tables:
        refuse_system_change(table)
        if table.query is not None:
            raise _not_a_table(table.name, table.kind)
        if table.feed is not None and node.mode >= _SHARE:
            # A source waits for nobody, so it would not be kept away.
            raise not_supported(f'this mode for table "{table.name}", which a source feeds,')
    return LockTables(
        tuple(dict.fromkeys(tables)),
        node.mode,
        bool(node.nowait),
        from_writers=node.mode >= _SHARE,
    )


def _not_a_table(name: str, kind: str) -> SqlError:
    if kind == "view":
        return not_supported("LOCK TABLE of a view")
    detail = f"This operation is not supported for {'indexes' if kind == 'index' else kind + 's'}."
    return SqlError("42809", f'cannot lock relation "{name}"', detail=detail)
