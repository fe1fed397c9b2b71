"""Calls of an operator that fold a long chain: `a + b + c + ..` as one call of all terms.

INVARIANTS
  C1  a call has more arguments than its function takes only if it is one of `FOLDED`. It is then
      the call of the first two, of that and the third, and so on.

Such a chain is as long as a text allows; nested calls are bounded by the depth of stacks.
"""

from typing import Final

from sql.plan.nodes import Call

FOLDED: Final = frozenset({"int4 + int4", "int8 + int8"})


def is_folded_call(call: Call) -> bool:
    """Whether the call folds more than two arguments (C1)."""
    return len(call.args) > 2 and call.function.id in FOLDED
