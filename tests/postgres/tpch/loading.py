"""TPC-H's tables on a server that speaks the protocol: created, filled by COPY."""

import io

import psycopg
import pyarrow as pa
from pyarrow import csv

from tests.postgres.tpch.generate import SCHEMA, tables

_CHUNK_ROWS = 200_000


def load(dsn: str, scale: float) -> None:
    """Create and fill all tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, table in tables(scale).items():
            connection.execute(f"create table {name} ({SCHEMA[name]})".encode())
            with connection.cursor() as cursor:
                into = f"copy {name} from stdin with (format csv)"
                with cursor.copy(into.encode()) as copying:
                    for batch in table.to_batches(_CHUNK_ROWS):
                        copying.write(_csv(batch))


def _csv(batch: pa.RecordBatch) -> bytes:
    text = io.BytesIO()
    csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
    return text.getvalue()
