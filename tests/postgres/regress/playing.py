"""One file of the regression tests, played on both servers.

INVARIANTS
  L1  what Meridian refuses is not played on PostgreSQL, so what comes after finds the same state.
  L2  what only one of them could do is undone where it can be: within a savepoint, or a
      transaction of its own.

A file is one session on empty databases. What of test_setup.sql it does not name is left out.
"""

import re
import select
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import pq
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from tests.postgres.queries.answers import Answer, Done, Failed, Rows, to_answer
from tests.postgres.queries.comparing import Verdict, judge
from tests.postgres.regress.splitting import Statement, split
from tests.support.servers import fresh_database

SECONDS_MAX = 60
"""Of a statement; then it is cancelled."""

# Those of pg_regress.
SETTINGS = (
    "set timezone = 'America/Los_Angeles'",
    "set datestyle = 'Postgres, MDY'",
    "set intervalstyle = 'postgres_verbose'",
)
_SETUP = "test_setup.sql"

# Of the whole server, or of psql and the machine.
_NOT_PLAYED = re.compile(
    r"\s*(explain|(create|alter|drop)\s+(database|tablespace|subscription|publication)|alter\s+system"
    r"|vacuum|checkpoint|load|listen|unlisten|notify|prepare\s+transaction|reindex|cluster)\b"
    # Clustering for us, partitions for PostgreSQL.
    r"|create\s+(temp\s+|temporary\s+)?table\b(?s:.)*\bpartition\s+by\s+(range|list)\b"
    r"|(?s:.)*\b(pg_terminate_backend|pg_backend_pid)\b",
    re.IGNORECASE,
)
# Plans are not compared; the query is.
_EXPLAIN = re.compile(
    r"\s*explain\s*(\([^)]*\)|(analyze\s+)?(verbose\s+)?)\s*(?=(select|with|values)\b)",
    re.IGNORECASE,
)
# Alone or among several of one Query, but not in the body of a routine.
_TRANSACTION = re.compile(
    r"(?:\s*|(?!\s*(?:create|do)\b)(?s:.)*;\s*)"
    r"(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+trans"
    r"|set\s+(local\s+)?transaction|set\s+session\s+char|set\s+constraints)\b",
    re.IGNORECASE,
)
_SAVEPOINT = "regress_before"


@dataclass(frozen=True, slots=True)
class Played:
    """A statement with both answers and what becomes of it."""

    statement: Statement
    verdict: str
    found: tuple[Answer, ...] = ()
    expected: tuple[Answer, ...] = ()


def play(
    directory: Path, name: str, settings: Sequence[str], ours: str, peers: str
) -> Iterator[Played]:
    """Play a file on a new Meridian and in a new database of PostgreSQL."""
    path = directory / "sql" / name
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    player = _Player(directory, ours, _peer_database(peers))
    try:
        player.prepare(text, settings)
        for statement in split(text):
            yield player.play(statement)
    finally:
        player.close()


def _peer_database(dsn: str) -> str:
    """A new database of PostgreSQL, which sorts as Meridian does."""
    fresh = fresh_database(dsn)
    database = fresh.rpartition("/")[2]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'drop database "{database}"'.encode())
        connection.execute(
            f'create database "{database}" template template0 locale_provider builtin'
            " builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'".encode()
        )
    return fresh


