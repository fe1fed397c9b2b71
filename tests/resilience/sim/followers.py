"""Subscribers, who are killed, resume elsewhere, and fold what they are told (`follower.py`).

    write    add to sets, replace registers, append to lists, of two timelines
    follow   a client that follows nothing begins, or goes on where it has stopped

INVARIANTS
  L1  the fold of a follower at each of its progresses is the history up to there, whatever has
      happened to its servers and to itself.
"""

from collections.abc import Sequence

from tests.resilience.history.events import Key, Operation
from tests.resilience.sim.collections_and_registers import READS, WRITES
from tests.resilience.sim.follower import Follower
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

KEYS: Sequence[Key] = ("s0_1", "r0_1", "r0_2", "l0_1", "sm0_1", "rm0_1")
TABLES = ("s0", "r0", "l0", "sm0", "rm0")
FOLLOWERS_MAX = 6


class Followers(Usual):
    """See the module."""

    tables = TABLES

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._followers: list[Follower] = []

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(12):
            case 0:
                return self.read_all()
            case 1 | 2 | 3 | 4:
                return self._follow()
            case _:
                line = rng.choice(("0", "0", "m"))
                keys = [key for key in KEYS if key[1] == line]
                return one_by_one([self._operation(keys) for _ in range(rng.choice((1, 1, 2, 3)))])

    def first(self) -> Sequence[Plan]:
        """Somebody follows from the beginning."""
        return (self._follow(), self._follow())

    def read_all(self) -> Plan:
        return one_by_one([READS[key[0]](key) for key in KEYS if key[1] == "0"])

    def _operation(self, keys: Sequence[Key]) -> Operation:
        key = self._draw.random.choice(keys)
        if self._draw.random.random() < 0.2:
            return READS[key[0]](key)
        return WRITES[key[0]](key, self._draw.values.next())

    def _follow(self) -> Plan:
        rng = self._draw.random
        read = READS["r"]("r0_1")
        name = rng.choice(TABLES)
        owner = self._draw.values.process()

        async def body(session: Session) -> tuple[Operation, ...]:
            free = [follower for follower in self._followers if follower.is_free]
            if len(self._followers) < FOLLOWERS_MAX and (not free or rng.random() < 0.3):
                only = rng.choice((None, None, 1, 2))
                keys = [f"{name}_{number}" for number in (1, 2)]
                free = [Follower(session.world, session.memory, name, keys, only)]
                self._followers += free
            if free:
                rng.choice(free).start(session.server, owner)
            return (await perform(session, read),)

        return Plan((read,), body)
