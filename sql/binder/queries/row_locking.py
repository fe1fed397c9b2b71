"""FOR UPDATE and FOR SHARE: find the tables that they lock (transformLockingClause).

How their rows are found and locked: `locked_rows.py`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from pglast import ast

from sql.binder.queries.locked_rows import WantedLocks
from sql.binder.resolve.relations import find_sequence_relation, resolve_relation
from sql.binder.resolve.updatable_query import row_changing_calls
from sql.binder.state import Binding, Scope
from sql.binder.stored.views import inside_view, parse_view_query
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.errors import SqlError
from sql.parser.syntax import LOCKING_WORDS, Node, alias_of, is_a, offset_to_position, string_values
from sql.plan.nodes import Plan
from sql.statements.locking import LockPolicy, RowLockStrength

_SETS: Final = "set-returning functions"


def refuse_locking(clauses: Sequence[Node] | None, what: str) -> None:
    """0A000 for a locking clause on a query whose result is not rows of tables."""
    if clauses:
        raise SqlError("0A000", f"{_words(clauses[0])} {what}")


def locking_clause_name(clauses: Sequence[Node]) -> str:
    """The name of the strongest of several locking clauses."""
    return LOCKING_WORDS[max(clause.strength for clause in clauses)]


def wanted_row_locks(binding: Binding, scope: Scope, node: Node, plan: Plan) -> WantedLocks | None:
    """What the locking clauses of a SELECT ask for; `plan`: its FROM and WHERE."""
    clauses = node.lockingClause or ()
    if not clauses:
        return None
    calls = {
        "aggregate functions": scope.aggregates,
        "window functions": scope.windows,
        _SETS: scope.set_calls,
    }
    _check_rows(node, _words(clauses[0]), [what for what, found in calls.items() if found])
    ctes = frozenset(name for level in scope.levels() for name in level.ctes)
    wanted = WantedLocks()
    for clause in clauses:
        _check_tables(binding, ctes, node, clause)
        _add_items(binding, scope, plan, clause, wanted)
    return wanted


def _check_tables(binding: Binding, ctes: Collection[str], node: Node, clause: Node) -> None:
    """Raise for a name that has no rows to lock."""
    if clause.lockedRels:
        for name in clause.lockedRels:
            list(_named(binding, ctes, node, clause, name))
    else:
        for item in node.fromClause or ():
            list(_tables(binding, ctes, item, _words(clause)))


def _add_items(
    binding: Binding, scope: Scope, plan: Plan, clause: Node, wanted: WantedLocks
) -> None:
    names = [name.relname for name in clause.lockedRels or ()]
    items = [item for item in scope.items if not names or item.name in names]
    if any(item.nullable for item in items):
        what = "cannot be applied to the nullable side of an outer join"
        raise SqlError("0A000", f"{_words(clause)} {what}")
    # pglast numbers the strengths from 0, LCS_NONE, and the policies from 0, LockWaitBlock.
    strength = RowLockStrength(int(clause.strength))
    wanted.add(binding, plan, items, strength, LockPolicy(int(clause.waitPolicy)))


def _check_rows(node: Node, words: str, calls: Iterable[str]) -> None:
    """0A000 for a SELECT whose rows are not rows of tables (CheckSelectLocking)."""
    clauses = {
        "DISTINCT clause": node.distinctClause,
        "GROUP BY clause": node.groupClause,
        "HAVING clause": node.havingClause,
    }
    for what in (*(what for what, found in clauses.items() if found), *calls):
        shown = f"{what} in the target list" if what == _SETS else what
        raise SqlError("0A000", f"{words} is not allowed with {shown}")


def _words(clause: Node) -> str:
    return LOCKING_WORDS[clause.strength]


def _tables(binding: Binding, ctes: Collection[str], item: Node, words: str) -> Iterator[Table]:
    """All tables below an entry of FROM; WITH queries and functions are passed over."""
    if is_a(item, ast.RangeVar):
        if not _is_cte(ctes, item):
            yield from _tables_of(binding, item, words)
    elif is_a(item, ast.RangeSubselect):
        for below in item.subquery.fromClause or ():
            yield from _tables(binding, ctes, below, words)
    elif is_a(item, ast.JoinExpr):
        yield from _tables(binding, ctes, item.larg, words)
        yield from _tables(binding, ctes, item.rarg, words)


def _tables_of(binding: Binding, item: Node, words: str) -> Iterator[Table]:
    """The table of this name, or those that a view of this name selects from."""
    if find_sequence_relation(binding, item) is not None:
        raise SqlError("42809", f'cannot lock rows in sequence "{item.relname}"')
    found = resolve_relation(binding, item)
    if isinstance(found, Table):
        if not is_server_state(found):
            yield found
        return
    tree = parse_view_query(found.text)
    _check_rows(tree, words, row_changing_calls(tree))
    with inside_view(binding, found):
        own = () if tree.withClause is None else tree.withClause.ctes
        ctes = {cte.ctename for cte in own}
        for below in tree.fromClause or ():
            yield from _tables(binding, ctes, below, words)


def _is_cte(ctes: Collection[str], item: Node) -> bool:
    return item.schemaname is None and item.relname in ctes


def _named(
    binding: Binding, ctes: Collection[str], node: Node, clause: Node, name: Node
) -> Iterator[Table]:
    words = _words(clause)
    place = offset_to_position(name.location)
    if name.schemaname is not None:
        message = f"{words} must specify unqualified relation names"
        raise SqlError("42601", message, place)
    for item in _items(node.fromClause or ()):
        if _shown_name(item) != name.relname:
            continue
        refused = _not_lockable(ctes, item)
        if refused is not None:
            raise SqlError("0A000", f"{words} cannot be applied to {refused}", place)
        yield from _tables(binding, ctes, item, words)
        return
    message = f'relation "{name.relname}" in {words} clause not found in FROM clause'
    raise SqlError("42P01", message, place)


def _items(items: Sequence[Node]) -> Iterator[Node]:
    for item in items:
        if is_a(item, ast.JoinExpr):
            yield from _items((item.larg, item.rarg))
        yield item


def _shown_name(item: Node) -> str | None:
    alias = alias_of(item)
    if alias is not None:
        name: str = alias.aliasname
        return name
    if is_a(item, ast.RangeVar):
        return item.relname  # type: ignore[no-any-return]
    if is_a(item, ast.RangeFunction) and is_a(item.functions[0][0], ast.FuncCall):
        return string_values(item.functions[0][0].funcname)[-1]
    return None


def _not_lockable(ctes: Collection[str], item: Node) -> str | None:
    if is_a(item, ast.JoinExpr):
        return "a join"
    if is_a(item, ast.RangeFunction):
        return "a function"
    if is_a(item, ast.RangeSubselect) and item.subquery.valuesLists:
        return "VALUES"
    return "a WITH query" if is_a(item, ast.RangeVar) and _is_cte(ctes, item) else None
