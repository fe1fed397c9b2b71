"""Walk everything in a plan: nodes, expressions and functions, also in subqueries and sort keys."""

import dataclasses
from collections.abc import Iterator

from sql.functions.table import Function
from sql.plan.nodes import Plan, RelationId, Scan


def nodes(value: object) -> Iterator[object]:
    """Every node of a plan or expression, and every function that they call."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, tuple):
            stack.extend(found)
        elif dataclasses.is_dataclass(found) and not isinstance(found, type):
            yield found
            if not isinstance(found, Function):
                stack.extend(getattr(found, field.name) for field in dataclasses.fields(found))


def is_volatile(plan: Plan) -> bool:
    """Whether the same plan over the same inputs may give another answer the next time."""
    return any(isinstance(node, Function) and node.volatility == "volatile" for node in nodes(plan))


def identified_relations(plan: Plan) -> frozenset[RelationId]:
    """The relations that are scanned with the identity (source and row number) of their rows."""
    return frozenset(
        node.relation
        for node in nodes(plan)
        if isinstance(node, Scan) and node.identity is not None
    )
