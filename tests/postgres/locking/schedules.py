"""Random schedules: each step is drawn from what the sessions are doing at that moment.

    seed ─▶ subject, tables ─▶ status of each session ─▶ a step of one that does not wait ─▶ ..

INVARIANTS
  R1  the same seed gives the same steps, as long as the sessions answer the same.
  R2  a statement of a session that waits is never drawn; it may be cancelled, or hang up.
  R3  PostgreSQL answers in one way only: no two sessions race for a lock when one step lets both go
      on. While a statement that takes several locks waits, nobody begins to wait for the like; and
      where changes are committed, only one session waits for a row (the others would run after its
      new version, and meet there in any order).
  R4  no difference that `docs/reference/consistency.md` lists can be met:

      - readers do not wait for ACCESS EXCLUSIVE: every query locks its rows, LOCK TABLE never asks
        for ACCESS SHARE;
      - rows that newly match after a wait are seen: conditions are about keys that never change and
        about `v`, which only grows out of them;
      - keys, names and foreign keys do not wait: new keys are given once, nothing is dropped;
      - a single statement that changes nothing waits for no table lock: beside table locks each
        UPDATE finds its row, and a table is truncated that has rows;
      - a single statement that waits for a row holds no table lock meanwhile: beside table locks,
        rows that are changed so are locked by nobody;
      - FOR KEY SHARE that has waited shows the row as PostgreSQL's statement has found it, and
        waits for who has changed a row twice, also with SKIP LOCKED: it shows the key only, and
        has no wait policy. In a table without a key it protects nothing: it is not asked for;
      - above READ COMMITTED a statement that has waited may go on where PostgreSQL says 40001, and
        snapshots may be newer: where a block is above READ COMMITTED, whatever changes rows in that
        schedule is rolled back;
      - FOR SHARE waits behind a waiting FOR UPDATE, and so does what else fits the holders (but for
        FOR KEY SHARE): modes that share a row are asked for while nobody waits for a row;
      - PostgreSQL's waiters for rows of a released savepoint wait until the whole transaction ends:
        savepoints outside of a released one are not rolled back to;
      - a row that does not match any more after a wait stays locked in PostgreSQL; without a key it
        is another row here: conditions about values are for the table with a key;
      - several rows are locked in the order of their keys, or of their places in a table without a
        key: queries ask in the order of the key;
      - no portals; a victim of a deadlock is whoever closes the circle, as long as waits begin one
        by one (R3).
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol

from psycopg.pq import TransactionStatus

from tests.postgres.locking.sessions import Action, Step

SUBJECTS: Final = ("advisory", "rows", "tables", "mixed")

SETUP: Final = (
    "DROP TABLE IF EXISTS t, u, w",
    "CREATE TABLE t (id int PRIMARY KEY, v int)",
    "CREATE TABLE u (id int, v int)",
    "CREATE TABLE w (id int, v int)",
    "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)",
    "INSERT INTO u VALUES (1, 0), (2, 0), (3, 0)",
    "INSERT INTO w VALUES (1, 0)",
)
EACH: Final = ("SET default_transaction_isolation = 'read committed'",)

_KEYS: Final = ("1", "1", "1", "2", "2", "2", "3", "1, 2")
_TABLE_MODES: Final = (
    "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE", "ACCESS EXCLUSIVE",
)  # fmt: skip
_LEVELS: Final = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


class Observed(Protocol):
    """What a schedule is drawn from: `Sessions`."""

    def waits(self, name: str) -> bool: ...

    def status(self, name: str) -> TransactionStatus: ...


class Kind(Enum):
    """What a statement may wait for."""

    NOTHING = auto()
    ADVISORY = auto()
    SEVERAL_ADVISORY = auto()
    TABLE = auto()
    ROW = auto()
    ROWS = auto()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A statement. `row`: what it may wait for. `shares`: its mode is one that others may hold
    beside it.
    """

    text: str
    kind: Kind
    row: str | None = None
    changes: bool = False
    shares: bool = False


