"""What log-ins and TLS cost: connect and `SELECT 1`, and 64 clients that insert one row each time.

connect    by trust, by SCRAM, by SCRAM over TLS; PostgreSQL of PyPI has no TLS: it does two of them
inserts    commits a second of 64 clients of asyncpg, over TLS and without
"""

import asyncio
import ssl
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import psycopg
import trustme

from tests.bench.sizes import Figures
from tests.support.servers import meridian, postgres_server

CONNECTS = 200
CLIENTS = 64
PASSWORD = "sesame"
RULES = """\
host    trusted  all  all  trust
hostssl all      all  all  scram-sha-256
host    all      all  all  scram-sha-256
"""
_RULES_HERE = RULES.replace("trusted", "postgres")


def measure_doors(seconds: int) -> tuple[Figures, Figures]:
    """Of Meridian and of PostgreSQL."""
    with tempfile.TemporaryDirectory(prefix="doors-") as place:
        ours = _of_meridian(Path(place), seconds)
    return ours, _of_postgres()


def _of_meridian(place: Path, seconds: int) -> Figures:
    (place / "hba").write_text(_RULES_HERE)
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1")
    (place / "key").touch(0o600)
    pair.private_key_pem.write_to_path(str(place / "key"))
    pair.cert_chain_pems[0].write_to_path(str(place / "crt"))
    named = {"hba_file": "hba", "ssl_cert_file": "crt", "ssl_key_file": "key"}
    options = ["--spark-master", "none"]
    options += [f"--set={name}={place / file}" for name, file in named.items()]
    with meridian(place, options, {"MERIDIAN_PASSWORD": PASSWORD}) as server:
        port = urlsplit(server.dsn).port or 0
        here = f"host=127.0.0.1 port={port} user=meridian password={PASSWORD} dbname="
        found = {
            "connect and SELECT 1, trust: p50 ms": _connects(f"{here}postgres sslmode=disable"),
            "connect and SELECT 1, SCRAM: p50 ms": _connects(f"{here}meridian sslmode=disable"),
            "connect and SELECT 1, SCRAM over TLS: p50 ms": _connects(
                f"{here}meridian sslmode=require"
            ),
        }
        context = ssl.create_default_context()
        authority.configure_trust(context)
        plain = asyncio.run(_inserts(port, None, seconds))
        secure = asyncio.run(_inserts(port, context, seconds))
        found[f"INSERT, {CLIENTS} clients: commits/s"] = plain
        found[f"INSERT, {CLIENTS} clients over TLS: commits/s"] = secure
        found[f"INSERT, {CLIENTS} clients, TLS beside none: ratio"] = secure / plain
        return found


def _of_postgres() -> Figures:
    with postgres_server() as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"alter role postgres password '{PASSWORD}'".encode())
            connection.execute("create database meridian")
            row = connection.execute("show hba_file").fetchone()
            assert row is not None, "SHOW has one row"
            Path(row[0]).write_text(_RULES_HERE)
            connection.execute("select pg_reload_conf()")
        here = f"host=127.0.0.1 port={server.port} user=postgres password={PASSWORD} dbname="
        return {
            "connect and SELECT 1, trust: p50 ms": _connects(f"{here}postgres"),
            "connect and SELECT 1, SCRAM: p50 ms": _connects(f"{here}meridian"),
        }


def _connects(place: str) -> float:
    """The median of some log-ins with a query each, in milliseconds."""
    taken: list[float] = []
    for _ in range(CONNECTS):
        begun = time.perf_counter()
        with psycopg.connect(place) as connection:
            connection.execute("select 1")
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


async def _inserts(port: int, context: ssl.SSLContext | None, seconds: int) -> float:
    """Commits a second."""
    here = {"host": "127.0.0.1", "port": port, "user": "meridian", "database": "meridian"}
    clients = [
        await asyncpg.connect(**here, password=PASSWORD, ssl=context or False)
        for _ in range(CLIENTS)
    ]
    try:
        await clients[0].execute("drop table if exists bench_doors")
        await clients[0].execute("create table bench_doors (id bigint, t text)")
        begun = time.perf_counter()

        async def insert(connection: asyncpg.Connection) -> int:
            done = 0
            while time.perf_counter() - begun < seconds:
                await connection.execute("insert into bench_doors values ($1, 'some text')", done)
                done += 1
            return done

        return sum(await asyncio.gather(*map(insert, clients))) / (time.perf_counter() - begun)
    finally:
        for connection in clients:
            await connection.close()
