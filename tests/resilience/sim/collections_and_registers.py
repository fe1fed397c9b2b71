"""Random transactions over sets, lists and registers, several keys to a table.

`s*` sets (blind inserts), `l*` lists (rows with a position), `r*` registers (at most one row).
Long fork and read skew show in the sets, lost updates in lists and registers.
"""

from collections.abc import Sequence

from tests.resilience.history.events import (
    Add,
    Append,
    Key,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Write,
)
from tests.resilience.sim.rows import table_of
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one

READS = {"s": ReadSet, "r": Read, "l": ReadList}
WRITES = {"s": Add, "r": Write, "l": Append}


class Keys(Usual):
    """See the module."""

    def __init__(
        self, draw: Draw, keys: Sequence[Key], *, reads: float = 0.35, sizes: Sequence[int]
    ) -> None:
        super().__init__(draw)
        self._keys = keys
        self._reads = reads
        self._sizes = sizes
        self.tables = sorted({table_of(key) for key in keys})

    def plan(self) -> Plan:
        rng = self._draw.random
        if rng.random() < 0.1:
            return self.read_all()
        read_only = rng.random() < self._reads
        size = rng.choice(self._sizes)
        return one_by_one([self._operation(read=read_only) for _ in range(size)])

    def read_all(self) -> Plan:
        keys = list(self._keys)
        self._draw.random.shuffle(keys)
        return one_by_one([READS[key[0]](key) for key in keys])

    def _operation(self, *, read: bool) -> Operation:
        rng = self._draw.random
        key = rng.choice(self._keys)
        if read or rng.random() < 0.25:
            return READS[key[0]](key)
        return WRITES[key[0]](key, self._draw.values.next())


def mixed(draw: Draw) -> Keys:
    """All kinds, transactions over several tables."""
    keys = ("s0_1", "s0_2", "s1_1", "r0_1", "r0_2", "r1_1", "l0_1", "l0_2", "l1_1")
    return Keys(draw, keys, sizes=(1, 1, 2, 3))


def lists(draw: Draw) -> Keys:
    """Read, then write behind what was read."""
    return Keys(draw, ("l0_1", "l0_2", "l0_3", "l1_1"), sizes=(1, 2, 3, 4))


def sets(draw: Draw) -> Keys:
    """Blind inserts of one row, and reads of everything: long forks."""
    return Keys(draw, ("s0_1", "s0_2", "s1_1", "s2_1"), reads=0.5, sizes=(1,))


def registers(draw: Draw) -> Keys:
    """Delete and insert."""
    return Keys(draw, ("r0_1", "r0_2", "r1_1"), sizes=(1, 2, 2, 3))
