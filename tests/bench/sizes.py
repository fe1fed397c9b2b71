"""Parameters of a benchmark run, and its figures as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, float]
"""Figures by name: the rows of the report."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    seconds: int
    reads: int
    copy_rows: int
    commits: int
    tables: int
    keyed_rows: int = 1_000_000
    protocols: tuple[str, ...] = ("prepared", "simple")
    clients: tuple[int, ...] = (1, 8, 64)
