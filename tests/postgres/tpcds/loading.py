"""TPC-DS's tables on a server that speaks the protocol: created, filled by COPY."""

import psycopg

from tests.postgres.tpcds.generate import SCHEMA, tables


def load(dsn: str) -> None:
    """Create and fill all tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in SCHEMA.split(";"):
            if statement.strip():
                connection.execute(statement.encode())
        for name, rows in tables():
            with (
                connection.cursor() as cursor,
                cursor.copy(f"copy {name} from stdin".encode()) as copying,
            ):
                for row in rows:
                    copying.write_row(row)
