"""Checked-in lists: what an engine refuses where PostgreSQL answers, what differs on purpose.

    refused_<engine>.txt    area: statement on one line -- 0A000 NaN is not supported by numeric
    deviations.txt          # the reason
                            area: statement on one line

INVARIANTS
  K1  what is refused is listed, so that it is seen and counted; a statement that is on no list and
      refused fails the test. One that is listed and answered like PostgreSQL does not fail it: the
      lists shrink when somebody writes them again (`python -m tests.postgres.queries --refusals`).
  K2  what differs on purpose stands there with its reason, and does differ.
"""

from collections.abc import Iterable
from pathlib import Path

from tests.postgres.queries.answers import Failed
from tests.postgres.queries.comparing import Verdict
from tests.postgres.queries.running import Outcome
from tests.postgres.queries.statement_files import TESTDATA
from tests.postgres.queries.statement_files import areas as areas_in_files

_LISTS = TESTDATA / "lists"
_REASON = " -- "


def _path(engine: str) -> Path:
    return _LISTS / f"refused_{engine}.txt"


def deviating() -> frozenset[str]:
    """The keys of what differs on purpose."""
    lines = (_LISTS / "deviations.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def refused(engine: str) -> frozenset[str]:
    """The keys of what may be refused."""
    lines = _path(engine).read_text(encoding="utf-8").splitlines()
    return frozenset(line.rpartition(_REASON)[0] for line in lines)


def write(engine: str, outcomes: Iterable[Outcome], areas: Iterable[str]) -> None:
    """List anew what was refused in these areas; lines of other areas stay."""
    written = set(areas)
    path = _path(engine)
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = set(areas_in_files()) - written
    kept = {line for line in old if line.partition(":")[0] in known}
    fresh = {_line(outcome) for outcome in outcomes if outcome.verdict is Verdict.REFUSED}
    path.write_text("".join(f"{line}\n" for line in sorted(kept | fresh)), encoding="utf-8")


def _line(outcome: Outcome) -> str:
    error = next(answer for answer in outcome.found if isinstance(answer, Failed))
    return f"{outcome.key}{_REASON}{error.sqlstate} {' '.join(error.message.split())}"
