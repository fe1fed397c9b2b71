"""CREATE SCHEMA with elements: split them into statements of their own, in PostgreSQL's order.

The session runs them after it has created the schema, each bound against the results of those
before.
"""

from collections.abc import Sequence
from typing import Final

from pglast import ast

from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, copy_node

_NAMES: Final[dict[type, str]] = {
    ast.CreateSeqStmt: "sequence",
    ast.CreateStmt: "relation",
    ast.ViewStmt: "view",
    ast.IndexStmt: "relation",
}
"""Where the name of what is made stands, in the order in which PostgreSQL makes them."""


def schema_elements(schema: str, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The statements in execution order. 42P15 for an object of another schema."""
    order = [*_NAMES, ast.GrantStmt]
    for node in nodes:
        if type(node) not in order:
            raise not_supported("CREATE TRIGGER in CREATE SCHEMA")
    ordered = sorted(nodes, key=lambda node: order.index(type(node)))
    return tuple([_inside(schema, node) for node in ordered])


def _inside(schema: str, node: Node) -> Node:
    name = _NAMES.get(type(node))
    if name is None:
        return node
    relation: Node = getattr(node, name)
    if relation.schemaname not in (None, schema):
        message = (
            f"CREATE specifies a schema ({relation.schemaname}) "
            f"different from the one being created ({schema})"
        )
        raise SqlError("42P15", message)
    return copy_node(node, **{name: copy_node(relation, schemaname=schema)})