class _Player:
    """The two sessions."""

    def __init__(self, directory: Path, ours: str, peers: str) -> None:
        self._directory = directory
        self._ours = _Session(ours)
        self._peer = _Session(peers)

    def close(self) -> None:
        """End both."""
        self._ours.close()
        self._peer.close()

    def prepare(self, text: str, settings: Sequence[str]) -> None:
        """Make the tables that the file names, and the settings."""
        words = set(re.findall(r"\w+", text.lower()))
        setup = (self._directory / "sql" / _SETUP).read_text(encoding="utf-8")
        for statement in split(setup):
            named = re.match(r"(?i)(create table|insert into|copy|analyze)\s+(\w+)", statement.text)
            if named and named[2].lower() in words | _needed(words):
                self.play(statement)
        for setting in settings:
            self.play(Statement(setting, 0))

    def play(self, statement: Statement) -> Played:
        """Play it on both (L1, L2)."""
        statement = replace(statement, text=_EXPLAIN.sub("", statement.text, count=1))
        why = statement.skipped or ("" if _can_play(statement.text) else "not played")
        if why:
            return Played(statement, f"skipped: {why}")
        lines = self._lines(statement)
        if lines is None:
            return Played(statement, "skipped: no such file")
        whole = Statement(_from_stdin(statement), statement.line, lines)
        if _TRANSACTION.match(statement.text):
            found, expected = self._ours.ask(whole), self._peer.ask(whole)
        else:
            found, expected = self._undone(whole)
        return Played(statement, verdict_of(statement.text, found, expected), found, expected)

    def _undone(self, statement: Statement) -> tuple[tuple[Answer, ...], tuple[Answer, ...]]:
        saved = self._ours.in_transaction()
        if saved:
            self._ours.run(f"savepoint {_SAVEPOINT}")
        found = self._ours.ask(statement)
        last = found[-1] if found else None
        if not isinstance(last, Failed):
            return found, self._peer_follows(statement, saved=saved)
        if last.sqlstate == "0A000" and saved:
            self._ours.run(f"rollback to {_SAVEPOINT}")
        if last.sqlstate == "0A000":
            return found, ()
        expected = self._peer_tries(statement)
        if saved and not isinstance(expected[-1], Failed):
            self._ours.run(f"rollback to {_SAVEPOINT}")
        return found, expected

    def _peer_follows(self, statement: Statement, *, saved: bool) -> tuple[Answer, ...]:
        """PostgreSQL's answer to what Meridian did, which is undone if PostgreSQL fails."""
        inside = self._peer.in_transaction()
        if inside:
            self._peer.run(f"savepoint {_SAVEPOINT}")
        expected = self._peer.ask(statement)
        failed = bool(expected) and isinstance(expected[-1], Failed)
        what = "rollback to" if failed else "release"
        if inside and (failed or self._peer.in_transaction()):
            self._peer.run(f"{what} {_SAVEPOINT}")
        if saved and self._ours.in_transaction():
            self._ours.run(f"{what} {_SAVEPOINT}")
        return expected

    def _peer_tries(self, statement: Statement) -> tuple[Answer, ...]:
        """PostgreSQL's answer to what Meridian failed at; undone if it did not fail."""
        if self._peer.in_transaction():
            self._peer.run(f"savepoint {_SAVEPOINT}")
            expected = self._peer.ask(statement)
            if not isinstance(expected[-1], Failed):
                self._peer.run(f"rollback to {_SAVEPOINT}")
            return expected
        if self._peer.is_broken():
            return self._peer.ask(statement)
        self._peer.run("begin")
        expected = self._peer.ask(statement)
        self._peer.run("rollback")
        if isinstance(expected[-1], Failed) and expected[-1].sqlstate == "25001":
            return self._peer.ask(statement)
        return expected

    def _lines(self, statement: Statement) -> str | None:
        if statement.file is None:
            return statement.lines or ""
        path = self._directory / statement.file
        return path.read_text(encoding="utf-8") if path.exists() else None


def _needed(words: set[str]) -> set[str]:
    return {
        source
        for table, source in (("tenk2", "tenk1"), ("onek2", "onek"), ("int4_tbl", "int4_tbl"))
        if table in words
    }


def _can_play(text: str) -> bool:
    return _NOT_PLAYED.match(text) is None


def _from_stdin(statement: Statement) -> str:
    return statement.text.replace(":'filename'", "stdin") if statement.file else statement.text


