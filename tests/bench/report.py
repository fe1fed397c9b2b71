"""The report: a row per figure, Meridian beside PostgreSQL, the goal where there is one."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.sizes import Figures

# From the design, section 14, and the issues: at least so many, or at most so long.
GOALS = {
    "INSERT of one row, prepared, 64 clients: commits/s": ">= 3000",
    "INSERT of one row, prepared, 1 clients: p50 ms": "<= 3",
    "SELECT, aggregate of 1,000 rows: p50 ms": "<= 40",
    "SELECT, one of 1,000 rows: p50 ms": "<= 40",
    "INSERT then SELECT of it: p50 ms": "<= 60",
    "COPY of 6 columns: rows/s": ">= 200000",
    "server memory at its peak: MiB": "<= 1024",
    "server memory at its peak, bulk: MiB": "<= 2048",
    "UPDATE by key, large table: p50 ms": "<= 30",
    "INSERT, large keyed table, 16 clients: commits/s": ">= 500",
    "kill -9 under load to the first strict answer: ms": "<= 2000",
    "start, no table: CPU ms": "<= 700",
    "start, 5000 tables: CPU ms": "<= 1000",
    "start, no table: memory when idle, MiB": "<= 160",
}


def medians(rounds: Sequence[Figures]) -> dict[str, float]:
    """The median of each figure over the rounds that have it."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    return {name: statistics.median(f[name] for f in rounds if name in f) for name in names}


def format_report(ours: Figures, theirs: Figures) -> str:
    """The table; the ratio says how many times PostgreSQL's figure ours is."""
    rows = [("", "Meridian", "PostgreSQL", "ratio", "goal", "")]
    for name, value in ours.items():
        peer = theirs.get(name)
        ratio = "" if not peer else f"{value / peer:.2f}"
        goal = GOALS.get(name, "")
        met = "" if not goal else ("reached" if is_met(value, goal) else "MISSED")
        rows.append((name, _number(value), "" if peer is None else _number(peer), ratio, goal, met))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 4, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def is_met(value: float, goal: str) -> bool:
    """Whether a figure reaches its goal."""
    direction, bound = goal.split()
    return value >= float(bound) if direction == ">=" else value <= float(bound)


def save(directory: Path, results: Mapping[str, object]) -> Path:
    """Write the results beside the earlier ones."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{len(list(directory.glob('*.json'))):04}.json"
    path.write_text(json.dumps(results, indent=2))
    return path


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
