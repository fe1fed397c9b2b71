"""What an emission ends in: a statement, and the relations that are made before it.

INVARIANTS
  N1  a statement reads nothing that is not an input, a relation of `EmittedQuery.made`, or, in a
      step, the rows of its recursion's last round and those of all rounds before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sql.emit.state import Given, OutsideCall, OutsideFunction
from sql.plan.nodes import PlanColumn


@dataclass(frozen=True, slots=True)
class EmittedQuery:
    """A statement and its arguments by name; all of them are strings.

    `calls`: the functions that are computed outside of the engine, by their names in the text;
    `row_by_row`: one of them is called for every row. `parameters`: what it was emitted for.
    `functions`: those that workers of the engine compute. `made`: relations that it reads and that
    are made first, in this order; `rounds`: the names of the last rounds of recursions that it or
    they read.
    """

    text: str
    arguments: Mapping[str, str]
    columns: tuple[PlanColumn, ...]
    calls: Mapping[str, OutsideCall] = field(default_factory=dict[str, OutsideCall])
    row_by_row: bool = False
    parameters: tuple[Given, ...] = ()
    functions: Mapping[str, OutsideFunction] = field(default_factory=dict[str, OutsideFunction])
    made: "tuple[Made, ...]" = ()
    rounds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a query as a relation of this name, columns `f0`, `f1` .. by position; those of
    `rounds`, too, if it is a recursion.
    """

    name: str
    base: EmittedQuery
    rounds: "Rounds | None" = None

    @property
    def within(self) -> frozenset[str]:
        """The last rounds of recursions around it that it reads: it is made anew for each."""
        if self.rounds is None:
            return self.base.rounds
        return (self.base.rounds | self.rounds.step.rounds) - {self.rounds.last}


@dataclass(frozen=True, slots=True)
class Rounds:
    """`step` is run as long as the round before it had rows, which it finds in the relation `last`.
    `distinct`: the step also reads all rounds so far, by the name of the relation, and
    answers with rows that are not among them. `rows_max`: as many rows are enough.
    """

    step: EmittedQuery
    last: str
    distinct: bool
    rows_max: int | None
