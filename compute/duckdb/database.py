"""Open an in-process DuckDB that can reach only its warehouse and its spill directory.

INVARIANTS
  K1  settings are fixed before the first query and verified by their effect: files elsewhere cannot
      be read, only the size of a stream's buffer can be set, no extension is installed or loaded.
  K2  the time zone is UTC, whatever the server's or a session's time zone is.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from compute.executor import EngineUnavailable

OPTIMIZERS_DISABLED: Final = (
    # It merges two joins of which different columns are read, and reads the wrong ones. Without it
    # only the plan of q11 of TPC-H changes.
    "common_subplan",
    # It computes the sets of CUBE from each other's states. It fails if aggregates share an
    # argument or one takes a constant: DuckDB invalidated its database.
    "grouping_sets",
    # It removes a join that DISTINCT makes needless, but not everything that its condition needs:
    # the statement failed, and DuckDB invalidated its database.
    "join_elimination",
    # It adds up too much if a correlated aggregate stands next to an expression that may fail.
    "partial_aggregate_pushdown",
    # It loses columns of a lateral join that are computed from the outer row. It makes no plan of
    # TPC-H faster.
    "projection_pullup",
    # It concludes that a left join has no rows if statistics say that the right side has none:
    # EXISTS was false then, and LIMIT was dropped.
    "statistics_propagation",
)
LOCKDOWN_STATEMENTS: Final = ("set enable_external_access = false", "set lock_configuration = true")
SMALL_BUFFER_STATEMENT: Final = "set streaming_buffer_size = '1MiB'"
"""For each connection that streams: what DuckDB holds of a result whose consumer is slow. Larger:
more memory for each client that does not read. Smaller: its threads stop and start more often."""
_PATTERN: Final = re.compile(r"([*?[])")


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to open the database. `directory`: for data that does not fit into memory; it is emptied.
    `optimizers_disabled`: tests disable more of them, to compare answers.
    """

    warehouse: Path
    directory: Path
    memory_mb: int = 1_024
    threads: int = 2
    spill_bytes_max: int = 16 << 30
    optimizers_disabled: tuple[str, ...] = OPTIMIZERS_DISABLED


def open_database(settings: LocalSettings) -> duckdb.DuckDBPyConnection:
    """Open an empty database (K1)."""
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
    # Otherwise what queries have let go stays with the process until the next one needs it.
    connection.execute("set global allocator_background_threads = true")
    disabled = ",".join(settings.optimizers_disabled)
    connection.execute("set global disabled_optimizers = $1", [disabled])
    warehouse = settings.warehouse.resolve()
    # A path is allowed as a pattern, and each file it stands for again as a file.
    directories = [
        f"{warehouse}/",
        f"{escape_glob(warehouse)}/",
        f"{settings.directory.resolve()}/",
    ]
    connection.execute("set allowed_directories = $1", [directories])
    connection.execute(
        "set allowed_configs = ['streaming_buffer_size', 'max_streaming_buffer_size']"
    )
    for lock in LOCKDOWN_STATEMENTS:
        connection.execute(lock)
    _prove(connection)
    return connection


def escape_glob(path: Path) -> str:
    """The path, escaped for places where DuckDB expands patterns."""
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
