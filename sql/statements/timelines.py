"""Bound statements about timelines and read holds."""

from dataclasses import dataclass

from sql.catalog.catalog import Timeline
from sql.plan.nodes import Expr


@dataclass(frozen=True, slots=True)
class CreateTimeline:
    """`exists`: IF NOT EXISTS found one; notice only."""

    timeline: Timeline
    exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTimeline:
    """`missing`: names that IF EXISTS did not find, for the notices."""

    names: tuple[str, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdvanceTimeline:
    """ADVANCE TIMELINE .. TO an int8: part of the transaction's commit, like a write."""

    name: str
    to: Expr


@dataclass(frozen=True, slots=True)
class CreateReadHold:
    """`at` None: the transaction's timestamp. Else int8 or timestamptz."""

    name: str
    timeline: str
    at: Expr | None = None


@dataclass(frozen=True, slots=True)
class AdvanceReadHold:
    """`to`: int8 or timestamptz, not before where the hold is."""

    name: str
    to: Expr


@dataclass(frozen=True, slots=True)
class DropReadHold:
    """`missing`: names that IF EXISTS did not find, for the notices."""

    names: tuple[str, ...]
    missing: tuple[str, ...] = ()
