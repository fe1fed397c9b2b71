"""A queue of jobs, whose server is killed again and again: each job is handed out once.

    worker: takes a job with SKIP LOCKED, writes a token of its own to it ──▶ jobs, done
       └─ acknowledged: (job, token)          kill -9 ─▶ connection lost ─▶ connects again

INVARIANTS
  Q1  a token is of one try. A job that was acknowledged has its token at the end, and one alone.
  Q2  in blocks the job is marked and told in `done` by one commit: both, or neither.
  Q3  workers are refused nothing (40001, 40P01): one that finishes a job disturbs no other.
"""

import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import Meridian, meridian

WORKERS = 8
JOBS = 150
KILLS = 3

ALONE = """
update jobs set token = %(token)s where id = (
  select id from jobs where token is null order by id for update skip locked limit 1
) returning id
"""
CHOSEN = "select id from jobs where token is null order by id for update skip locked limit 1"


class Workers:
    """They take jobs until none is left, whatever becomes of the server."""

    def __init__(self, server: Meridian, level: str) -> None:
        self._server = server
        self._level = level
        self._tokens = itertools.count(1)
        self._lock = threading.Lock()
        self.acknowledged: list[tuple[int, int]] = []
        self.refused: list[str] = []
        self.lost = 0

    def run(self, kills: list[int]) -> None:
        """Kill the server when so many jobs were acknowledged, and start it again."""
        with ThreadPoolExecutor(WORKERS) as pool:
            workers = [pool.submit(self._work, place) for place in range(WORKERS)]
            for kill in kills:
                while len(self.acknowledged) < kill and not all(w.done() for w in workers):
                    threading.Event().wait(0.005)
                self._server.kill()
                self._server.start()
            for worker in workers:
                worker.result()

    def _work(self, place: int) -> None:
        in_blocks = place % 2 == 1
        while True:
            try:
                with psycopg.connect(self._server.dsn, autocommit=True) as connection:
                    level = f"set default_transaction_isolation = '{self._level}'"
                    connection.execute(level.encode())
                    while self._take(connection, in_blocks=in_blocks):
                        pass
                    return
            except psycopg.OperationalError:
                with self._lock:
                    self.lost += 1
                threading.Event().wait(0.05)

    def _take(self, connection: psycopg.Connection, *, in_blocks: bool) -> bool:
        """Whether there was a job, or a refusal."""
        with self._lock:
            token = next(self._tokens)
        try:
            job = _in_block(connection, token) if in_blocks else _alone(connection, token)
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
            with self._lock:
                self.refused.append(str(error))
            return True
        if job is not None:
            with self._lock:
                self.acknowledged.append((job, token))
        return job is not None


def _alone(connection: psycopg.Connection, token: int) -> int | None:
    found = connection.execute(ALONE, {"token": token}).fetchone()
    return None if found is None else found[0]


def _in_block(connection: psycopg.Connection, token: int) -> int | None:
    with connection.transaction():
        found = connection.execute(CHOSEN).fetchone()
        if found is None:
            return None
        connection.execute("insert into done values (%s, %s)", (found[0], token))
        connection.execute("update jobs set token = %s where id = %s", (token, found[0]))
    return int(found[0])


@pytest.mark.parametrize("level", ["serializable", "read committed"])
def test_each_job_is_handed_out_once(tmp_path: Path, level: str) -> None:
    rng = random.Random(level)
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table jobs (id int primary key, token int)")
            connection.execute("create table done (id int, token int)")
            connection.execute(f"insert into jobs select i from generate_series(1, {JOBS}) i")
        workers = Workers(server, level)
        workers.run(sorted(rng.sample(range(5, JOBS - 20), KILLS)))
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            tokens = dict(connection.execute("select id, token from jobs").fetchall())
            done = connection.execute("select id, token from done").fetchall()
    acknowledged = dict(workers.acknowledged)
    assert workers.lost >= KILLS, "every kill should catch somebody in the middle"
    assert None not in tokens.values()
    assert len(acknowledged) == len(workers.acknowledged), "Q1"
    assert acknowledged.items() <= tokens.items(), "Q1"
    assert len(dict(done)) == len(done), "Q2"
    assert set(done) <= tokens.items(), "Q2"
    assert not workers.refused, "Q3"
