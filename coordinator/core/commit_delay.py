"""When a group is gathered: at once, or once those are there who commit at the same time.

    commit asked ─┬─ alone of late ───────▶ gathered at once
                  └─ others commit, too ──▶ DelayGather ─▶ GatherDue ─┬─ enough have come ─▶
                                                 ▲                    └─ few are back of those
                                                 └─ until somebody comes ─ who were answered

A group costs as much as six of its members. Sessions that commit again and again would come in two
groups by turns, of which one is small: it is made while the others hear of theirs. PostgreSQL's
`commit_delay` and `commit_siblings` (its manual, 28.5) do the same for a sync; here nobody sleeps
where the loop has something to do.

INVARIANTS
  P1  who commits alone waits for nothing.
  P2  a wait ends (`driver/gather_delay.py`): with the first turn of the loop that brings no
      message, and in any case with the turn in which WAIT_S are over.
  P3  if somebody was waited for in vain, nobody is for a while: clients that think between their
      commits do not come back at once.
"""

from typing import Final

from storage.types import Timestamp

CROWDED_GROUPS: Final = 16
"""So many groups after one of several sessions, others are expected. Larger: who is alone again
pays longer for a turn of the loop at each commit. Smaller: small groups, where many commit in
blocks."""

BACK_MIN: Final = 3
"""Sessions about to commit that make somebody wait for the rest. Larger: smaller groups of few
clients. Smaller: a commit more often waits for who does not come."""

IN_VAIN_GROUPS: Final = 32
"""For so many groups nobody is waited for after P3. Larger: smaller groups after a pause of one
client. Smaller: commits of clients that think wait more often."""

RECENT_US: Final = 2_000
"""Who is not back so long after he was answered is waited for no more."""


class CommitDelay:
    """See the module."""

    def __init__(self, *, waits: bool = True) -> None:
        self._waits = waits
        self._expected = 0
        """For so many groups others are expected."""
        self._committing = 0
        """Sessions that were about to commit when the last group landed, or that it answered."""
        self._landed_at = Timestamp(0)
        self._in_vain = 0
        """For so many groups nobody is waited for (P3)."""
        self.is_waiting = False
        """Whether DelayGather has not ended yet."""

    @property
    def expects_siblings(self) -> bool:
        """Whether the next group waits for others."""
        return self._waits and self._expected > 0

    def are_few(self, waiting: int, now: Timestamp) -> bool:
        """Whether many who were about to commit are not back yet, and may be so soon."""
        if self._in_vain or now - self._landed_at > RECENT_US:
            return False
        return self._committing >= BACK_MIN and 4 * waiting < 3 * self._committing

    def landed(self, committing: int, now: Timestamp) -> None:
        """A group landed; `committing`: its sessions, and those that wait."""
        self._committing, self._landed_at = committing, now

    def nobody_came(self) -> None:
        """Somebody was waited for, until it was late."""
        self._in_vain = IN_VAIN_GROUPS

    def gathered(self, sessions: int) -> None:
        """A group was gathered of the commits of so many."""
        if self._in_vain:
            self._in_vain -= 1
        if sessions > 1:
            self._expected = CROWDED_GROUPS
        elif self._expected:
            self._expected -= 1
