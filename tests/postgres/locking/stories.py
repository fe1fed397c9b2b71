"""Stories of several sessions: scripts in `testdata/*.txt`, PostgreSQL's answers in `*.out`.

    setup: SQL              before each story of the file, by nobody in it
    each: SQL               what each session says first
    == name of a story
    # differs: reason       Meridian answers otherwise, as `*.meridian` has it
    a: SQL                  session a says it; it answers, or waits
    a!: SQL                 it waits for time to pass, and answers
    a!!: SQL                the server ends the session afterwards
    a is cancelled
    a hangs up              what it says later is said by a new session

Lines that begin with a space belong to the line before. At the end of a story all sessions roll
back and unlock, one after the other.

INVARIANTS
  T1  a story depends on no other one.
  T2  a story that differs says why; one that does not differ any more must not say so.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.postgres.locking.sessions import Action, Sessions, Step

TESTDATA: Final = Path(__file__).parent / "testdata"

_STEP: Final = re.compile(r"(\w)(: | is cancelled$| hangs up$|!{1,2}: )(.*)", re.DOTALL)
_HEADING: Final = "== "
_DIFFERS: Final = "# differs: "
_ANSWER: Final = "    "
_END: Final = "at the end"


@dataclass(slots=True)
class Story:
    """A script. `differs`: why Meridian's answers are not PostgreSQL's."""

    name: str
    setup: Sequence[str]
    each: Sequence[str]
    steps: list[Step] = field(default_factory=list)
    differs: str | None = None


def groups() -> set[str]:
    """The names of the files."""
    return {path.stem for path in TESTDATA.glob("*.txt")}


def stories(group: str) -> list[Story]:
    """Those of a file."""
    setup: list[str] = []
    each: list[str] = []
    found: list[Story] = []
    for line in _joined((TESTDATA / f"{group}.txt").read_text().splitlines()):
        if line.startswith("setup: "):
            setup.append(line.removeprefix("setup: "))
        elif line.startswith("each: "):
            each.append(line.removeprefix("each: "))
        elif line.startswith(_HEADING):
            found.append(Story(line.removeprefix(_HEADING), setup, each))
        elif line.startswith(_DIFFERS):
            found[-1].differs = line.removeprefix(_DIFFERS)
        elif line.strip() and not line.startswith("#"):
            found[-1].steps.append(step_of(line))
    assert len({story.name for story in found}) == len(found), f"{group}: a name is there twice"
    return found


def _joined(lines: Iterable[str]) -> Iterator[str]:
    whole = ""
    for line in lines:
        if line.startswith(" "):
            whole += f"\n{line}"
        else:
            yield whole
            whole = line
    yield whole


def step_of(line: str) -> Step:
    """A line of a script."""
    found = _STEP.fullmatch(line)
    assert found is not None, f"no step: {line}"
    return Step(found[1], Action(found[2].removesuffix(" ")), found[3])


def play_all(dsn: str, group: str, *, is_postgresql: bool) -> dict[str, str]:
    """What happens in each story of a file, by name."""
    sessions = Sessions(dsn, is_postgresql=is_postgresql)
    try:
        return {story.name: _play(story, sessions) for story in stories(group)}
    finally:
        sessions.close()


def _play(story: Story, sessions: Sessions) -> str:
    sessions.begin(story.setup, story.each)
    told = [_HEADING + story.name]
    try:
        for step in story.steps:
            told += [str(step), *(f"{_ANSWER}{line}" for line in sessions.play(step))]
        if goes_on := sessions.end():
            told += [_END, *(f"{_ANSWER}{line}" for line in goes_on)]
    except AssertionError as error:
        raise AssertionError("\n".join([*told, f"failed: {error}"])) from error
    return "\n".join(told) + "\n"


def recorded(group: str, suffix: str) -> dict[str, str]:
    """What happened in each story, by name: `.out` has PostgreSQL's, `.meridian` what differs."""
    path = TESTDATA / f"{group}{suffix}"
    if not path.exists():
        return {}
    parts = path.read_text().removesuffix("\n").split("\n\n")
    return {part.partition("\n")[0].removeprefix(_HEADING): f"{part}\n" for part in parts}


def record(group: str, told: Mapping[str, str], suffix: str) -> None:
    """Write it down."""
    if told:
        (TESTDATA / f"{group}{suffix}").write_text("\n".join(told.values()))


def steps_of(told: str) -> list[str]:
    """The steps of a story as it was recorded."""
    lines = told.splitlines()[1:]
    return [line for line in lines if not line.startswith(_ANSWER) and line != _END]
