"""Values that a bound statement gets when it runs: runtime parameters, defaults for each row."""

from dataclasses import dataclass

from sql.catalog.objects import SequenceDefinition
from sql.plan.nodes import Expr


@dataclass(frozen=True, slots=True)
class Filled:
    """The next values of these sequences, one a row, or what a default's text makes of them."""

    sequences: tuple[SequenceDefinition, ...]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Supplied:
    """A value that the session finds before the statement runs: of a sequence (`nextval`
    and its kin), or of a function that it answers (`session_calls.py`). `sequence`: what the
    first argument names, if that is known. Arguments may be what was supplied before.
    """

    kind: str
    sequence: SequenceDefinition | None = None
    args: tuple[Expr, ...] = ()
