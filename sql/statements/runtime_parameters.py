"""Values that a bound statement gets at run time: runtime parameters, and defaults for each row."""

from dataclasses import dataclass

from sql.catalog.objects import SequenceDefinition
from sql.plan.nodes import Expr


@dataclass(frozen=True, slots=True)
class RowDefault:
    """A column's default for each row: the next value of a sequence, or `text` over such values."""

    sequences: tuple[SequenceDefinition, ...]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class RuntimeParameter:
    """A runtime parameter, computed by the session before the statement runs: a call of `nextval`
    or another sequence function, or of a session function (`session_calls.py`). `sequence`: the one
    that the first argument names, if known. Arguments may be runtime parameters before it.
    """

    kind: str
    sequence: SequenceDefinition | None = None
    args: tuple[Expr, ...] = ()
