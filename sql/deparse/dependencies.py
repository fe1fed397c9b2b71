"""The relations and columns that a query names itself (find_expr_references_walker)."""

from collections.abc import Iterator
from typing import Any

from sql.deparse.nodes import Entry, JoinTree, QueryTree, Var, WholeRowVar


def direct_uses(query: QueryTree) -> list[tuple[int, int]]:
    """Oid and number of each column; a relation of which no column is used has number 0."""
    found = set(_references(query))
    with_columns = {oid for oid, number in found if number}
    return sorted(use for use in found if use[1] or use[0] not in with_columns)


def _references(start: QueryTree) -> Iterator[tuple[int, int]]:
    waiting: list[Any] = [start]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting.extend(node)
            continue
        if isinstance(node, Var):
            yield from _of_column(node, waiting)
            continue
        slots = getattr(node, "__slots__", ())
        if not slots or isinstance(node, WholeRowVar):
            continue
        if isinstance(node, QueryTree | Entry | JoinTree):
            if id(node) in seen:
                continue
            seen.add(id(node))
        if isinstance(node, Entry):
            if node.kind == "relation":
                yield node.oid, 0
            waiting += [node.query, node.functions, node.values, node.sample]
            continue
        waiting.extend(getattr(node, name) for name in slots)


def _of_column(node: Var, waiting: list[Any]) -> Iterator[tuple[int, int]]:
    if node.entry.kind == "relation":
        yield node.entry.oid, node.entry.numbers[node.at]
    elif node.entry.kind == "join":
        waiting.append(node.entry.merged[node.at])
