"""Remember the calls of a statement that take or give back locks of its session.

    first try: lock 1, unlock 2 ─▶ begins again ─▶ lock 1: known ─▶ done ─▶ what no try called again

INVARIANTS
  B1  what a statement has called is not called again when it begins again by itself: it gets the
      answer that it got before. Locks of a transaction need none of this: they end with it.
  B2  a lock that only an earlier try has taken is given back when the statement is done. (One that
      it has given back stays free: others may hold it by now.)
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.core.locking.modes import AdvisoryTag, LockMode


@dataclass(frozen=True, slots=True)
class LockCall:
    """A call of one of the functions."""

    name: str
    tag: AdvisoryTag
    mode: LockMode


class LockCalls:
    """Those of one statement after the other (B1)."""

    def __init__(self) -> None:
        self._made: list[tuple[LockCall, bool]] = []
        self._earlier: defaultdict[LockCall, list[bool]] = defaultdict(list)

    def begin(self) -> None:
        """Another statement."""
        self._made.clear()
        self._earlier.clear()

    def begin_again(self) -> None:
        """The same one, from the start."""
        # In the order of the calls: the first answer is that of the first call.
        calls, self._made = self._made, []
        left, self._earlier = self._earlier, defaultdict(list)
        for call, done in calls:
            self._earlier[call].append(done)
        for call, answers in left.items():
            self._earlier[call] += answers

    def answered(self, call: LockCall) -> bool | None:
        """What an earlier try was answered: whether it has got, or given back. None: not called."""
        answers = self._earlier.get(call)
        if not answers:
            return None
        done = answers.pop(0)
        self._made.append((call, done))
        return done

    def made(self, call: LockCall, *, done: bool) -> None:
        """A call was made."""
        self._made.append((call, done))

    def left(self) -> Sequence[LockCall]:
        """Calls that took a lock, and that the last try has not made (B2); known only once."""
        earlier, self._earlier = self._earlier, defaultdict(list)
        return [
            call
            for call, answers in earlier.items()
            if "unlock" not in call.name
            for done in answers
            if done
        ]
