"""Plays a script so that every statement is taken back in each way before it is kept.

    BEGIN, statement, ROLLBACK                                 nothing is left of it
    BEGIN, SAVEPOINT, statement, ROLLBACK TO, RELEASE, statement, COMMIT
    SAVEPOINT, statement, ROLLBACK TO, RELEASE, statement      in a block of the script's own

INVARIANTS
  P1  everything is told: the answer each time, and what the database holds after it was kept
      (`states.py`), with moments, made-up names and warnings of ours as `tests/support/alike.py`
      has it.
  P2  what was taken back left nothing: definitions and rows are what they were.

Not here: what must be the same on both servers is what is told; P2 is asserted on each by itself.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import psycopg
from psycopg.pq import TransactionStatus

from tests.postgres.transactions.states import Onlooker, State
from tests.postgres.writing.playing import Player

ROOT = Path(__file__).parent.parent
_CONTROL = re.compile(
    r"(begin|start|commit|end|abort|rollback|savepoint|release|prepare transaction)\b", re.I
)
_READS = re.compile(r"(select|values|table|show)\b(?!.* into )", re.I)


def scripts() -> dict[str, Path]:
    """The scripts by area and name."""
    return {
        f"{area}-{path.stem}": path
        for area in ("writing", "ddl")
        for path in sorted((ROOT / area / "testdata").glob("*.sql"))
    }


def recorded_path(name: str) -> Path:
    """Where PostgreSQL's answers to a script are kept."""
    return Path(__file__).parent / "testdata" / f"{name}.out"


def statements(path: Path) -> list[str]:
    """Those of a script that PostgreSQL is asked, too."""
    both, _, _ = path.read_text().partition("# meridian\n")
    return [line for line in both.splitlines() if line.strip() and not line.startswith("#")]


class Blocks:
    """One connection that plays a script."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        # Definitions change below it: what was prepared would have other columns.
        connection.prepare_threshold = None
        self._player = Player(connection, ())
        self._look = Onlooker(connection, self._player.alike).look
        self.state = self._look()
        """What the database held when the last transaction had ended."""

    def play(self, line: str) -> str:
        """One statement in all ways (P1)."""
        if not _CONTROL.match(line) and self._status == TransactionStatus.IDLE:
            told = self._in_blocks(line)
        elif not _CONTROL.match(line) and self._status == TransactionStatus.INTRANS:
            told = _told(self._behind_savepoint(line, self._look()))
        else:
            told = self._player.answer(line)
        if self._status == TransactionStatus.IDLE and not _READS.match(line):
            self.state = self._look(line)
            told = [*told, f"then {_digest(self.state.shared)}"]
        return "\n".join([f"> {line}", *told])

    @property
    def _status(self) -> TransactionStatus:
        return self._connection.info.transaction_status

    def _in_blocks(self, line: str) -> list[str]:
        self._connection.execute("begin")
        ways = {"first": self._player.answer(line)}
        self._connection.execute("rollback")
        if not _READS.match(line):
            self._expect(self.state, line, "rolled back")
        self._connection.execute("begin")
        ways |= self._behind_savepoint(line, self.state)
        end = self._player.answer("commit")
        expected = ["ROLLBACK" if ways["kept"][-1].startswith("E ") else "COMMIT"]
        return _told(ways) + ([] if end == expected else ["at commit", *end])

    def _behind_savepoint(self, line: str, before: State) -> dict[str, list[str]]:
        self._connection.execute("savepoint before")
        answer = self._player.answer(line)
        self._connection.execute("rollback to before")
        self._connection.execute("release before")
        if not _READS.match(line):
            self._expect(before, line, "behind a savepoint")
        return {"taken back": answer, "kept": self._player.answer(line)}

    def _expect(self, before: State, line: str, why: str) -> None:
        """Nothing is left (P2)."""
        left = before.difference(self._look(line))
        assert not left, f"P2, {why}: {line}\n{left}"


def _told(ways: Mapping[str, list[str]]) -> list[str]:
    """The answer; those that are others follow under their names."""
    (_, first), *others = ways.items()
    return first + [text for way, told in others if told != first for text in (way, *told)]


def _digest(state: Sequence[str]) -> str:
    return blake2b("\n".join(state).encode(), digest_size=8).hexdigest()
