"""Statement files: one session each, statement by statement, with PostgreSQL's answers.

    # why this matters
    select 1 + 1               what is sent, as one simple Query; no empty line in it
    ----
    [?column? int4]            what PostgreSQL 18 answered (`answers.py`)
    |2|
    SELECT 1

INVARIANTS
  F1  a file is one session on a new, empty database: its statements run in order, and what a
      statement changes (tables, settings, transactions) holds for those after it.
  F2  rewriting changes only what stands between `----` and the empty line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.postgres.queries.answers import Answer, read, show

TESTDATA = Path(__file__).parent / "testdata"
_RULE = "----"


@dataclass(frozen=True, slots=True)
class Case:
    """A statement, the number of its line, and what PostgreSQL answered."""

    text: str
    line: int
    expected: tuple[Answer, ...]


def areas() -> list[str]:
    """The names of all files."""
    return sorted(path.stem for path in TESTDATA.glob("*.txt"))


def path_of(area: str) -> Path:
    """The file of an area."""
    return TESTDATA / f"{area}.txt"


def cases(area: str) -> list[Case]:
    """All statements of an area's file."""
    return cases_of(path_of(area))


def cases_of(path: Path) -> list[Case]:
    """All statements of a file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [
        Case("\n".join(lines[first:rule]), first + 1, read(lines[rule + 1 : end]))
        for first, rule, end in _blocks(lines)
    ]


def told_in(area: str) -> dict[str, str]:
    """For every statement of a file, its block with the answer, as it stands there."""
    lines = path_of(area).read_text(encoding="utf-8").rstrip("\n").split("\n")
    return {
        "\n".join(lines[first:rule]): "\n".join(lines[first:end])
        for first, rule, end in _blocks(lines)
    }


def rewrite(path: Path, answering: Callable[[str], tuple[Answer, ...]]) -> None:
    """Put fresh answers into a file (F2)."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    told: list[str] = []
    written = 0
    for first, rule, end in _blocks(lines):
        told += lines[written:rule]
        told += [_RULE, show(answering("\n".join(lines[first:rule])))]
        written = end
    path.write_text("\n".join([*told, *lines[written:]]) + "\n", encoding="utf-8")


def _blocks(lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Index of the first line of each statement, of its rule, of the end of its answer.

    A statement that was just written needs no rule: it ends at the empty line.
    """
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            at += 1
            continue
        end = rule = at
        while end < len(lines) and lines[end]:
            if lines[end] == _RULE and rule == at:
                rule = end
            end += 1
        yield at, rule if rule > at else end, end
        at = end
