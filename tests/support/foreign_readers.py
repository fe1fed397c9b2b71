"""The same SQL over Delta tables by readers that know nothing of Meridian.

    DeltaRs    delta-rs and DataFusion, in process
    DuckDb     DuckDB's delta extension, in an environment of its own (`.cache/`): the extension
               exists for an older DuckDB than ours
    DeltaSpark delta-spark on a JVM of its own; its JAR comes from Maven on first use

INVARIANTS
  F1  a reader gets the paths of the tables and their versions, nothing else.
  F2  rows come back as tuples of str, int, float, bool or None; queries cast the rest to text.

Not here: reading through our own code.
"""

import contextlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

Rows: TypeAlias = list[tuple[object, ...]]

ROOT = Path(__file__).parents[2]
DUCKDB_HOME = ROOT / ".cache" / "duckdb-1.5.5"
DUCKDB_PACKAGES = ("duckdb==1.5.5", "duckdb-extension-delta==1.5.5")
DELTA_JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"


class ForeignReader(Protocol):
    """See the module."""

    def query(
        self, sql: str, tables: Mapping[str, Path], versions: Mapping[str, int] | None = None
    ) -> Rows:
        """Run a query over the tables, the newest version of each unless said otherwise."""
        ...


class DeltaRs:
    """delta-rs."""

    def query(
        self, sql: str, tables: Mapping[str, Path], versions: Mapping[str, int] | None = None
    ) -> Rows:
        """See ForeignReader."""
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        builder = QueryBuilder()
        for name, path in tables.items():
            builder = builder.register(name, DeltaTable(path, version=(versions or {}).get(name)))
        result = pa.RecordBatchReader.from_stream(builder.execute(sql)).read_all()
        return [tuple(row.values()) for row in result.to_pylist()]


class _Worker:
    """A process that answers lines of JSON with lines of JSON."""

    def __init__(self, python: Path, verb: str, environment: Mapping[str, str]) -> None:
        # -P: the directory beside it has packages that are called like Python's own.
        command = [str(python), "-P", str(Path(__file__).with_name("foreign_worker.py")), verb]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            text=True,
        )

    def query(
        self, sql: str, tables: Mapping[str, Path], versions: Mapping[str, int] | None = None
    ) -> Rows:
        """See ForeignReader."""
        assert self._process.stdin is not None, "stdin is a pipe"
        assert self._process.stdout is not None, "stdout is a pipe"
        places = {name: str(path) for name, path in tables.items()}
        request = {"sql": sql, "tables": places, "versions": dict(versions or {})}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the reader died"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return [tuple(row) for row in answer["rows"]]

    def close(self) -> None:
        """End the process: its input ends, and whatever it started ends with it."""
        assert self._process.stdin is not None, "stdin is a pipe"
        assert self._process.stdout is not None, "stdout is a pipe"
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


@contextlib.contextmanager
def duckdb_reader() -> Iterator[ForeignReader]:
    """DuckDB's delta extension."""
    worker = _Worker(_duckdb_python(), "duckdb", {})
    try:
        yield worker
    finally:
        worker.close()


@contextlib.contextmanager
def delta_spark_reader() -> Iterator[ForeignReader]:
    """delta-spark; starts a JVM at the first query."""
    # An inherited SPARK_HOME would mix two Sparks.
    worker = _Worker(Path(sys.executable), "spark", {"SPARK_HOME": "", "DELTA_JAR": DELTA_JAR})
    try:
        yield worker
    finally:
        worker.close()


def _duckdb_python() -> Path:
    """The interpreter of the environment with the older DuckDB, made on first use."""
    python = DUCKDB_HOME / "bin" / "python"
    stamp = DUCKDB_HOME / "installed"
    if not stamp.exists():
        venv.create(DUCKDB_HOME, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *DUCKDB_PACKAGES], check=True)
        stamp.touch()
    return python
