"""Play a schedule on two servers, step by step, and make it small where they differ.

    step ─▶ PostgreSQL ─▶ ┐
         └▶ Meridian ───▶ ┴▶ equal? ─▶ next .. ─▶ all end ─▶ rows of the tables, equal?
                              └▶ no: again, without some of the steps, as long as it differs

INVARIANTS
  L1  a difference is one only if PostgreSQL answers the same steps in the same way again.
  L2  made smaller, it is the same difference: the last step and its answers are the same, but for
      numbers. Otherwise it would slide to one that `schedules.py` avoids.
  L3  after a failure both servers get new sessions; nothing of one play is left to the next one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.postgres.locking.schedules import EACH, SETUP, Schedule
from tests.postgres.locking.sessions import Action, Sessions, Step

PLAYS_MAX: Final = 300
"""Of making one schedule smaller."""

STEP_SECONDS_MAX: Final = 40
"""What takes so long counts as hanging."""

SHRINKING_SECONDS_MAX: Final = 5
"""The same while a schedule is made smaller: something was seen to differ before."""

FAILED: Final = "failed:"

_TABLES: Final = ("SELECT * FROM t ORDER BY id", "SELECT * FROM u ORDER BY id, v")


@dataclass(slots=True)
class Played:
    """What happened; the last step is the first one that was answered differently."""

    steps: list[Step] = field(default_factory=list[Step])
    theirs: list[list[str]] = field(default_factory=list[list[str]])
    ours: list[list[str]] = field(default_factory=list[list[str]])

    @property
    def differs(self) -> bool:
        """Whether the servers have not answered the same."""
        return self.theirs != self.ours

    @property
    def last(self) -> str:
        """The last step and its answers, without numbers."""
        step = self.steps[-1] if len(self.steps) == len(self.theirs) else None
        return re.sub(r"\d+", "0", f"{step}: {self.theirs[-1]} {self.ours[-1]}")

    def add(self, step: Step | None, theirs: list[str], ours: list[str]) -> None:
        """The answers to a step; None: to the end of it all."""
        if step is not None:
            self.steps.append(step)
        self.theirs.append(theirs)
        self.ours.append(ours)

    def shown(self) -> str:
        """For the reader: a story, and Meridian's answers where they differ."""
        lines: list[str] = []
        steps = [*map(str, self.steps), "at the end"]
        for step, theirs, ours in zip(steps, self.theirs, self.ours, strict=False):
            lines += [step, *(f"    {line}" for line in theirs)]
            if ours != theirs:
                lines += ["--- Meridian:", *(f"    {line}" for line in ours)]
        return "\n".join(lines) + "\n"


class Lockstep:
    """Two servers, by their DSN."""

    def __init__(self, theirs: str, ours: str) -> None:
        self._dsns = theirs, ours
        self._seconds_max = STEP_SECONDS_MAX
        self._sessions: tuple[Sessions, Sessions] | None = None

    def close(self) -> None:
        """Hang up on both."""
        if self._sessions is not None:
            for sessions in self._sessions:
                sessions.close()
            self._sessions = None

    def draw(self, seed: int, subject: str, without: str | None = None) -> Played:
        """Play a schedule as it is drawn; `without`: statements in which this is found."""
        schedule = Schedule(seed, subject, without)
        theirs, _ = self._both()
        return self._play(schedule.next(theirs) for _ in range(schedule.steps))

    def replay(self, steps: Sequence[Step]) -> Played:
        """Play steps; those that cannot be done now are left out."""
        theirs, _ = self._both()

        def possible() -> Iterator[Step]:
            for step in steps:
                waits = theirs.waits(step.session)
                if step.action is Action.HANG_UP or waits == (step.action is Action.CANCEL):
                    yield step

        return self._play(possible())

    def smallest(self, played: Played, when: Callable[[str], None] = lambda _: None) -> Played:
        """The same difference with as few steps as can be (L2)."""
        self._seconds_max = SHRINKING_SECONDS_MAX
        plays, size = 0, len(played.steps)
        while size:
            before = len(played.steps)
            for start in reversed(range(0, before, size)):
                less = played.steps[:start] + played.steps[start + size :]
                if len(less) == len(played.steps) or plays >= PLAYS_MAX:
                    continue
                plays += 1
                found = self.replay(less)
                if found.differs and found.last == played.last:
                    played = found
            when(f"{len(played.steps)} steps after {plays} plays")
            size = size // 2 if len(played.steps) == before else min(size, len(played.steps))
        self._seconds_max = STEP_SECONDS_MAX
        return played

    def is_certain(self, played: Played) -> bool:
        """Whether PostgreSQL answers the same again, and Meridian something else (L1)."""
        again = [self.replay(played.steps) for _ in range(2)]
        return all(one.differs and one.theirs == played.theirs for one in again)

    def _both(self) -> tuple[Sessions, Sessions]:
        if self._sessions is None:
            theirs, ours = self._dsns
            self._sessions = (
                Sessions(theirs, is_postgresql=True),
                Sessions(ours, is_postgresql=False),
            )
        for sessions in self._sessions:
            sessions.seconds_max = self._seconds_max
            sessions.begin(SETUP, EACH)
        return self._sessions

    def _play(self, steps: Iterable[Step]) -> Played:
        assert self._sessions is not None, "the stage is set"
        played = Played()
        for step in steps:
            played.add(
                step, *(_tried(sessions, partial(_play, step)) for sessions in self._sessions)
            )
            if played.differs:
                break
        else:
            played.add(None, *(_tried(sessions, _end) for sessions in self._sessions))
        if played.differs or FAILED in str(played.theirs[-1:]):
            self.close()
        return played


def _end(sessions: Sessions) -> list[str]:
    return [*sessions.end(), *(row for text in _TABLES for row in sessions.ask(text))]


def _play(step: Step, sessions: Sessions) -> list[str]:
    return sessions.play(step)


def _tried(sessions: Sessions, play: Callable[[Sessions], list[str]]) -> list[str]:
    try:
        return play(sessions)
    except AssertionError as error:
        return [f"{FAILED} {error}"]
