"""One DuckDB and what is made in it: tables of rows, registered functions.

    run ─▶ LocalInstances.enter() ─▶ LocalInstance ─▶ leave()
                  ▲                        │ an error of DuckDB's own: it gives the database up,
                  └──── a new one ◀────────┘ and no statement in it begins any more

INVARIANTS
  D1  what is made in a database is named by its own instance only: nothing of one that was given
      up is asked of another.
  D2  runs enter the newest instance. Those within one that was given up may end there; it is
      closed behind the last of them.
  D3  at most one that was given up has runs that are not interrupted, whoever makes DuckDB fail as
      often as he can: each has its own limit of memory.
"""

import contextlib
import itertools
import logging
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace

import duckdb

from compute.duckdb.database import LocalSettings, open_database
from compute.duckdb.functions import LocalFunctions
from compute.duckdb.relations import LocalRelations
from compute.executor import EngineUnavailable
from compute.scan import RowReader

log = logging.getLogger(__name__)


class LocalInstance:
    """A database of its own, with a spill directory of its own. Counted by LocalInstances."""

    def __init__(self, settings: LocalSettings, reader: RowReader) -> None:
        self._directory = settings.directory
        self.database = open_database(settings)
        self.functions = LocalFunctions(self.database)
        self.relations = LocalRelations(settings.warehouse.resolve(), reader)
        self.connections: set[duckdb.DuckDBPyConnection] = set()
        self.given_up = False

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection for one run."""
        return self.database.cursor()

    def answers(self) -> bool:
        """Whether it takes statements."""
        try:
            with self.database.cursor() as probe:
                probe.execute("select 1")
        except duckdb.Error:
            return False
        return True

    def interrupt(self) -> None:
        """End what runs in it; once is enough in a database that begins nothing any more."""
        for connection in tuple(self.connections):
            with contextlib.suppress(duckdb.Error):
                connection.interrupt()

    def close(self) -> None:
        """Let go of its memory and its files."""
        self.database.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class LocalInstances:
    """The instance of an engine at any time; see the module. Thread-safe."""

    def __init__(
        self, settings: LocalSettings, reader: RowReader, elsewhere: Callable[[LocalInstance], None]
    ) -> None:
        """`elsewhere`: closes an instance, in a thread that may wait."""
        self._settings = settings
        self._reader = reader
        self._elsewhere = elsewhere
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._given_up: set[LocalInstance] = set()
        shutil.rmtree(settings.directory, ignore_errors=True)
        settings.directory.mkdir(parents=True, mode=0o700)
        self._newest = self._open()

    @property
    def newest(self) -> LocalInstance:
        """The one that runs enter."""
        return self._newest

    @property
    def count(self) -> int:
        """How many there are."""
        with self._lock:
            return 1 + len(self._given_up)

    def enter(self) -> tuple[LocalInstance, duckdb.DuckDBPyConnection]:
        """The newest, and a connection for one run in it."""
        with self._lock:
            instance = self._newest
            connection = instance.connect()
            instance.connections.add(connection)
            return instance, connection

    def leave(self, instance: LocalInstance, connection: duckdb.DuckDBPyConnection) -> None:
        """The run that has entered is over."""
        connection.close()
        with self._lock:
            instance.connections.discard(connection)
        self._close_if_left(instance)

    def examine(self, instance: LocalInstance) -> None:
        """A statement in it failed as none should: if DuckDB has given it up, open another."""
        with self._lock:
            if instance.given_up or instance.answers():
                return
            log.error("the database of the local engine was given up: another one is opened")
            if instance is self._newest:
                self._newest = self._open()
            instance.given_up = True
            for earlier in self._given_up:
                earlier.interrupt()
            self._given_up.add(instance)
        self._close_if_left(instance)

    def close(self) -> None:
        """All of them; no run is in any."""
        with self._lock:
            for instance in (self._newest, *self._given_up):
                instance.close()
            self._given_up.clear()
        shutil.rmtree(self._settings.directory, ignore_errors=True)

    def _open(self) -> LocalInstance:
        directory = self._settings.directory / str(next(self._numbers))
        try:
            return LocalInstance(replace(self._settings, directory=directory), self._reader)
        except duckdb.Error as error:
            raise EngineUnavailable("no database could be opened") from error

    def _close_if_left(self, instance: LocalInstance) -> None:
        with self._lock:
            if instance.connections or instance not in self._given_up:
                return
            self._given_up.discard(instance)
        self._elsewhere(instance)
