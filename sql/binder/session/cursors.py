"""DECLARE CURSOR: check the options and return the query (transformDeclareCursorStmt)."""

from typing import Final

from pglast import ast
from pglast.enums import SetOperation

from sql.binder.queries.row_locking import locking_clause_name
from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, offset_to_position

BINARY: Final = 1
SCROLL: Final = 2
_NO_SCROLL: Final = 4
_INSENSITIVE: Final = 8
_ASENSITIVE: Final = 16
HOLD: Final = 32


def cursor_query(node: Node) -> Node:
    """The query of DECLARE. Raises 42P11, 42601, 0A000 for queries that no cursor may have."""
    options, query = node.options, node.query
    for one, other, words in (
        (SCROLL, _NO_SCROLL, "SCROLL and NO SCROLL"),
        (_ASENSITIVE, _INSENSITIVE, "ASENSITIVE and INSENSITIVE"),
    ):
        if options & one and options & other:
            raise SqlError("42P11", f"cannot specify both {words}")
    first = query
    while first.op != SetOperation.SETOP_NONE:
        first = first.larg
    if first.intoClause is not None:
        place = offset_to_position(first.intoClause.rel.location)
        raise SqlError("42601", "SELECT ... INTO is not allowed here", place)
    ctes = () if query.withClause is None else query.withClause.ctes
    if not all(is_a(cte.ctequery, ast.SelectStmt) for cte in ctes):
        message = "DECLARE CURSOR must not contain data-modifying statements in WITH"
        raise SqlError("0A000", message)
    if query.lockingClause and query.fromClause:
        _check_locking(options, locking_clause_name(query.lockingClause))
    return query


def _check_locking(options: int, words: str) -> None:
    for option, sqlstate, cursor, wrong, kind in (
        (HOLD, "0A000", "CURSOR WITH HOLD", "is not supported", "Holdable"),
        (SCROLL, "0A000", "SCROLL CURSOR", "is not supported", "Scrollable"),
        (_INSENSITIVE, "42P11", "INSENSITIVE CURSOR", "is not valid", "Insensitive"),
    ):
        if options & option:
            detail = f"{kind} cursors must be READ ONLY."
            raise SqlError(sqlstate, f"DECLARE {cursor} ... {words} {wrong}", detail=detail)
