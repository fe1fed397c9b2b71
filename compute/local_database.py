"""A DuckDB in this process that reaches its warehouse and its spill directory, and nothing else.

INVARIANTS
  K1  settings are fixed before the first query, and proven by their effect: files elsewhere cannot
      be read, nothing can be set, no extension is installed or loaded.
  K2  instants are read in UTC, whatever the server's or a session's zone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from compute.executor import EngineUnavailable

_GLOB: Final = frozenset("*?[]{}")
"""What DuckDB takes for a pattern in a path."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to open the database. `directory`: for what does not fit into memory; it is emptied."""

    warehouse: Path
    directory: Path
    memory_mb: int = 1_024
    threads: int = 2
    spill_bytes_max: int = 16 << 30


def open_database(settings: LocalSettings) -> duckdb.DuckDBPyConnection:
    """A database with nothing in it (K1)."""
    warehouse = settings.warehouse.resolve()
    if not _GLOB.isdisjoint(str(warehouse)):
        raise EngineUnavailable("the path of the warehouse has characters of file patterns")
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": settings.threads,
            "memory_limit": f"{settings.memory_mb}MiB",
            "temp_directory": str(settings.directory),
            "max_temp_directory_size": f"{settings.spill_bytes_max}B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    connection.execute("set global TimeZone = 'UTC'")
    directories = [f"{warehouse}/", f"{settings.directory.resolve()}/"]
    connection.execute("set allowed_directories = $1", [directories])
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    _prove(connection)
    return connection


def _prove(connection: duckdb.DuckDBPyConnection) -> None:
    forbidden = (
        f"select * from read_text('{__file__.replace(chr(39), chr(39) * 2)}')",
        "set threads = 1",
        "install httpfs",
        "load httpfs",
        "attach '/nowhere.db'",
    )
    for statement in forbidden:
        try:
            connection.execute(statement)
        except duckdb.Error:
            continue
        raise EngineUnavailable("the local engine does not keep to its directories")
