"""Plays statements on a server and tells, as text, what it answered and what its tables hold then.

Rows of an answer are sorted unless the statement orders them: PostgreSQL promises no order.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b

import psycopg
from psycopg.pq import TransactionStatus

from tests import diagnostics

_MOVING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+|pg_temp_\d+(_[0-9a-f]+)?")


class Player:
    """One connection, and the tables whose state is told."""

    def __init__(
        self, connection: "psycopg.Connection[tuple[object, ...]]", tables: Sequence[str]
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._notices: list[str] = []
        connection.add_notice_handler(
            lambda notice: self._notices.append(diagnostics.told("N", notice))
        )

    def alone(self, statement: str) -> str:
        """The statement by itself, then the tables."""
        return "\n".join([f"> {statement}", *self._answer(statement), *self.state()])

    def briefly(self, statement: str) -> str:
        """The same, with a digest in place of the tables."""
        answer = self._answer(statement)
        state = blake2b("\n".join(self.state()).encode(), digest_size=8).hexdigest()
        return "\n".join([f"> {statement}", *answer, f"then {state}"])

    def in_block(self, statement: str) -> str:
        """The same in a block, having been taken back once; the tables before the commit, too."""
        before = self.state()
        self._connection.execute("begin")
        self._connection.execute("savepoint before")
        first = self._answer(statement)
        inside = [] if first[-1].startswith("E ") else self.state()
        self._connection.execute("rollback to before")
        assert self.state() == before, f"not taken back: {statement}"
        again = self._answer(statement)
        assert again == first, f"another answer the second time: {statement}"
        if again[-1].startswith("E "):
            self._connection.execute("rollback")
        else:
            self._connection.execute("commit")
            assert self.state() == inside, f"committed is not what it was: {statement}"
        return "\n".join([f"> {statement}", *again, *self.state()])

    def state(self) -> list[str]:
        """All rows of all tables, sorted; `-` for a table that is not there."""
        told: list[str] = []
        if self._connection.info.transaction_status == TransactionStatus.INERROR:
            return ["in a failed block"]
        for table in self._tables:
            try:
                with self._connection.transaction():
                    rows = self._connection.execute(f"select * from {table}".encode()).fetchall()
                told.append(f"{table}: {' '.join(sorted(map(str, rows)))}".rstrip())
            except psycopg.errors.UndefinedTable:
                told.append(f"{table}: -")
        return told

    def _answer(self, statement: str) -> list[str]:
        self._notices.clear()
        try:
            answer = _result(self._connection.execute(statement.encode()), statement)
        except psycopg.Error as error:
            answer = diagnostics.told("E", error.diag)
        return [_MOVING.sub("<moment>", text) for text in [*self._notices, answer]]


def _result(cursor: "psycopg.Cursor[tuple[object, ...]]", statement: str) -> str:
    tag = cursor.statusmessage or ""
    if cursor.description is None:
        return tag
    names = ", ".join(column.name for column in cursor.description)
    rows = [str(row) for row in cursor.fetchall()]
    ordered = statement.startswith("select") and "order by" in statement
    return "\n".join([f"{tag} ({names})", *(rows if ordered else sorted(rows))])
