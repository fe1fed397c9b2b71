"""Plays statements on a server and tells, as text, what it answered and what its tables hold then.

Rows of an answer are sorted unless the statement orders them: PostgreSQL promises no order.
"""

from collections.abc import Sequence
from hashlib import blake2b

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.string import TextLoader

from tests.support import diagnostics
from tests.support.alike import Alike, is_of_both


class Player:
    """One connection, and the tables whose state is told."""

    def __init__(
        self, connection: "psycopg.Connection[tuple[object, ...]]", tables: Sequence[str]
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._notices: list[str] = []
        self.alike = Alike()
        """How this play tells what no two servers say alike."""
        for name in ("interval", "json", "jsonb", "timestamptz"):
            # As text: Python's values do not tell a month from thirty days, nor zones by offset.
            connection.adapters.register_loader(name, TextLoader)
        connection.add_notice_handler(self._told)

    def _told(self, notice: "psycopg.errors.Diagnostic") -> None:
        if is_of_both(notice):
            self._notices.append(diagnostics.told("N", notice))

    def alone(self, statement: str) -> str:
        """The statement by itself, then the tables."""
        return "\n".join([f"> {statement}", *self.answer(statement), *self.state()])

    def briefly(self, statement: str) -> str:
        """The same, with a digest in place of the tables."""
        answer = self.answer(statement)
        state = blake2b("\n".join(self.state()).encode(), digest_size=8).hexdigest()
        return "\n".join([f"> {statement}", *answer, f"then {state}"])

    def state(self) -> list[str]:
        """All rows of all tables, sorted; `-` for a table that is not there."""
        told: list[str] = []
        if self._connection.info.transaction_status == TransactionStatus.INERROR:
            return ["in a failed block"]
        for table in self._tables:
            try:
                with self._connection.transaction():
                    rows = self._connection.execute(f"select * from {table}".encode()).fetchall()
                known = " ".join(sorted(map(str, rows)))
                told.append(self.alike.told(f"{table}: {known}".rstrip()))
            except psycopg.errors.UndefinedTable:
                told.append(f"{table}: -")
        return told

    def answer(self, statement: str) -> list[str]:
        """Notices, and the tag and rows or the error."""
        self._notices.clear()
        try:
            if statement.startswith("copy "):
                return self._copied(statement)
            answer = _result(self._connection.execute(statement.encode()), statement)
        except psycopg.Error as error:
            answer = diagnostics.told("E", error.diag)
        return [self.alike.told(text) for text in [*self._notices, answer]]

    def _copied(self, statement: str) -> list[str]:
        """`copy .. from stdin <- 1\\tx\\n`: sent is what follows; or the tag and rows."""
        text, _, sent = statement.partition(" <- ")
        cursor = self._connection.cursor()
        with cursor.copy(text.encode()) as copy:
            if "from stdin" in text:
                copy.write(sent.encode().decode("unicode_escape").encode())
                rows: list[str] = []
            else:
                rows = [repr(bytes(row).decode()) for row in copy]
        tag = [cursor.statusmessage] if cursor.statusmessage else []
        return [*self._notices, *tag, *rows]


def _result(cursor: "psycopg.Cursor[tuple[object, ...]]", statement: str) -> str:
    tag = cursor.statusmessage or ""
    if cursor.description is None:
        return tag
    names = ", ".join(column.name for column in cursor.description)
    rows = [str(row) for row in cursor.fetchall()]
    ordered = statement.startswith("select") and "order by" in statement
    return "\n".join([f"{tag} ({names})", *(rows if ordered else sorted(rows))])
