"""Write num_nulls() and num_nonnulls() in SQL that both engines share."""

from sql.emit.state import Scope
from sql.plan.nodes import Call


def null_count(call: Call, scope: Scope) -> str:
    """The number of arguments that are NULL, or are not."""
    test = "is not null" if call.function.name == "num_nonnulls" else "is null"
    counts = [f"case when {scope.emit(arg)} {test} then 1 else 0 end" for arg in call.args]
    return f"({' + '.join(counts)})"
