"""How much a plan reads, known before it runs: rows, bytes, and what its joins may hold in memory.

    files of a view ─(those that may have rows of the conditions)─▶ rows × columns read ─▶ bytes

INVARIANTS
  Z1  sizes are bounds for what lies in files: conditions inside of files, and rows that are
      deleted, make them smaller. Rows in memory count as rows only; their bytes are few.
  Z2  a size costs microseconds: what follows from the plan is remembered, and a file's statistics
      are looked at only if the caller gives conditions.

Not here: what is too much (`coordinator/execution/engine_choice.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from compute.identity_cache import REMEMBERED_NODES_MAX, IdentityCache
from compute.needed_columns import needed_columns
from sql.plan.constant_rows import size_of_node
from sql.plan.nodes import ColumnId, Join, Plan, RelationId, Scan, Subquery
from sql.plan.traverse import walk
from storage.batch import DataFile, ShardView

MayMatch: TypeAlias = Callable[[DataFile], bool]
"""Whether a file may have rows that a scan needs."""

_LONG_BYTES: Final = 24
"""Assumed of a value without a fixed width: texts, arrays, JSON."""


@dataclass(frozen=True, slots=True)
class ReadSize:
    """What a plan reads at most (Z1). `nbytes`: of files, as they are stored; `held`: bytes that
    all inputs of its joins but the largest have in memory; 0 without joins.
    """

    rows: int
    nbytes: int
    held: int


class _ColumnsRead:
    """The columns of a relation that one scan reads, by ordinal."""

    __slots__ = ("_ordinals", "_schema", "_widths", "relation")

    def __init__(self, relation: RelationId, ordinals: frozenset[int]) -> None:
        self.relation = relation
        self._ordinals = ordinals
        self._schema: pa.Schema | None = None
        self._widths = (1, 1)

    def widths(self, schema: pa.Schema) -> tuple[int, int]:
        """Bytes of a row's columns that are read, and of all: at least one each."""
        if schema is not self._schema:
            widths = [_width(type_) for type_ in schema.types]
            read = sum([width for at, width in enumerate(widths) if at in self._ordinals])
            self._schema, self._widths = schema, (max(read, 1), max(sum(widths), 1))
        return self._widths


@dataclass(frozen=True, slots=True)
class _Shape:
    """What follows from a plan alone."""

    scans: tuple[_ColumnsRead, ...]
    joins: bool


_remembered: IdentityCache[Plan, _Shape] = IdentityCache()


def read_size(
    plan: Plan,
    inputs: Mapping[RelationId, ShardView],
    may_match: Mapping[RelationId, MayMatch] | None = None,
) -> ReadSize:
    """The size over these inputs. `may_match`: leaves out files of these relations."""
    shape = _shape(plan)
    rows = nbytes = held = largest = 0
    for scan in shape.scans:
        view = inputs.get(scan.relation)
        if view is None:
            continue
        test = None if may_match is None else may_match.get(scan.relation)
        parts = view.files if test is None else [p for p in view.files if test(p.file)]
        found = sum([part.row_limit for part in parts]) + view.inline_rows
        rows += found
        width, whole = scan.widths(view.schema)
        nbytes += sum([part.file.size_bytes for part in parts]) * width // whole
        held += found * width
        largest = max(largest, found * width)
    return ReadSize(rows, nbytes, held - largest if shape.joins else 0)


def _shape(plan: Plan) -> _Shape:
    known = _remembered.get(plan)
    if known is not None:
        return known
    nodes = list(walk(plan))
    below = [node.plan for node in nodes if isinstance(node, Subquery)]
    needed = frozenset[ColumnId]().union(*map(needed_columns, [plan, *below]))
    scans = tuple([_columns_read(node, needed) for node in nodes if isinstance(node, Scan)])
    shape = _Shape(scans, bool(below) or any(isinstance(node, Join) for node in nodes))
    if sum(map(size_of_node, nodes)) <= REMEMBERED_NODES_MAX:
        _remembered.put(plan, shape)
    return shape


def _columns_read(scan: Scan, needed: frozenset[ColumnId]) -> _ColumnsRead:
    columns = zip(scan.columns, scan.ordinals, strict=True)
    return _ColumnsRead(
        scan.relation, frozenset([ordinal for column, ordinal in columns if column.id in needed])
    )


def _width(type_: pa.DataType) -> int:
    try:
        return max(type_.bit_width // 8, 1)
    except ValueError:
        return _LONG_BYTES
