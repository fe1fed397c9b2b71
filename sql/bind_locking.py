"""FOR UPDATE, FOR SHARE and their kin: which tables they mean (transformLockingClause).

Nobody is locked out: what is read under such a clause is validated when the transaction commits, at
every isolation level. NOWAIT and SKIP LOCKED find no lock, so they change nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pglast import ast
from pglast.enums import LockClauseStrength

from sql.bind_from import sequence_named
from sql.binding import Binding
from sql.catalog import Table
from sql.errors import SqlError, not_supported
from sql.look_up import look_up
from sql.scope import Scope
from sql.statements import Bound, Compound, Modify, Query
from sql.syntax import Node, at, is_a, strings

_WORDS: Final = {
    LockClauseStrength.LCS_FORKEYSHARE: "FOR KEY SHARE",
    LockClauseStrength.LCS_FORSHARE: "FOR SHARE",
    LockClauseStrength.LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE",
    LockClauseStrength.LCS_FORUPDATE: "FOR UPDATE",
}


def check_locking(clauses: Sequence[Node] | None, what: str) -> None:
    """0A000 where rows of a table do not come through."""
    if clauses:
        raise SqlError("0A000", f"{_words(clauses[0])} {what}")


def lock(binding: Binding, scope: Scope, node: Node) -> None:
    """Note the tables of a SELECT whose rows are to be validated."""
    clauses = node.lockingClause or ()
    not_allowed = (
        (node.distinctClause, "DISTINCT clause"),
        (node.groupClause, "GROUP BY clause"),
        (node.havingClause, "HAVING clause"),
        (scope.aggregates, "aggregate functions"),
        (scope.windows, "window functions"),
        (scope.set_calls, "set-returning functions in the target list"),
    )
    for found, what in not_allowed:
        if found:
            check_locking(clauses, f"is not allowed with {what}")
    for clause in clauses:
        if not clause.lockedRels:
            tables = [
                table for item in node.fromClause or () for table in _tables(binding, scope, item)
            ]
        else:
            tables = [
                table
                for name in clause.lockedRels
                for table in _named(binding, scope, node, clause, name)
            ]
        binding.locked.update(table.oid for table in tables)


def _words(clause: Node) -> str:
    return _WORDS[clause.strength]


def _tables(binding: Binding, scope: Scope, item: Node) -> Iterator[Table]:
    """All tables below an entry of FROM; WITH queries and functions are passed over."""
    if is_a(item, ast.RangeVar):
        table = None if _is_cte(scope, item) else _table(binding, item)
        if table is not None:
            yield table
    elif is_a(item, ast.RangeSubselect):
        for below in item.subquery.fromClause or ():
            yield from _tables(binding, scope, below)
    elif is_a(item, ast.JoinExpr):
        yield from _tables(binding, scope, item.larg)
        yield from _tables(binding, scope, item.rarg)


def _table(binding: Binding, item: Node) -> Table | None:
    if sequence_named(binding, item) is not None:
        raise SqlError("42809", f'cannot lock rows in sequence "{item.relname}"')
    return look_up(binding, item.relname, schema=item.schemaname)


def _is_cte(scope: Scope, item: Node) -> bool:
    return item.schemaname is None and any(item.relname in s.ctes for s in scope.levels())


def _named(binding: Binding, scope: Scope, node: Node, clause: Node, name: Node) -> Iterator[Table]:
    words = _words(clause)
    place = at(name.location)
    if name.schemaname is not None:
        message = f"{words} must specify unqualified relation names"
        raise SqlError("42601", message, place)
    for item in _items(node.fromClause or ()):
        if _shown_name(item) != name.relname:
            continue
        refused = _not_lockable(scope, item)
        if refused is not None:
            raise SqlError("0A000", f"{words} cannot be applied to {refused}", place)
        yield from _tables(binding, scope, item)
        return
    message = f'relation "{name.relname}" in {words} clause not found in FROM clause'
    raise SqlError("42P01", message, place)


def _items(items: Sequence[Node]) -> Iterator[Node]:
    for item in items:
        if is_a(item, ast.JoinExpr):
            yield from _items((item.larg, item.rarg))
        yield item


def _shown_name(item: Node) -> str | None:
    alias = getattr(item, "alias", None)
    if alias is not None:
        name: str = alias.aliasname
        return name
    if is_a(item, ast.RangeVar):
        return item.relname  # type: ignore[no-any-return]
    if is_a(item, ast.RangeFunction) and is_a(item.functions[0][0], ast.FuncCall):
        return strings(item.functions[0][0].funcname)[-1]
    return None


def _not_lockable(scope: Scope, item: Node) -> str | None:
    if is_a(item, ast.JoinExpr):
        return "a join"
    if is_a(item, ast.RangeFunction):
        return "a function"
    if is_a(item, ast.RangeSubselect) and item.subquery.valuesLists:
        return "VALUES"
    return "a WITH query" if is_a(item, ast.RangeVar) and _is_cte(scope, item) else None


def check_locked(binding: Binding, bound: Bound) -> None:
    """0A000 for statements that write and lock others than the tables that they write to."""
    match bound:
        case Query():
            return
        case Modify():
            written = {bound.table.oid}
        case Compound():
            written = {modify.table.oid for modify in bound.modifications}
        case _:
            written = set()
    if binding.locked - written:
        raise not_supported("FOR UPDATE of another table in a statement that writes", None)
