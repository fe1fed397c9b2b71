"""Temporary relations: ordinary relations in a schema that belongs to one session.

    session ─▶ its schema, `pg_temp_..`, created with its first temporary relation
            ─▶ names: that schema comes before the search path; `pg_temp` is an alias of it

A temporary table is stored, locked, written and read like any other. Transactions, savepoints,
keys, sequences and engines need no special case. Only its schema makes it temporary: no other
session finds it there. It is dropped at the session's end, or after a crash before the server
accepts connections (`coordinator/session/temporary_tables.py`).

INVARIANTS
  T1  no two sessions ever have a temporary schema of the same name, also not in the past that AS OF
      may read.
  T2  no name resolves into the temporary schema of another session.
  T3  a plan that depends on the session's temporary schema is not shared with other sessions.
"""

from dataclasses import replace
from typing import Final

from pglast import ast

from sql.catalog.temporary import TEMPORARY_SCHEMA_ALIAS, is_temporary_schema
from sql.errors import SqlError
from sql.parser.meridian_nodes import ArgumentNode
from sql.parser.syntax import Node, is_a, offset_to_position

_NAMES: Final[dict[type, str]] = {
    ast.ColumnRef: "fields",
    ast.FuncCall: "funcname",
    ast.TypeName: "names",
    ast.CommentStmt: "object",
    ast.DropStmt: "objects",
}
"""Where names stand that may begin with a schema, besides in RangeVars."""


def mentions_temporary_schema(text: str) -> bool:
    """Whether a statement's text may name a temporary schema, by its name or by `pg_temp`."""
    return TEMPORARY_SCHEMA_ALIAS in text or TEMPORARY_SCHEMA_ALIAS in text.lower()


def localize_temporary_names(node: Node, own: str) -> Node:
    """The tree with `pg_temp` replaced by the session's own schema.

    Raises 0A000 for another session's schema (T2).
    """
    if is_a(node, tuple):
        return tuple([localize_temporary_names(part, own) for part in node])
    if isinstance(node, ArgumentNode):
        return replace(node, value=localize_temporary_names(node.value, own))
    if not is_a(node, ast.Node) or is_a(node, ast.A_Const):
        return node
    changed = {name: localize_temporary_names(getattr(node, name), own) for name in node}
    if is_a(node, ast.RangeVar) and node.schemaname is not None:
        changed["schemaname"] = _schema(node.schemaname, own, offset_to_position(node.location))
    if is_a(node, ast.AlterObjectSchemaStmt):
        changed["newschema"] = _schema(node.newschema, own, None)
    names = _NAMES.get(type(node))
    if names is not None:
        changed[names] = _qualified(changed[names], own)
    return type(node)(**changed)


def _qualified(names: Node, own: str) -> Node:
    """A list of names, or of such lists."""
    if not is_a(names, tuple):
        return names
    if names and is_a(names[0], tuple):
        return tuple([_qualified(part, own) for part in names])
    if len(names) < 2 or not is_a(names[0], ast.String):
        return names
    return (ast.String(sval=_schema(names[0].sval, own, None)), *names[1:])


def _schema(name: str, own: str, place: int | None) -> str:
    if name == TEMPORARY_SCHEMA_ALIAS:
        return own
    if is_temporary_schema(name) and name != own:
        raise SqlError("0A000", "cannot access temporary tables of other sessions", place)
    return name
