"""Remember answers by timestamp and key, and check that repeated reads agree (H1).

INVARIANTS
  H1  an answer at a timestamp never changes: asked again AS OF it, later and after restarts, it is
      the same, or 72000.
"""

from collections.abc import Sequence

from storage.types import Timestamp
from tests.resilience.history.events import Key, Operation, Read, ReadList, ReadSet
from tests.resilience.history.replay import Answer as JudgedAnswer
from tests.resilience.sim.rows import timeline_of
from tests.resilience.sim.world import World

Answer = tuple[tuple[int, int], ...] | None
"""Positions and values of a key; None: there is no such table."""

READS: dict[str, type[Read] | type[ReadSet] | type[ReadList]] = {
    **dict.fromkeys("gpqs", ReadSet),
    **dict.fromkeys("l", ReadList),
    **dict.fromkeys("abcdehr", Read),
}
"""What a table holds, by the first letter of its name."""


def read_of(key: Key, values: Sequence[int]) -> Operation:
    """An answer in the words of the judges."""
    kind = READS[key[0]]
    if kind is Read:
        return Read(key, values[-1] if values else None)
    return kind(key, tuple(values))


class Memory:
    """See the module (H1)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._answers: dict[tuple[Timestamp, Key], Answer] = {}
        self._asked: list[tuple[Timestamp, Key]] = []
        self._travels: set[tuple[Timestamp, Key]] = set()
        self._acknowledged: dict[str, Timestamp] = {}

    def keep(self, ts: Timestamp, key: Key, answer: Answer) -> None:
        """Remember, or compare with what was told before."""
        known = self._answers.setdefault((ts, key), answer)
        if known != answer:
            self._world.found("as-of", f"{key} AS OF {ts} was {known}, and now it is {answer}")

    def travelled(self, ts: Timestamp, key: Key) -> None:
        """This was an answer outside of the strict order, which no history has."""
        self._travels.add((ts, key))

    def answers(self) -> list[JudgedAnswer]:
        """The answers that no history has, for the judge who replays."""
        found: list[JudgedAnswer] = []
        for ts, key in sorted(self._travels):
            answer = self._answers[ts, key]
            if answer is not None and key[0] in READS:
                operation = read_of(key, [value for _, value in answer])
                found.append(JudgedAnswer(ts, operation, "AS OF"))
        return found

    def choose(self) -> tuple[Timestamp, Key] | None:
        """Something told before."""
        if len(self._asked) < len(self._answers):
            self._asked = list(self._answers)
        return self._world.random.choice(self._asked) if self._asked else None

    def neighbours(self, key: Key) -> list[Key]:
        """Known keys of the same timeline, the key itself among them."""
        line = timeline_of(key)
        return sorted({known for _, known in self._answers if timeline_of(known) == line})

    # --- what must be seen by now ------------------------------------------------------------

    def acknowledge(self, timeline: str, ts: Timestamp) -> None:
        """A server has called a commit done."""
        self._acknowledged[timeline] = max(ts, self.acknowledged(timeline))

    def acknowledged(self, timeline: str) -> Timestamp:
        """The newest commit that was called done."""
        return self._acknowledged.get(timeline, Timestamp(0))
