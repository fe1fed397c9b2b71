"""Transactions that wait for each other: a job queue with SKIP LOCKED, a hot row in blocks.

queue      workers take jobs one by one until none is left; each job is handed out once
hot row    read it FOR UPDATE and change it, in a block, by many clients
blocks     one UPDATE of a row of its own in a block: what an uncontended lock costs
"""

import threading
import time

import psycopg

from tests.bench.pgbench import run_script
from tests.bench.sizes import Figures, Size
from tests.bench.transactions import connected, recreate

WORKERS = 8
JOBS = 300
HOT_CLIENTS = 16

ALONE = """
UPDATE bench_jobs SET done = true WHERE id = (
  SELECT id FROM bench_jobs WHERE NOT done ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1
) RETURNING id
"""
HOT_BLOCK = """
BEGIN;
SELECT n FROM bench_hot WHERE id = 1 FOR UPDATE;
UPDATE bench_hot SET n = n + 1 WHERE id = 1;
COMMIT;
"""
OWN_BLOCK = r"""
\set id random(1, 1000)
BEGIN;
UPDATE bench_hot SET n = n + 1 WHERE id = :id;
COMMIT;
"""


def waiting(dsn: str, size: Size) -> Figures:
    """Seconds for a queue of jobs, and blocks a second on one row."""
    figures: dict[str, float] = {}
    with connected(dsn) as connection:
        recreate(connection, "bench_jobs", "id int PRIMARY KEY, done bool NOT NULL")
        recreate(connection, "bench_hot", "id int PRIMARY KEY, n bigint NOT NULL")
        connection.execute("INSERT INTO bench_hot SELECT i, 0 FROM generate_series(1, 1000) i")
    for name, in_blocks in (("single statements", False), ("blocks", True)):
        with connected(dsn) as connection:
            connection.execute("DELETE FROM bench_jobs")
            connection.execute(
                f"INSERT INTO bench_jobs SELECT i, false FROM generate_series(1, {JOBS}) i"
            )
        seconds, failures = _drain(dsn, in_blocks=in_blocks)
        figures[f"queue, {WORKERS} workers, {JOBS} jobs, {name}: s"] = seconds
        figures[f"queue, {WORKERS} workers, {JOBS} jobs, {name}: refused"] = failures
    for clients in (1, HOT_CLIENTS):
        run = run_script(
            dsn, HOT_BLOCK, clients=clients, protocol="prepared", seconds=size.seconds, retries=True
        )
        figures[f"hot row in blocks, {clients} clients: blocks/s"] = run.per_second
    run = run_script(dsn, OWN_BLOCK, clients=1, protocol="prepared", seconds=size.seconds)
    figures["UPDATE of a row in a block, 1 client: blocks/s"] = run.per_second
    return figures


def _drain(dsn: str, *, in_blocks: bool) -> tuple[float, int]:
    """How long the workers take, and how often one of them was refused."""
    taken: list[int] = []
    failures: list[str] = []

    def work() -> None:
        with psycopg.connect(dsn, autocommit=not in_blocks) as connection:
            while True:
                try:
                    found = connection.execute(ALONE).fetchone()
                    if in_blocks:
                        connection.commit()
                except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as e:
                    failures.append(str(e))
                    connection.rollback()
                    continue
                if found is None:
                    return
                taken.append(found[0])

    began = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    assert sorted(taken) == list(range(1, JOBS + 1)), "each job is handed out once"
    return seconds, len(failures)
