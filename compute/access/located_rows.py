"""Read a few rows of a view by source and row number, and run plans over them in process.

    places ─▶ inline slices: taken ─┬─▶ LocatedRows ─▶ run_over_rows: a plan in process
              files: read by rows  ─┘

INVARIANTS
  L1  rows come in the order of the given places, with the columns and types of the view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from compute.access.key_index import WARM_KEYS_MAX, KeyIndex, ReadRows
from compute.reference.arrow import to_values
from compute.reference.expressions import Row
from compute.reference.plans import PlanCompiler
from compute.scan import conform_batch, relation_schema
from sql.plan.nodes import Plan, RelationId, Scan
from sql.types.sql_type import Value
from storage.batch import RowIdentity, ShardView
from storage.types import Source


@dataclass(frozen=True, slots=True)
class LocatedRows:
    """Rows with their identities (L1)."""

    rows: pa.Table
    places: Sequence[RowIdentity]


def fetch_located_rows(
    view: ShardView, places: Sequence[RowIdentity], read: ReadRows
) -> LocatedRows:
    """Read the rows at these places of a view. Blocks if some are in files."""
    wanted: dict[Source, list[int]] = {}
    for source, row in places:
        wanted.setdefault(source, []).append(row)
    files = {part.file.name: part.file for part in view.files}
    parts: list[pa.Table] = []
    first: dict[RowIdentity, int] = {}
    count = 0
    for source, indexes in wanted.items():
        rows = sorted(set(indexes))
        inline = view.inline_slice(source)
        if inline is not None:
            part = conform_batch(inline.rows.take(pa.array(rows, pa.int64())), view.schema)
        else:
            part = conform_batch(read(view.shard, files[source], rows), view.schema)
        if len(wanted) == 1 and rows == indexes:
            return LocatedRows(part, places)
        parts.append(part)
        first.update({(source, row): count + n for n, row in enumerate(rows)})
        count += len(rows)
    schema = relation_schema(view.schema, identity=False)
    found = pa.concat_tables([schema.empty_table(), *parts])
    order = np.array([first[place] for place in places], dtype=np.int64)
    return LocatedRows(found.take(order), places)


def are_rows_in_memory(
    view: ShardView,
    places: Sequence[RowIdentity],
    index: KeyIndex,
    *,
    at_most: int = WARM_KEYS_MAX,
) -> bool:
    """Whether `fetch_located_rows` opens no file for these rows, and there are not too many."""
    if len(places) > at_most:
        return False
    files = {part.file.name: part.file for part in view.files}
    return all(
        source not in files or index.rows_warm(view.shard, files[source], [row])
        for source, row in places
    )


def run_plan_over_rows(
    plan: Plan, rows: Mapping[RelationId, LocatedRows], parameters: Sequence[Value]
) -> list[Row]:
    """Run a plan in process with these rows as its inputs."""

    def read(scan: Scan) -> Sequence[Row]:
        located = rows[scan.relation]
        columns: list[Sequence[Value]] = [
            to_values(located.rows.column(ordinal), column.type)
            for column, ordinal in zip(scan.columns, scan.ordinals, strict=True)
        ]
        if scan.identity is not None:
            columns.append([str(source) for source, _ in located.places])
            columns.append([row for _, row in located.places])
        return list(zip(*columns, strict=True)) if columns else [()] * located.rows.num_rows

    return list(PlanCompiler(read, parameters).compile(plan)())