NOTHING: Final = Drawn("", Kind.NOTHING)


@dataclass(slots=True)
class _Block:
    """What is known about a session."""

    savepoints: list[str] = field(default_factory=list[str])
    fixed: int = 0
    """So many of the savepoints are not rolled back to any more (R4)."""
    changed: bool = False
    last: Drawn = NOTHING


class Schedule:
    """See the module. `without`: no statement has this regular expression in it."""

    def __init__(self, seed: int, subject: str, without: str | None = None) -> None:
        self._without = None if without is None else re.compile(without)
        self._random = random.Random(f"{subject} {seed}")
        self._subject = subject
        self._names = "abcd"[: self._random.choice((2, 3, 3, 4, 4))]
        self._blocks = {name: _Block() for name in self._names}
        self._numbers = iter(range(100, 1_000_000))
        self.steps = self._random.randint(12, 45)
        self._commits = subject == "tables" or self._random.random() < 0.7
        """Whether changes are ever committed; then all is READ COMMITTED (R4)."""
        self._truncated = False
        self._shares = self._random.random() < 0.5
        self._makers = self._of_subject()

    def next(self, observed: Observed) -> Step:
        """The next step (R1, R2)."""
        waiting = [name for name in self._names if observed.waits(name)]
        chance = self._random.random()
        if chance < 0.01:
            name = self._random.choice(self._names)
            self._blocks[name] = _Block()
            return Step(name, Action.HANG_UP)
        if chance < 0.04 and waiting:
            return Step(self._random.choice(waiting), Action.CANCEL)
        pending = [self._blocks[name].last for name in waiting]
        while True:
            name = self._random.choice([name for name in self._names if name not in waiting])
            drawn = self._draw(name, observed.status(name), somebody_waits=bool(waiting))
            if self._may(drawn, pending):
                block = self._blocks[name]
                block.last, block.changed = drawn, block.changed or drawn.changes
                self._truncated = self._truncated or drawn.text.startswith("TRUNCATE")
                return Step(name, Action.SAY, drawn.text)

    def _may(self, drawn: Drawn, pending: Sequence[Drawn]) -> bool:
        """R3, R4."""
        if self._without is not None and self._without.search(drawn.text):
            return False
        rows = {Kind.ROW, Kind.ROWS}
        waiting = {other.kind for other in pending}
        if self._commits and drawn.row and any(other.row == drawn.row for other in pending):
            return False
        if drawn.shares and waiting & rows:
            return False
        if drawn.kind is Kind.SEVERAL_ADVISORY:
            return Kind.SEVERAL_ADVISORY not in waiting
        if drawn.kind is Kind.ROWS:
            return not waiting & (rows | {Kind.TABLE})
        if drawn.kind is Kind.ROW:
            # Beside table locks it takes two.
            return not waiting & (rows if self._subject == "tables" else {Kind.ROWS})
        return True

    # --- blocks --------------------------------------------------------------------------------

    def _draw(self, name: str, status: TransactionStatus, *, somebody_waits: bool) -> Drawn:
        block, chance = self._blocks[name], self._random.random()
        if status == TransactionStatus.IDLE:
            self._blocks[name] = block = _Block()
            if chance < (0.4 if self._subject == "advisory" else 0.7):
                return _control(self._begin())
        elif status == TransactionStatus.INERROR:
            return self._after_error(block)
        elif chance < 0.15 and somebody_waits:
            return self._end(block)
        elif chance < 0.3:
            return self._in_block(block)
        drawn = self._statement()
        while not self._has_its_place(drawn, alone=status == TransactionStatus.IDLE):
            drawn = self._statement()
        return drawn

    def _has_its_place(self, drawn: Drawn, *, alone: bool) -> bool:
        """Whether it may be said in a block, or alone (R4)."""
        words = drawn.text.split()
        if self._subject == "tables" and words[0] == "UPDATE":
            return (words[1] == "u") == alone
        if not alone:
            return True
        if words[0] == "TRUNCATE":
            return not self._truncated
        return words[0] != "LOCK" and (self._commits or not drawn.changes)

    def _begin(self) -> str:
        if self._commits and self._subject != "advisory":
            return "BEGIN"
        return f"BEGIN ISOLATION LEVEL {self._random.choice(_LEVELS)}"

    def _after_error(self, block: _Block) -> Drawn:
        if block.savepoints[block.fixed :] and self._random.random() < 0.6:
            return self._rollback_to(block)
        return _control(self._random.choice(("ROLLBACK", "ROLLBACK", "COMMIT")))

    def _in_block(self, block: _Block) -> Drawn:
        chance = self._random.random()
        if chance < 0.35 and len(block.savepoints) < 3:
            block.savepoints.append(f"s{len(block.savepoints) + 1}")
            return _control(f"SAVEPOINT {block.savepoints[-1]}")
        if chance < 0.6 and block.savepoints[block.fixed :]:
            return self._rollback_to(block)
        if chance < 0.75 and block.savepoints:
            name = self._random.choice(block.savepoints)
            del block.savepoints[block.savepoints.index(name) :]
            if self._subject != "advisory":
                block.fixed = len(block.savepoints)
            return _control(f"RELEASE {name}")
        return self._end(block)

    def _end(self, block: _Block) -> Drawn:
        must_roll_back = block.changed and not self._commits
        rolls_back = must_roll_back or self._random.random() < 0.25
        return _control("ROLLBACK" if rolls_back else "COMMIT")

    def _rollback_to(self, block: _Block) -> Drawn:
        name = self._random.choice(block.savepoints[block.fixed :])
        del block.savepoints[block.savepoints.index(name) + 1 :]
        return _control(f"ROLLBACK TO {name}")

    # --- statements ----------------------------------------------------------------------------

    def _of_subject(self) -> Sequence[tuple[Callable[[], Drawn], int]]:
        advisory = [(self._advisory, 8), (self._unlock, 3), (self._several_advisory, 1)]
        rows = [(self._select_row, 6), (self._update, 5), (self._delete, 1), (self._insert, 1),
                (self._select_rows, 2), (self._job, 2)]  # fmt: skip
        match self._subject:
            case "advisory":
                return advisory
            case "rows":
                return rows
            case "tables":
                return [(self._lock_table, 6), (self._select_row, 2), (self._update, 3),
                        (self._insert, 2), (self._define, 2)]  # fmt: skip
            case _:
                return [*rows, *advisory]

    def _statement(self) -> Drawn:
        makers = [maker for maker, _ in self._makers]
        (maker,) = self._random.choices(makers, [weight for _, weight in self._makers])
        return maker()

    def _advisory(self) -> Drawn:
        parts = [self._random.choice(words) for words in (("", "", "", "try_"), ("", "xact_"))]
        shared = self._random.choice(("", "", "_shared"))
        call = f"pg_{parts[0]}advisory_{parts[1]}lock{shared}({self._random.choice(_KEYS)})"
        return Drawn(f"SELECT {call}", Kind.NOTHING if parts[0] else Kind.ADVISORY)

    def _several_advisory(self) -> Drawn:
        keys = self._random.sample(("1", "2", "3"), 2)
        scope = self._random.choice(("", "xact_"))
        calls = ", ".join(f"pg_advisory_{scope}lock({key})" for key in keys)
        return Drawn(f"SELECT {calls}", Kind.SEVERAL_ADVISORY)

    def _unlock(self) -> Drawn:
        if self._random.random() < 0.3:
            return _control("SELECT pg_advisory_unlock_all()")
        shared = self._random.choice(("", "", "_shared"))
        return _control(f"SELECT pg_advisory_unlock{shared}({self._random.choice(_KEYS)})")

    def _mode(self) -> str:
        modes = ["UPDATE", "NO KEY UPDATE", *(("SHARE", "KEY SHARE") if self._shares else ())]
        return self._random.choice(modes)

    def _is_shared(self, mode: str) -> bool:
        """Whether it fits some mode of another holder, for whom somebody may wait (R4)."""
        return self._shares and mode != "UPDATE"

    def _shown_and_wait(self, mode: str) -> tuple[str, str]:
        if mode == "KEY SHARE":
            return "id", ""
        return "id, v", self._random.choice(("", "", "", " NOWAIT", " SKIP LOCKED"))

    def _table(self) -> str:
        return self._random.choice("ttu")

    def _row(self) -> tuple[str, int]:
        return self._table(), self._random.choice((1, 1, 2, 3))

    def _select_row(self) -> Drawn:
        (table, key), mode = self._row(), self._mode()
        if self._subject == "tables" or mode == "KEY SHARE":
            table = "t"
        shown, wait = self._shown_and_wait(mode)
        text = f"SELECT {shown} FROM {table} WHERE id = {key} FOR {mode}{wait}"
        # NOWAIT does not wait for a row; for a table it does.
        kind = Kind.NOTHING if wait and self._subject != "tables" else Kind.ROW
        return Drawn(text, kind, f"{table} {key}", shares=self._is_shared(mode))

    def _select_rows(self) -> Drawn:
        mode = self._mode()
        shown, wait = self._shown_and_wait(mode)
        text = f"SELECT {shown} FROM t WHERE id <= 3 ORDER BY id FOR {mode}{wait}"
        return Drawn(text, Kind.NOTHING if wait else Kind.ROWS, shares=self._is_shared(mode))

    def _job(self) -> Drawn:
        table, limit = self._table(), self._random.randint(1, 2)
        jobs = f"{table} WHERE v < 2 ORDER BY id LIMIT {limit} FOR UPDATE SKIP LOCKED"
        if self._random.random() < 0.5:
            return _control(f"SELECT id, v FROM {jobs}")
        jobs = jobs.replace(f"LIMIT {limit}", "LIMIT 1")
        return Drawn(
            f"UPDATE {table} SET v = v + 1 WHERE id = (SELECT id FROM {jobs}) RETURNING id, v",
            Kind.NOTHING,
            changes=True,
        )

    def _update(self) -> Drawn:
        table, key = self._row()
        condition = self._random.choice(("", "", " AND v < 2")) if table == "t" else ""
        if self._subject == "tables":
            table, condition = self._random.choice("tu"), ""
        text = f"UPDATE {table} SET v = v + 1 WHERE id = {key}{condition} RETURNING id, v"
        shares = self._is_shared("NO KEY UPDATE")
        return Drawn(text, Kind.ROW, f"{table} {key}", changes=True, shares=shares)

    def _delete(self) -> Drawn:
        table, key = self._row()
        text = f"DELETE FROM {table} WHERE id = {key} RETURNING id, v"
        return Drawn(text, Kind.ROW, f"{table} {key}", changes=True)

    def _insert(self) -> Drawn:
        table = self._random.choice("tuw" if self._subject == "tables" else "tu")
        text = f"INSERT INTO {table} VALUES ({next(self._numbers)}, 0)"
        return Drawn(text, Kind.TABLE, changes=True)

    def _lock_table(self) -> Drawn:
        mode, wait = self._random.choice(_TABLE_MODES), self._random.choice(("", "", " NOWAIT"))
        text = f"LOCK TABLE {self._random.choice('ttuw')} IN {mode} MODE{wait}"
        return Drawn(text, Kind.NOTHING if wait else Kind.TABLE)

    def _define(self) -> Drawn:
        number, table = next(self._numbers), self._table()
        definitions = (
            f"ALTER TABLE {table} ADD COLUMN c{number} int",
            f"CREATE INDEX i{number} ON {table} (v)",
            "TRUNCATE w",
        )
        return Drawn(self._random.choice(definitions), Kind.TABLE, changes=True)


def _control(text: str) -> Drawn:
    return Drawn(text, Kind.NOTHING)
