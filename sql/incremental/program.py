"""What a maintenance program is made of; see the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sql.plan.nodes import Plan, PlanColumn, RelationId, Scan
from sql.plan.traverse import scans


class InputSide(StrEnum):
    """The rows of an input that a plan reads."""

    BEFORE = "before"
    AFTER = "after"
    CAME = "came"
    WENT = "went"


STORED_ROWS: Final = RelationId("stored rows of the view")
"""The view's own rows, as they are before; scanned with identities."""

LEAVING_ROWS: Final = RelationId("rows that go")
"""Rows of the view that go, by value, each once."""


def side_of_input(relation: RelationId, side: InputSide) -> RelationId:
    """What an input is called in the plans of a program."""
    return RelationId(f"{relation}@{side.value}")


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """A plan of a program, and the relations that it scans."""

    plan: Plan
    reads: frozenset[RelationId]

    @classmethod
    def of(cls, plan: Plan) -> "ProgramPlan":
        """The plan with what it reads."""
        return cls(plan, frozenset(scan.relation for scan in scans(plan)))


@dataclass(frozen=True, slots=True)
class StepTerm:
    """A part of a step's rows: none if all of these relations are empty (D3)."""

    plan: ProgramPlan
    sources: frozenset[RelationId]


@dataclass(frozen=True, slots=True)
class ChangesStep:
    """Makes a relation of weighted rows: the columns, then the weight, which is an int8 that is not
    0. Rows that are equal to the bit are one; with `units` there are so many of weight 1 or -1.
    """

    relation: RelationId
    columns: tuple[PlanColumn, ...]
    terms: tuple[StepTerm, ...]
    units: bool = False


@dataclass(frozen=True, slots=True)
class KeysStep:
    """Makes a relation of keys, each once. `distinct`: finds which are equal, over the relation
    itself; None: only those that are equal to the bit are.
    """

    relation: RelationId
    columns: tuple[PlanColumn, ...]
    terms: tuple[StepTerm, ...]
    distinct: ProgramPlan | None


@dataclass(frozen=True, slots=True)
class ChangesByValue:
    """The view's rows change by those of the last step; `found` has stored rows that look like
    LEAVING_ROWS, with their identities.
    """

    changes: RelationId
    found: ProgramPlan


@dataclass(frozen=True, slots=True)
class ChangesByKey:
    """The stored rows that are `found` go, and those of `terms` come; what is in both stays. There
    is nothing to do if all of `sources` are empty.
    """

    sources: frozenset[RelationId]
    found: ProgramPlan
    terms: tuple[StepTerm, ...]


class Strategy(StrEnum):
    """How a view is maintained, in one word."""

    CHANGES = "changes"
    KEYS = "affected keys"
    SUMS = "sums"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class NodeNote:
    """How one node of a query is maintained; `depth` from the top."""

    depth: int
    title: str
    way: str


@dataclass(frozen=True, slots=True, eq=False)
class MaintenanceProgram:
    """How the rows of a view change with its inputs. Held as long as it is used: engines know its
    plans by identity. `reason`: why it is full; None: it is not.
    """

    inputs: tuple[RelationId, ...]
    steps: tuple[ChangesStep | KeysStep, ...]
    result: ChangesByValue | ChangesByKey
    columns: tuple[PlanColumn, ...]
    strategy: Strategy
    reason: str | None
    notes: tuple[NodeNote, ...]
    keys: tuple[int, ...] = ()
    """Columns of which no two rows of the view have the same values; none: nobody knows."""


@dataclass(frozen=True, slots=True)
class NotIncremental:
    """No program maintains the query: its rows do not follow from the rows of its inputs."""

    reason: str
    position: int | None = None


def step_scan(relation: RelationId, columns: Sequence[PlanColumn]) -> Scan:
    """All columns of a relation that a step has made."""
    return Scan(relation, relation, tuple(columns), tuple(range(len(columns))))
