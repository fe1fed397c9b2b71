"""Find calls that may grow a text so much that the engine would run out of memory.

    replace(x, 'a', 'bb')        the engine's own
    replace(x, y, z), or by a text that is many times longer        the reference evaluator

DuckDB's `replace` and `regexp_replace` do not account for their memory, and cut a text longer than
4 GiB; Spark's process ends. The evaluator checks the length first (`sql/types/limits.py`).
"""

from typing import Final

from sql.emit.state import Scope
from sql.plan.nodes import Call

_REPLACED_MAX: Final = 8
"""How many times as long as what it stands for a replacement may be."""
_BY_MATCH_MAX: Final = 32
"""How long it may be in place of a match, which may be of one character."""


def may_grow_too_long(call: Call, scope: Scope) -> bool:
    """Whether the evaluator has to compute this call of replace() or regexp_replace()."""
    replacement = scope.statement.known(call.args[2])
    if replacement is None:
        return True
    length = len(str(replacement[0]).encode())
    if call.function.name == "regexp_replace":
        return length > _BY_MATCH_MAX
    old = scope.statement.known(call.args[1])
    shortest = 1 if old is None else max(len(str(old[0]).encode()), 1)
    return length > _REPLACED_MAX * shortest
