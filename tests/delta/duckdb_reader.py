"""Reads a Delta table with DuckDB, in an environment of its own (see `duckdb_environment`).

Runs there as a script: arguments are the table and a SELECT over `t`, with `{t}` for the scan; the
answer goes to standard output as an Arrow stream.
"""

import subprocess
import sys
from pathlib import Path

DUCKDB = "1.5.5"
"""The extension is on PyPI for this version only; Meridian's own DuckDB is newer."""

ENVIRONMENT = Path(__file__).parents[2] / ".cache" / f"duckdb-{DUCKDB}"
PACKAGES = (f"duckdb=={DUCKDB}", f"duckdb-extension-delta=={DUCKDB}", "pyarrow>=24,<27", "pytz")


def duckdb_environment() -> Path:
    """The interpreter of the environment, made on first use."""
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / "complete"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        done.touch()
    return python


def query_duckdb(table: Path, query: str, *, version: int | None = None) -> bytes:
    """The answer of DuckDB as an Arrow stream."""
    at = "" if version is None else f", version => {version}"
    command = [duckdb_environment(), __file__, query.format(t=f"delta_scan('{table}'{at})")]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _main(query: str) -> None:
    import duckdb
    import duckdb_extension_delta
    import pyarrow as pa

    extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"LOAD '{extension}'")
    rows = connection.execute(query).to_arrow_table()
    with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as writer:
        writer.write_table(rows)


if __name__ == "__main__":
    _main(sys.argv[1])
