"""Properties of a whole plan: whether it is volatile, which scans have row identity."""

from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import functions, scans


def is_volatile(plan: Plan) -> bool:
    """Whether the same plan over the same inputs may answer differently the next time."""
    return any(function.volatility == "volatile" for function in functions(plan))


def relations_with_identity(plan: Plan) -> frozenset[RelationId]:
    """The relations that are scanned with the identity (source and row number) of their rows."""
    return frozenset(scan.relation for scan in scans(plan) if scan.identity is not None)
