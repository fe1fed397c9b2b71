"""The answer of a plan as staged Parquet in a table's directory, written by Spark's own tasks.

    plan ─▶ Spark's tasks ─▶ .<token>/part-.. ─rename─▶ part-<token>-<n>.parquet

INVARIANTS
  G1  a staged file counts only when a commit names it. Nothing here syncs: the caller does, before
      it commits.
  G2  what fails or is cancelled leaves no file under a name that counts; its directory is removed
      as soon as the tasks have ended.
  G3  files keep the order of the rows: by number, then by position.

Not here: rows that come batch by batch (`coordinator/spooling.py`).
"""

import asyncio
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compute.arrow import arrow_type
from compute.executor import Run
from compute.spark import SparkExecutor
from sql.plan import output_columns
from storage.types import Source


async def stage(
    spark: SparkExecutor, run: Run, directory: Path, schema: pa.Schema
) -> Sequence[Source]:
    """Have Spark write the answer of a plan into a table's directory; the files' names, in order
    (G3).

    The plan's columns must have the types of `schema`, whose names the files' columns get. The
    caller checks NOT NULL by the files' statistics.
    """
    columns = output_columns(run.plan)
    assert [arrow_type(column.type) for column in columns] == schema.types, "types are the table's"
    # Unique among all processes that ever stage into this directory.
    token = secrets.token_hex(12)
    unfinished = directory / f".{token}"
    await spark.write(run, unfinished, schema.names)
    return await asyncio.to_thread(_adopt, unfinished, directory, token)


def _adopt(unfinished: Path, directory: Path, token: str) -> list[Source]:
    """Move the parts that have rows into the table's directory."""
    names: list[Source] = []
    for part in sorted(unfinished.glob("part-*.parquet")):
        if not pq.read_metadata(part).num_rows:
            continue
        name = Source(f"part-{token}-{len(names):05}.parquet")
        part.rename(directory / name)
        names.append(name)
    shutil.rmtree(unfinished)
    return names