def verdict_of(text: str, found: tuple[Answer, ...], expected: tuple[Answer, ...]) -> str:
    """One word, or what is wrong in a few."""
    last = found[-1] if found else None
    if isinstance(last, Failed) and last.sqlstate == "0A000":
        return "refused"
    match judge(text, found, expected):
        case Verdict.EQUAL:
            return "equal error" if isinstance(last, Failed) else "equal"
        case Verdict.REFUSED:
            return "refused"
        case Verdict.WRONG:
            return f"WRONG: {_kind(found, expected)}"


def _kind(found: tuple[Answer, ...], expected: tuple[Answer, ...]) -> str:
    ours, theirs = found[-1], expected[-1]
    match ours, theirs:
        case Failed(), Failed():
            if ours.sqlstate != theirs.sqlstate:
                return f"{ours.sqlstate} instead of {theirs.sqlstate}"
            return "position"
        case Failed(), _:
            return f"{ours.sqlstate} instead of an answer"
        case _, Failed():
            return f"an answer instead of {theirs.sqlstate}"
        case Rows(), Rows():
            if ours.columns != theirs.columns:
                return "columns"
            return "order" if Counter(ours.rows) == Counter(theirs.rows) else "rows"
        case _:
            return "tag"


class _Session:
    """A connection, which is made again when it is lost."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection = psycopg.connect(dsn, autocommit=True)

    def close(self) -> None:
        """End it."""
        self._connection.close()

    def in_transaction(self) -> bool:
        """In a block that has not failed."""
        return self._status() == TransactionStatus.INTRANS

    def is_broken(self) -> bool:
        """In a block that has failed."""
        return self._status() == TransactionStatus.INERROR

    def _status(self) -> int:
        return self._connection.pgconn.transaction_status

    def run(self, text: str) -> None:
        """Something of our own."""
        self.ask(Statement(text, 0))

    def ask(self, statement: Statement) -> tuple[Answer, ...]:
        """Send it as a simple Query; its answers. After `SECONDS_MAX` it is cancelled."""
        connection = self._connection.pgconn
        try:
            found = tuple(_answers(connection, statement))
        except psycopg.OperationalError as error:
            found = (Failed("lost!", None, str(error)),)
        if connection.status != pq.ConnStatus.OK:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
            found = (*found, Failed("lost!", None, "the connection was lost"))
        return found


def _answers(connection: PGconn, statement: Statement) -> Iterator[Answer]:
    connection.send_query(statement.text.encode(errors="surrogateescape"))
    connection.flush()
    while (result := _next_result(connection)) is not None:
        match result.status:
            case ExecStatus.COPY_IN:
                lines = (statement.lines or "").encode(errors="surrogateescape")
                connection.put_copy_data(lines)
                connection.put_copy_end()
                connection.flush()
            case ExecStatus.COPY_OUT:
                yield from _copied_out(connection)
            case _:
                yield to_answer(result)


def _next_result(connection: PGconn) -> PGresult | None:
    """The next one. Waiting in libpq itself would hold the interpreter, so that nobody cancels."""
    while connection.is_busy():
        if not select.select([connection.socket], [], [], SECONDS_MAX)[0]:
            connection.get_cancel().cancel()
        connection.consume_input()
    return connection.get_result()


def _copied_out(connection: PGconn) -> Iterator[Answer]:
    """The lines of a COPY TO STDOUT, in order of the text: it promises none."""
    lines: list[str] = []
    while True:
        size, line = connection.get_copy_data(0)
        if size <= 0:
            break
        lines.append(bytes(line).decode(errors="backslashreplace"))
    yield Done("".join(sorted(lines)))


def counts_of(played: Counter[str]) -> dict[str, int]:
    """The verdicts, in few words."""
    found: Counter[str] = Counter()
    for verdict, count in played.items():
        found[verdict.partition(":")[0]] += count
    return dict(sorted(found.items()))
