"""Manage DuckDB databases: open a new one when DuckDB invalidates the current one.

    run ─▶ LocalInstances.enter() ─▶ LocalInstance ─▶ leave()
                  ▲                        │ an internal error: DuckDB invalidates the database,
                  └──── a new one ◀────────┘ and no statement starts in it any more

INVARIANTS
  D1  tables and functions of a database are named through its own instance only: none of an
      invalidated instance is looked for in another.
  D2  runs enter the newest instance. Runs in an invalidated one may finish there; it is closed
      after the last of them.
  D3  at most one invalidated instance has runs that are not interrupted, even if a client makes
      DuckDB fail again and again: each instance has its own limit of memory.
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
    """A database with its own spill directory. LocalInstances keeps track of its runs."""

    def __init__(self, settings: LocalSettings, reader: RowReader) -> None:
        self._directory = settings.directory
        self.database = open_database(settings)
        self.functions = LocalFunctions(self.database)
        self.relations = LocalRelations(settings.warehouse.resolve(), reader)
        self.connections: set[duckdb.DuckDBPyConnection] = set()
        self.given_up = False

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Open a connection for one run."""
        return self.database.cursor()

    def answers(self) -> bool:
        """Whether it still accepts statements."""
        try:
            with self.database.cursor() as probe:
                probe.execute("select 1")
        except duckdb.Error:
            return False
        return True

    def interrupt(self) -> None:
        """Interrupt its statements; once is enough, as an invalidated database starts no more."""
        for connection in tuple(self.connections):
            with contextlib.suppress(duckdb.Error):
                connection.interrupt()

    def close(self) -> None:
        """Close the database and remove its files."""
        self.database.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class LocalInstances:
    """The engine's current database, and invalidated ones that still have runs. Thread-safe."""

    def __init__(
        self, settings: LocalSettings, reader: RowReader, elsewhere: Callable[[LocalInstance], None]
    ) -> None:
        """`elsewhere`: closes an instance, in a thread that may block."""
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
        """How many instances there are."""
        with self._lock:
            return 1 + len(self._given_up)

    def enter(self) -> tuple[LocalInstance, duckdb.DuckDBPyConnection]:
        """The newest instance, and a connection for one run in it."""
        with self._lock:
            instance = self._newest
            connection = instance.connect()
            instance.connections.add(connection)
            return instance, connection

    def leave(self, instance: LocalInstance, connection: duckdb.DuckDBPyConnection) -> None:
        """Close the connection of a run that is over."""
        connection.close()
        with self._lock:
            instance.connections.discard(connection)
        self._close_if_left(instance)

    def examine(self, instance: LocalInstance) -> None:
        """After an unexpected error: if DuckDB has invalidated the instance, open another one."""
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
        """Close all instances; no run is in any of them."""
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
