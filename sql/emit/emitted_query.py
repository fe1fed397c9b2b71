"""The result of an emission: a statement, and the relations that are computed before it.

INVARIANTS
  N1  a statement reads only inputs and relations of `EmittedQuery.made`. A recursive step also
      reads the rows of its recursion's last iteration, and those of all iterations before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sql.emit.state import EvaluatorCall, GivenParameter, WorkerFunction
from sql.plan.nodes import PlanColumn


@dataclass(frozen=True, slots=True)
class EmittedQuery:
    """A statement and its arguments by name; all of them are strings.

    `calls`: the functions that are computed outside of the engine, by their names in the text;
    `row_by_row`: one of them is called for every row. `parameters`: the parameters it was emitted
    for. `functions`: those that workers of the engine compute. `made`: relations that it reads and
    that are computed first, in this order; `rounds`: the names of the last iterations of recursions
    that it or they read.
    """

    text: str
    arguments: Mapping[str, str]
    columns: tuple[PlanColumn, ...]
    calls: Mapping[str, EvaluatorCall] = field(default_factory=dict[str, EvaluatorCall])
    row_by_row: bool = False
    parameters: tuple[GivenParameter, ...] = ()
    functions: Mapping[str, WorkerFunction] = field(default_factory=dict[str, WorkerFunction])
    made: "tuple[DerivedRelation, ...]" = ()
    rounds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DerivedRelation:
    """The rows of a query as a relation of this name, columns `f0`, `f1` .. by position; with those
    of all iterations `rounds`, if it is a recursion.
    """

    name: str
    base: EmittedQuery
    rounds: "Iterations | None" = None

    @property
    def within(self) -> frozenset[str]:
        """The last iterations of enclosing recursions that it reads: each computes it anew."""
        if self.rounds is None:
            return self.base.rounds
        return (self.base.rounds | self.rounds.step.rounds) - {self.rounds.last}


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of a recursion: `step` runs as long as the last iteration had rows, which it
    finds in the relation `last`. `distinct`: the step also reads the rows of all iterations so far,
    by the name of the relation, and returns only rows that are not among them. `rows_max`: this
    many rows are enough.
    """

    step: EmittedQuery
    last: str
    distinct: bool
    rows_max: int | None
