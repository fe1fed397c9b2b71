"""Dependency graphs and the shortest cycle in each knot.

    ww  a wrote the version that b replaced        wr  b read what a wrote
    rw  a read a version that b replaced           rt  a ended before b began

A cycle means: no order of the transactions explains the answers. With `rt` in it, no order that
respects real time does. The name follows Adya: G0 (writes only), G1c (with reads), G-single (one
rw edge: read skew, lost update), G2 (more: write skew); `-realtime` when real time is needed.

INVARIANTS
  C1  rt edges are a transitive reduction: a path exists exactly when one ended before the other
      began.
  C2  a finding is a shortest cycle, and one without rt edges is preferred, because it says more.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tests.resilience.history.events import Finding, Transaction

KINDS = ("ww", "wr", "rw", "rt")


class Graph:
    """Edges between transaction numbers, each with the reasons for it."""

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self._transactions = {t.number: t for t in transactions}
        self._edges: dict[int, dict[int, dict[str, str]]] = {t.number: {} for t in transactions}

    def add(self, kind: str, before: Transaction, after: Transaction, reason: str) -> None:
        """`before` must come before `after`; a transaction does not depend on itself."""
        assert kind in KINDS, f"unknown edge {kind}"
        if before.number != after.number:
            reasons = self._edges[before.number].setdefault(after.number, {})
            reasons.setdefault(kind, reason)

    def add_real_time(self) -> None:
        """Order what does not overlap (C1)."""
        for before, after in real_time_edges(self._transactions.values()):
            self.add("rt", before, after, "ended before it began")

    def findings(self) -> list[Finding]:
        """One shortest cycle for each strongly connected knot (C2)."""
        data_only = self._cycles(("ww", "wr", "rw"))
        return data_only or self._cycles(KINDS)

    def _cycles(self, kinds: Sequence[str]) -> list[Finding]:
        successors = {
            number: [n for n, reasons in after.items() if any(k in reasons for k in kinds)]
            for number, after in self._edges.items()
        }
        return [
            self._explain(shortest_cycle(successors, knot), kinds) for knot in knots(successors)
        ]

    def _explain(self, cycle: Sequence[int], kinds: Sequence[str]) -> Finding:
        used: list[str] = []
        parts: list[str] = []
        for before, after in pairwise([*cycle, cycle[0]]):
            reasons = self._edges[before][after]
            kind = next(k for k in kinds if k in reasons)
            used.append(kind)
            parts.append(f"T{before} -{kind}-> T{after} ({reasons[kind]})")
        return Finding(
            _name(used), "; ".join(parts), tuple(self._transactions[number] for number in cycle)
        )


def _name(kinds: Sequence[str]) -> str:
    suffix = "-realtime" if "rt" in kinds else ""
    match kinds.count("rw"):
        case 0:
            return ("G1c" if "wr" in kinds else "G0") + suffix
        case 1:
            return "G-single" + suffix
        case _:
            return "G2" + suffix


def real_time_edges(
    transactions: Iterable[Transaction],
) -> list[tuple[Transaction, Transaction]]:
    """Pairs that generate the order "ended before it began" (C1)."""
    moments: list[tuple[int, bool, Transaction]] = []
    for transaction in transactions:
        moments.append((transaction.began, False, transaction))
        if transaction.ended is not None:
            moments.append((transaction.ended, True, transaction))
    edges: list[tuple[Transaction, Transaction]] = []
    # The frontier: ended transactions that no later ended transaction has covered.
    frontier: list[Transaction] = []
    for _, is_end, transaction in sorted(moments, key=lambda moment: moment[0]):
        if is_end:
            frontier = [t for t in frontier if not t.ended_before(transaction)]
            frontier.append(transaction)
        else:
            edges += [(before, transaction) for before in frontier]
    return edges


def knots(successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in successors:
        if root in index:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_pop_until(node, stack, on_stack))
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(successors[following])))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return [component for component in found if len(component) > 1]


def _pop_until(node: int, stack: list[int], on_stack: set[int]) -> list[int]:
    component: list[int] = []
    while not component or component[-1] != node:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return component


def shortest_cycle(successors: Mapping[int, Sequence[int]], knot: Sequence[int]) -> list[int]:
    """A shortest cycle inside one knot."""
    inside = set(knot)
    best: list[int] = []
    for start in sorted(knot):
        cycle = _cycle_through(start, successors, inside)
        if not best or len(cycle) < len(best):
            best = cycle
        if len(best) == 2:
            break
    return best


def _cycle_through(
    start: int, successors: Mapping[int, Sequence[int]], inside: set[int]
) -> list[int]:
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for following in successors[node]:
            if following == start:
                return _path(start, node, came_from)
            if following in inside and following not in came_from:
                came_from[following] = node
                queue.append(following)
    raise AssertionError("a node of a knot lies on a cycle")


def _path(start: int, end: int, came_from: Mapping[int, int]) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]
