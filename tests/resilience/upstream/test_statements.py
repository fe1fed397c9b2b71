"""Random statements of the upstream, one transaction after the other, compared table by table.

The upstream is synchronous: when its COMMIT has returned, a strict read here is equal to it. Later
the same is asked for by AS OF.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest

from tests.resilience.upstream.feed import SETTINGS, source_of
from tests.support.servers import meridian, postgres_server
from tests.support.synchronous import commits_wait_for

OPTIONS = ("--spark-master", "none", "--set", "source_hosts=127.0.0.1")
LARGE = 9_000

SCHEMA = (
    "CREATE TABLE keyed (id int PRIMARY KEY, word text, n numeric(12,3), big text, at timestamptz)",
    "ALTER TABLE keyed ALTER COLUMN big SET STORAGE EXTERNAL",
    "CREATE TABLE pairs (a int, b text, v double precision, tags text[], PRIMARY KEY (a, b))",
    "CREATE TABLE bag (a int, b jsonb, c bytea)",
    "ALTER TABLE bag REPLICA IDENTITY FULL",
    "INSERT INTO keyed SELECT i, 'w' || i, i / 7.0, repeat('x', 9000), '2026-01-01' "
    "FROM generate_series(1, 20) i",
    "CREATE PUBLICATION everything FOR ALL TABLES",
)
COLUMNS = {"keyed": "id, word, n, big, at", "pairs": "a, b, v, tags", "bag": "a, b, c"}

Draw = Callable[[random.Random], str]


def _key(rng: random.Random) -> int:
    return rng.randint(1, 30)


def _insert_keyed(rng: random.Random) -> str:
    big = rng.choice(("NULL", f"repeat('{rng.randrange(10)}', {LARGE})", "'small'", "''"))
    n = rng.choice(("NULL", "0", "-1.5", "123456789.125", str(rng.random())))
    return (
        f"INSERT INTO keyed VALUES ({_key(rng)}, 'it''s {rng.randrange(9)}', {n}, {big}, "
        "'2026-02-03 04:05:06.789+02') ON CONFLICT (id) DO UPDATE SET word = excluded.word, n = 1"
    )


def _update_keyed(rng: random.Random) -> str:
    return f"UPDATE keyed SET word = word || 'u', n = n + 1 WHERE id % 3 = {rng.randrange(3)}"


def _grow(rng: random.Random) -> str:
    return f"UPDATE keyed SET big = repeat('{rng.randrange(10)}', {LARGE}) WHERE id = {_key(rng)}"


def _rename(rng: random.Random) -> str:
    step = rng.choice((31, 100, -100))
    return (
        f"UPDATE keyed SET id = id + {step} WHERE id = {_key(rng)} "
        f"AND NOT EXISTS (SELECT FROM keyed o WHERE o.id = keyed.id + {step})"
    )


def _swap(rng: random.Random) -> str:
    """A key goes and comes again within one transaction."""
    one = _key(rng)
    return (
        f"DELETE FROM keyed WHERE id = {one};"
        f"INSERT INTO keyed (id, word, big) VALUES ({one}, 'again', repeat('r', {LARGE}));"
        f"UPDATE keyed SET n = 5 WHERE id = {one}"
    )


def _savepoint(rng: random.Random) -> str:
    return (
        f"UPDATE pairs SET v = v * 2; SAVEPOINT s; DELETE FROM pairs; "
        f"INSERT INTO bag VALUES (1); ROLLBACK TO s; "
        f"INSERT INTO bag VALUES ({rng.randrange(4)}, '{{\"k\": [1, 2.50]}}', '\\x00ff')"
    )


def _pairs(rng: random.Random) -> str:
    v = rng.choice(("'NaN'", "'-0'", "'Infinity'", "1e-300", "0.1", "NULL"))
    tags = rng.choice(("NULL", "'{}'", "'{a,NULL,\"b c\"}'"))
    return (
        f"INSERT INTO pairs VALUES ({rng.randrange(5)}, '{rng.choice('xyz')}', {v}, {tags}) "
        "ON CONFLICT DO NOTHING"
    )


def _many(rng: random.Random) -> str:
    return (
        f"INSERT INTO bag SELECT i, to_jsonb(i), NULL FROM generate_series(1, 3000) i;"
        f"UPDATE bag SET c = '\\x01' WHERE a % 2 = {rng.randrange(2)} AND a > 5;"
        "DELETE FROM bag WHERE a > 10"
    )


STATEMENTS: Sequence[tuple[int, Draw]] = (
    (8, _insert_keyed),
    (6, _update_keyed),
    (5, _grow),
    (5, _rename),
    (4, _swap),
    (3, _savepoint),
    (5, _pairs),
    (1, _many),
    (2, lambda rng: f"DELETE FROM keyed WHERE id % 5 = {rng.randrange(5)}"),
    (2, lambda rng: f"DELETE FROM pairs WHERE a = {rng.randrange(5)}"),
    (2, lambda _: "UPDATE pairs SET b = b || 'q', v = v WHERE length(b) < 3 AND a = 2"),
    (3, lambda _: "DELETE FROM bag WHERE ctid = (SELECT ctid FROM bag LIMIT 1)"),
    (3, lambda rng: f"UPDATE bag SET b = 'null' WHERE a = {rng.randrange(4)}"),
    (1, lambda rng: f"TRUNCATE {rng.choice(('keyed', 'bag', 'pairs', 'keyed, bag'))}"),
    (1, lambda rng: f"ALTER TABLE keyed ADD COLUMN IF NOT EXISTS extra{rng.randrange(4)} int"),
    (1, lambda rng: f"ALTER TABLE keyed DROP COLUMN IF EXISTS extra{rng.randrange(4)}"),
    (1, lambda _: "TRUNCATE bag; INSERT INTO bag VALUES (7); UPDATE bag SET a = 8"),
)


def _content(connection: psycopg.Connection, schema: str, as_of: str = "") -> dict[str, object]:
    return {
        name: sorted(
            repr(row)
            for row in connection.execute(
                f"SELECT {columns} FROM {schema}.{name}{as_of}".encode()
            ).fetchall()
        )
        for name, columns in COLUMNS.items()
    }


def _compare(directory: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    weights, draws = zip(*STATEMENTS, strict=True)
    seen: list[tuple[int, dict[str, object]]] = []
    with (
        postgres_server(SETTINGS) as upstream,
        meridian(directory, OPTIONS) as server,
        psycopg.connect(upstream.dsn, autocommit=True) as there,
        psycopg.connect(server.dsn, autocommit=True) as here,
    ):
        for connection in (there, here):
            connection.execute("SET timezone = 'UTC'")
        for statement in SCHEMA:
            there.execute(statement.encode())
        for statement in source_of(upstream.port):
            here.execute(statement.encode())
        assert _content(here, "shop") == _content(there, "public")
        commits_wait_for(upstream.dsn, "feed")
        for number in range(count):
            text = ";".join(
                draw(rng) for draw in rng.choices(draws, weights, k=rng.choice((1, 1, 2, 4)))
            )
            try:
                there.execute(f"BEGIN; {text}; COMMIT".encode())
            except psycopg.errors.UniqueViolation:
                there.execute("ROLLBACK")
            expected = _content(there, "public")
            assert _content(here, "shop") == expected, f"{seed} {number}: {text}"
            if number % 10 == 0:
                (ts,) = here.execute("SELECT meridian.query_timestamp()").fetchone() or (0,)
                seen.append((ts, expected))
        for ts, expected in seen:
            assert _content(here, "shop", f" AS OF {ts}") == expected
        assert here.execute("SELECT count(*) FROM feed_errors").fetchall() == [(0,)]


def test_random_statements(tmp_path: Path) -> None:
    _compare(tmp_path, 1, 120)


@pytest.mark.slow
def test_a_thousand_random_statements(tmp_path: Path) -> None:
    _compare(tmp_path, 2, 1_000)
