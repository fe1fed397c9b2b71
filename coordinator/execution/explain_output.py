"""Render the nodes of EXPLAIN as PostgreSQL's indented text or as its JSON.

    Shown ─┬─▶ text_lines   "Sort  (actual ..)", details and arrows below
           └─▶ document     {"Node Type": "Sort", .., "Plans": [..]}

INVARIANTS
  E1  both forms show the same; names of properties are PostgreSQL's where it has them.
  E2  what may be a secret is hidden: who explains a query on a view need not know its text.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from coordinator.hidden_secrets import without_secrets
from sql.explain.plan_tree import ExplainedNode
from sql.plan.nodes import RelationId, Scan
from storage.batch import ShardView

Json: TypeAlias = "str | int | bool | Number | Sequence[Json] | Mapping[str, Json]"


@dataclass(frozen=True, slots=True)
class Number:
    """A number with so many decimals."""

    value: float
    decimals: int

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"


@dataclass(frozen=True, slots=True)
class ActualCost:
    """What a run of the whole statement took, in milliseconds: to its first rows, and to its end.
    None if nobody wants to know.
    """

    rows: int
    times: tuple[float, float] | None

    @property
    def text(self) -> str:
        """Behind a node's title."""
        timed = ""
        if self.times is not None:
            timed = f"time={self.times[0]:.3f}..{self.times[1]:.3f} "
        return f"(actual {timed}rows={self.rows:.2f} loops=1)"

    @property
    def properties(self) -> dict[str, Json]:
        """The same in JSON."""
        found: dict[str, Json] = {}
        if self.times is not None:
            found["Actual Startup Time"] = Number(self.times[0], 3)
            found["Actual Total Time"] = Number(self.times[1], 3)
        return found | {"Actual Rows": Number(self.rows, 2), "Actual Loops": 1}


@dataclass(slots=True)
class OutputNode:
    """A node: `title` of the text, `type` and `properties` of JSON, `details` of both; `below`
    with how it belongs here: an input, a subplan, a WITH query.
    """

    title: str
    type: str
    properties: dict[str, Json] = field(default_factory=dict[str, Json])
    notes: str = ""
    details: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    below: "list[tuple[str, OutputNode]]" = field(default_factory=list["tuple[str, OutputNode]"])
    actual: ActualCost | None = None


INPUT: Final = "Outer"


def output_node(
    node: ExplainedNode, inputs: Mapping[RelationId, ShardView], *, verbose: bool
) -> OutputNode:
    """A plan over these inputs."""
    shown = (detail for detail in node.details if verbose or detail[0] != "Output")
    details = [(name, without_secrets(value)) for name, value in shown]
    found = OutputNode(node.title, node.title, details=details)
    plan = node.plan
    if isinstance(plan, Scan):
        found.type = "Scan"
        found.properties["Relation Name"] = plan.name
        view = inputs.get(plan.relation)
        if view is not None:
            files, in_files, in_memory = _sizes(view)
            found.properties |= {"Files": files, "Rows in Files": in_files}
            found.properties["Rows in Memory"] = in_memory
            found.notes = _noted(files, in_files, in_memory)
    found.below += [("SubPlan", output_node(s, inputs, verbose=verbose)) for s in node.subplans]
    found.below += [(INPUT, output_node(below, inputs, verbose=verbose)) for below in node.inputs]
    return found


def _sizes(view: ShardView) -> tuple[int, int, int]:
    """Files, and the live rows in them and in memory."""
    in_files = sum(piece.row_limit - len(piece.deleted) for piece in view.files)
    in_memory = sum(piece.num_rows - len(piece.deleted) for piece in view.inline)
    return len(view.files), in_files, in_memory


def _noted(files: int, in_files: int, in_memory: int) -> str:
    in_them = f"{_many(files, 'file')}, {_many(in_files, 'row')}"
    return f"(files: {in_them}; in memory: {_many(in_memory, 'row')})"


_many: Callable[[int, str], str] = lambda count, noun: f"{count} {noun}{'' if count == 1 else 's'}"  # noqa: E731


# --- text --------------------------------------------------------------------------------------


def text_lines(node: OutputNode) -> Iterator[str]:
    """The lines of a node and all below it, as PostgreSQL indents them."""
    actual = "" if node.actual is None else node.actual.text
    yield "  ".join(part for part in (node.title, node.notes) if part) + (actual and f" {actual}")
    for name, value in node.details:
        yield f"  {name}: {value}"
    for kind, below in node.below:
        width = 2
        if kind != INPUT:
            yield f"  {kind}"
            width = 4
        first, *rest = text_lines(below)
        yield f"{' ' * width}->  {first}"
        yield from (f"{' ' * (width + 4)}{line}" for line in rest)


# --- JSON --------------------------------------------------------------------------------------


def json_document(node: OutputNode, relationship: str = "") -> dict[str, Json]:
    """A node and all below it."""
    found: dict[str, Json] = {"Node Type": node.type}
    if relationship.startswith("CTE "):
        found |= {"Parent Relationship": "InitPlan", "Subplan Name": relationship}
    elif relationship:
        found["Parent Relationship"] = relationship
    found |= node.properties
    if node.actual is not None:
        found |= node.actual.properties
    for name, value in node.details:
        earlier = found.get(name)
        if earlier is None:
            found[name] = value
        else:
            found[name] = [*(earlier if isinstance(earlier, list) else [earlier]), value]
    if node.below:
        found["Plans"] = [json_document(below, kind) for kind, below in node.below]
    return found


def json_text(value: Json, depth: int = 0) -> str:
    """JSON with PostgreSQL's line breaks."""
    inside, outside = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    match value:
        case Number():
            return str(value)
        case str() | int():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            items = [f"{json.dumps(k)}: {json_text(v, depth + 1)}" for k, v in value.items()]
            return "{" + ",".join(inside + item for item in items) + outside + "}"
        case _:
            items = [json_text(item, depth + 1) for item in value]
            return "[" + ",".join(inside + item for item in items) + outside + "]"
