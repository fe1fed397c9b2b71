"""A DuckDB in this process that reaches its warehouse and its spill directory, and nothing else.

INVARIANTS
  K1  settings are fixed before the first query, and proven by their effect: files elsewhere cannot
      be read, nothing can be set, no extension is installed or loaded.
  K2  instants are read in UTC, whatever the server's or a session's zone.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from compute.executor import EngineUnavailable

OPTIMIZERS_DISABLED: Final = (
    # It takes two joins for one of which different columns are read, and reads the wrong ones. Of
    # TPC-H only the plan of q11 is another without it.
    "common_subplan",
    # It makes the sets of CUBE of each other's states, and fails where aggregates share an argument
    # or one of them is of a constant: DuckDB gave its database up.
    "grouping_sets",
    # It takes away a join that DISTINCT makes needless, but not all that its condition needs:
    # the statement failed, and DuckDB gave its database up.
    "join_elimination",
    # It adds up too much where a correlated aggregate stands beside something that may fail.
    "partial_aggregate_pushdown",
    # It loses columns of a lateral join that are made of the row outside. No plan of TPC-H that it
    # changes is the faster for it.
    "projection_pullup",
    # It takes the rows of a left join for none where it knows by statistics that the right side has
    # none: EXISTS was false then, and LIMIT left out.
    "statistics_propagation",
)
LOCKS: Final = ("set enable_external_access = false", "set lock_configuration = true")
_PATTERN: Final = re.compile(r"([*?[])")


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to open the database. `directory`: for what does not fit into memory; it is emptied.
    `optimizers_disabled`: more of them only in tests, which compare answers.
    """

    warehouse: Path
    directory: Path
    memory_mb: int = 1_024
    threads: int = 2
    spill_bytes_max: int = 16 << 30
    optimizers_disabled: tuple[str, ...] = OPTIMIZERS_DISABLED


def open_database(settings: LocalSettings) -> duckdb.DuckDBPyConnection:
    """A database with nothing in it (K1)."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": settings.threads,
            "memory_limit": f"{settings.memory_mb}MiB",
            "temp_directory": str(settings.directory),
            "max_temp_directory_size": f"{settings.spill_bytes_max}B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        },
    )
    connection.execute("set global TimeZone = 'UTC'")
    disabled = ",".join(settings.optimizers_disabled)
    connection.execute("set global disabled_optimizers = $1", [disabled])
    warehouse = settings.warehouse.resolve()
    # A path is allowed as a pattern, and each file it stands for again as a file.
    directories = [f"{warehouse}/", f"{pattern(warehouse)}/", f"{settings.directory.resolve()}/"]
    connection.execute("set allowed_directories = $1", [directories])
    for lock in LOCKS:
        connection.execute(lock)
    _prove(connection)
    return connection


def pattern(path: Path) -> str:
    """The path as DuckDB takes it where it expands patterns."""
    return _PATTERN.sub(r"[\1]", str(path))


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
