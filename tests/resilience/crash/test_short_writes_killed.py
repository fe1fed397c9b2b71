"""Writes by key of many clients, whose server is killed again and again: none is lost or twice.

    adder     one hot row, n = n + 1, by UPDATE and ON CONFLICT ─▶ acknowledged: 1 each
    inserter  keys of its own, some of them twice               ─▶ acknowledged: key

INVARIANTS
  K1  the row counts every acknowledged statement, and no more than those that were sent.
  K2  every acknowledged key is there, once; a key that was refused (23505) was there before.
"""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from tests.support.servers import Meridian, meridian

CLIENTS = 8
WRITES = 600
KILLS = 3

ADDITIONS = (
    "update hot set n = n + 1 where id = 1",
    "insert into hot values (1, 1) on conflict (id) do update set n = hot.n + 1",
)


class Clients:
    """They write until enough was acknowledged, whatever becomes of the server."""

    def __init__(self, server: Meridian) -> None:
        self._server = server
        self._keys = itertools.count(1)
        self._lock = threading.Lock()
        self.sent = self.added = 0
        self.keys: list[int] = []
        self.twice: list[int] = []

    @property
    def acknowledged(self) -> int:
        """Statements of all kinds."""
        return self.added + len(self.keys)

    def run(self, kills: list[int]) -> None:
        """Kill the server when so much was acknowledged, and start it again."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._work, place) for place in range(CLIENTS)]
            for kill in kills:
                while self.acknowledged < kill and not all(c.done() for c in clients):
                    threading.Event().wait(0.005)
                self._server.kill()
                self._server.start()
            for client in clients:
                client.result()

    def _work(self, place: int) -> None:
        while self.acknowledged < WRITES:
            try:
                with psycopg.connect(self._server.dsn, autocommit=True) as connection:
                    while self.acknowledged < WRITES:
                        self._write(connection, place)
            except psycopg.OperationalError:
                threading.Event().wait(0.05)

    def _write(self, connection: psycopg.Connection, place: int) -> None:
        with self._lock:
            key = next(self._keys)
            self.sent += place % 2 == 0
        if place % 2 == 0:
            text = ADDITIONS[key % 2]
            prepared = None if place % 4 else True
            connection.execute(text.encode(), prepare=prepared)
            with self._lock:
                self.added += 1
            return
        connection.execute("insert into keyed values (%s, 'x')", (key,), prepare=True)
        with self._lock:
            self.keys.append(key)
        if key % 5 == 0:
            try:
                connection.execute(f"insert into keyed values ({key}, 'y')".encode())
            except psycopg.errors.UniqueViolation:
                return
            with self._lock:
                self.twice.append(key)


def test_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    with meridian(tmp_path, ("--spark-master", "none")) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create table hot (id int primary key, n int)")
            connection.execute("insert into hot values (1, 0)")
            connection.execute("create table keyed (a bigint primary key, b text)")
        clients = Clients(server)
        clients.run([WRITES * place // (KILLS + 1) for place in range(1, KILLS + 1)])
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            row = connection.execute("select n from hot").fetchone()
            found = connection.execute("select a from keyed order by a").fetchall()
    assert row is not None
    assert clients.added <= row[0] <= clients.sent  # K1
    there = [key for (key,) in found]
    assert len(there) == len(set(there))  # K2
    assert set(clients.keys) <= set(there)
    assert clients.twice == []
