"""A database of a real PostgreSQL as an upstream: statements there, readers of it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import psycopg
import uvloop

from ingest.postgres.libpq_link import PostgresAddress
from ingest.postgres.reader import PostgresReader
from tests.support.servers import Postgres, fresh_database

T = TypeVar("T")


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """On the loop that the server has."""
    return uvloop.run(scenario)


class UpstreamDatabase:
    """Empty at first, and emptied for each test: that is quicker than a new one."""

    def __init__(self, server: Postgres) -> None:
        dsn = fresh_database(server.dsn)
        self.dsn = dsn
        self.name = dsn.rpartition("/")[2]
        self.port = server.port
        self.connection = psycopg.connect(dsn, autocommit=True)
        self._readers: list[PostgresReader] = []

    def close(self) -> None:
        self.connection.close()

    def empty(self) -> None:
        """As it was at first; also the session."""
        self._abandon_readers()
        self.drop_slots()
        publications = self.rows("SELECT pubname FROM pg_publication")
        self.execute(
            *("RESET ALL", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"),
            *(f"DROP PUBLICATION {name}" for (name,) in publications),
        )

    def _abandon_readers(self) -> None:
        """A scenario that failed has left its connections open and reads them no more: a sender
        that waits for such a client cannot be terminated.
        """
        for reader in self._readers:
            stream = reader._stream
            links = (reader._side, reader._exporting, None if stream is None else stream._link)
            for link in links:
                if link is not None:
                    link._pgconn.finish()
        self._readers.clear()

    def drop_slots(self) -> None:
        """All of this database, whoever holds them. A server of ours may drop them at this moment,
        too: its source was dropped.
        """
        for name, _ in self.slots():
            here = f"FROM pg_replication_slots WHERE slot_name = '{name}'"
            try:
                self.execute(
                    f"SELECT pg_terminate_backend(active_pid, 30000) {here}",
                    f"SELECT pg_drop_replication_slot(slot_name) {here}",
                )
            except (psycopg.errors.UndefinedObject, psycopg.errors.ObjectInUse):
                continue
            except psycopg.OperationalError:
                # The server ends whoever holds its slot, and who drops it does for a moment.
                self.connection = psycopg.connect(self.dsn, autocommit=True)

    def execute(self, *statements: str) -> None:
        """Each of them alone, unless they say otherwise."""
        for statement in statements:
            self.connection.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.encode()).fetchall()

    def copied(self, query: str) -> list[bytes]:
        """The lines of COPY."""
        with self.connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
            return b"".join(bytes(block) for block in copy).splitlines(keepends=True)

    def address(self, **others: Any) -> PostgresAddress:
        given = {"host": "127.0.0.1", "database": self.name, "user": "postgres", "port": self.port}
        return PostgresAddress(**{**given, **others})

    @property
    def slot(self) -> str:
        return f"meridian_{self.name}_1"

    def reader(
        self,
        *,
        publication: str = "p",
        kind: type[PostgresReader] = PostgresReader,
        **others: Any,
    ) -> PostgresReader:
        """A new one on the same slot."""
        self._readers.append(
            kind(self.address(), publication=publication, slot=self.slot, name="feed", **others)
        )
        return self._readers[-1]

    def slots(self) -> Sequence[tuple[str, int]]:
        """Name and acknowledged position of each."""
        return self.rows(
            "SELECT slot_name, (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots "
            "WHERE database = current_database()"
        )
