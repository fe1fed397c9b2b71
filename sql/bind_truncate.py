"""TRUNCATE: the tables to empty."""

from sql.bind_from import find_table
from sql.binding import Binding
from sql.errors import SqlError
from sql.look_up import refuse_system_change
from sql.statements import Truncate
from sql.syntax import Node


def truncate(binding: Binding, node: Node) -> Truncate:
    """TRUNCATE [TABLE] .. [RESTART IDENTITY] [CASCADE]."""
    try:
        tables = [find_table(binding, relation) for relation in node.relations]
    except SqlError as error:
        # PostgreSQL looks for them when it executes the statement, and knows no places then.
        error.position = None
        raise
    for table in tables:
        refuse_system_change(table)
    return Truncate(tuple(dict.fromkeys(tables)))
