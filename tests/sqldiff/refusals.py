"""The statements that an engine refuses, where PostgreSQL answers: a checked-in list per engine.

    area: statement on one line -- 0A000 window functions are not supported

INVARIANTS
  K1  what is refused is listed, so that it is seen and counted; a statement that is on no list and
      refused fails the test. One that is listed and answered like PostgreSQL does not fail it: the
      lists shrink when somebody writes them again (`python -m tests.sqldiff --refusals`).
"""

from collections.abc import Iterable
from pathlib import Path

from tests.sqldiff.answers import Failed
from tests.sqldiff.comparing import Verdict
from tests.sqldiff.running import Outcome
from tests.sqldiff.statement_files import TESTDATA
from tests.sqldiff.statement_files import areas as areas_in_files

_REASON = " -- "


def _path(engine: str) -> Path:
    return TESTDATA / "refused" / f"{engine}.txt"


def listed(engine: str) -> frozenset[str]:
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
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in sorted(kept | fresh)), encoding="utf-8")


def _line(outcome: Outcome) -> str:
    error = next(answer for answer in outcome.found if isinstance(answer, Failed))
    return f"{outcome.key}{_REASON}{error.sqlstate} {' '.join(error.message.split())}"
