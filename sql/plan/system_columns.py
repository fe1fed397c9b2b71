"""The columns of a scan that its table does not declare: ctid and xmin.

    t.ctid ─▶ Scan(t, ordinals=(0, 1, CTID)) ─▶ the engine computes it of where the row lies
                                                (`compute/row_versions.py`)

INVARIANTS
  S1  a scan has such a column only if the statement names it; other scans cost nothing.
  S2  nothing but an engine's scan gives them values: their ordinals are of no column of any table,
      and who looks rows up by the columns of a table leaves such scans to an engine.
"""

from typing import Final

from sql.plan.nodes import Plan, RelationId, Scan
from sql.plan.traverse import scans

CTID: Final = 1 << 20
XMIN: Final = CTID + 1
"""Ordinals beyond those of all columns (S2)."""

SCANNED_NAMES: Final = {CTID: "__ctid", XMIN: "__xmin"}
"""What the columns of an input are called."""


def is_system_column(ordinal: int) -> bool:
    """Whether an ordinal of a scan is of such a column."""
    return ordinal >= CTID


def scans_versions(scan: Scan) -> bool:
    """Whether a scan has such a column."""
    return any(map(is_system_column, scan.ordinals))


def relations_with_versions(plan: Plan) -> frozenset[RelationId]:
    """The relations of which the plan reads such columns."""
    return frozenset([scan.relation for scan in scans(plan) if scans_versions(scan)])


def scanned_name(ordinal: int) -> str:
    """What a column of an input is called in SQL for engines."""
    return SCANNED_NAMES[ordinal] if ordinal >= CTID else f"f{ordinal}"
