"""Deferred constraints of a transaction: the modes of SET CONSTRAINTS, and the pending checks.

    statement ─▶ violated now, and deferred? ─▶ Pending ─┬─ SET CONSTRAINTS .. IMMEDIATE ─▶ checked
                                                         └─ COMMIT ──────────────────▶ again

A check that is satisfied when its statement ends does not wait. A later statement that breaks the
constraint makes its own check.

INVARIANTS
  Q1  a pending check is repeated before the commit, whatever SET CONSTRAINTS has said since.
  Q2  ROLLBACK TO restores the modes and the pending checks of the savepoint. These include checks
      that have been repeated and found satisfied since: what satisfied them may be undone.

Not here: the checks (`deferred_constraints.py`).
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias

import pyarrow as pa

from sql.catalog.catalog import ForeignKey, Key
from storage.fast_dataclass import fast_dataclass


class PendingCheckKind(Enum):
    """The kind of a pending check: a unique key, child rows that may lack their parent, or parent
    keys that may be missing and referred to.
    """

    KEY = auto()
    CHILD = auto()
    PARENT = auto()


@fast_dataclass(frozen=True, slots=True)
class PendingCheck:
    """A pending check. `table`: the oid of the table whose rows were changed; `owner`: of the one
    that has the constraint. `rows`: the key columns of these rows, as `table` stores them; None: no
    row violates the constraint, but PostgreSQL has a pending check.
    """

    side: PendingCheckKind
    table: int
    owner: int
    constraint: Key | ForeignKey
    rows: pa.Table | None = None


_Named: TypeAlias = Mapping[tuple[int, str], bool]


@fast_dataclass(frozen=True, slots=True)
class DeferralMark:
    """The state at a savepoint (Q2)."""

    pending: int
    settled: frozenset[int]
    every: bool | None
    named: _Named


class Deferral:
    """See the module. One for a session's transaction."""

    def __init__(self) -> None:
        self._pending: list[PendingCheck] = []
        self._settled: frozenset[int] = frozenset()
        self._idle: set[tuple[PendingCheckKind, int, int, str]] = set()
        self._every: bool | None = None
        self._named: _Named = {}

    def set(self, named: Sequence[tuple[int, str]] | None, *, deferred: bool) -> None:
        """SET CONSTRAINTS; `named` by the oid of the table; None: ALL."""
        if named is None:
            self._every, self._named = deferred, {}
        else:
            self._named = {**self._named, **dict.fromkeys(named, deferred)}

    def defers(self, owner: int, constraint: Key | ForeignKey) -> bool:
        """Whether the check of this constraint of that table waits for the commit now."""
        if not constraint.deferrable:
            return False
        unnamed = constraint.deferred if self._every is None else self._every
        return self._named.get((owner, constraint.name), unnamed)

    def add(self, pending: PendingCheck) -> None:
        """Add a pending check."""
        if pending.rows is None:
            name = (pending.side, pending.table, pending.owner, pending.constraint.name)
            if name in self._idle:
                return
            self._idle.add(name)
        self._pending.append(pending)

    @property
    def waiting(self) -> Sequence[PendingCheck]:
        """The pending checks that have not been repeated."""
        return [one for at, one in enumerate(self._pending) if at not in self._settled]

    @property
    def due(self) -> Sequence[PendingCheck]:
        """The pending checks of constraints that are not deferred any more."""
        return [one for one in self.waiting if not self.defers(one.owner, one.constraint)]

    def is_waiting_on(self, table: int) -> bool:
        """Whether a check of a table's changed rows is pending."""
        return any(one.table == table for one in self.waiting)

    def settle(self, done: Sequence[PendingCheck]) -> None:
        """These pending checks have been repeated."""
        found = {id(one) for one in done}
        places = [at for at, one in enumerate(self._pending) if id(one) in found]
        self._settled = self._settled.union(places)
        self._idle.clear()

    def mark(self) -> DeferralMark:
        """The present state, for a savepoint."""
        return DeferralMark(len(self._pending), self._settled, self._every, self._named)

    def rewind(self, mark: DeferralMark) -> None:
        """Back to a savepoint (Q2)."""
        del self._pending[mark.pending :]
        self._settled, self._every, self._named = mark.settled, mark.every, mark.named
        self._idle.clear()

    def forget(self) -> None:
        """The transaction is over."""
        self.rewind(DeferralMark(0, frozenset(), None, {}))
