"""Clients that make trouble for others, and for the server: cancel, terminate, vanish, kill.

They are left alone themselves (`CONTROL`), but for those who vanish.
"""

import contextlib
import os
import random
import signal
import time
from typing import Final

import psycopg

from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import Bind, CopyData, Execute, Parse, Query
from tests.resilience.faults.clients import state_of
from tests.resilience.soak.askers import LONG
from tests.resilience.soak.crowd import CONTROL, Connection, Crowd, keep_on
from tests.support.processes import children
from tests.support.servers import Meridian
from tests.support.wire import WireClient

CANCEL_S: Final = 0.4
"""Between two storms. Shorter: fewer statements come to their end."""
TERMINATE_S: Final = 1.0
KILL_JVM_S: Final = 20.0

_OTHERS: Final = (
    "SELECT pg_{}_backend(pid) FROM"
    f" (SELECT pid FROM pg_stat_activity WHERE application_name <> '{CONTROL}'"
    " AND backend_type = 'client backend' ORDER BY random() LIMIT {}) t"
)


def cancel_others(crowd: Crowd, name: str) -> None:
    """Storms of pg_cancel_backend(): everybody at once, now and then."""
    _strike_on(crowd, name, "cancel", CANCEL_S, most=100)


def terminate_others(crowd: Crowd, name: str) -> None:
    """pg_terminate_backend(), a few at a time."""
    _strike_on(crowd, name, "terminate", TERMINATE_S, most=3)


def _strike_on(crowd: Crowd, name: str, verb: str, pause_s: float, *, most: int) -> None:
    rng = random.Random(name)
    with crowd.present(name), psycopg.connect(crowd.as_control(), autocommit=True) as connection:
        while not crowd.ended.wait(pause_s):
            count = rng.choice((1, min(most, 8), most))
            try:
                struck = connection.execute(_OTHERS.format(verb, count).encode()).fetchall()
            except psycopg.Error as error:
                crowd.found("control refused", f"{state_of(error)} {error}")
                return
            for _ in struck:
                crowd.counted(f"{verb}s")


def cancel_own(crowd: Crowd, name: str) -> None:
    """A long statement, and a CancelRequest while it runs; the session goes on."""

    def step(connection: Connection, rng: random.Random) -> None:
        crowd.rest(rng, 0.5)
        connection.pgconn.send_query(LONG.encode())
        time.sleep(rng.random() * 0.1)
        connection.cancel_safe()
        while (result := connection.pgconn.get_result()) is not None:
            state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
            if state and state != "57014":
                crowd.told(state, "after a CancelRequest")
        if connection.pgconn.status == psycopg.pq.ConnStatus.OK:
            [[seven]] = connection.execute("SELECT 7").fetchall()
            if seven != 7:
                crowd.found("wrong answer", f"{seven} instead of 7 after a CancelRequest")

    keep_on(crowd, name, step)


def vanish(crowd: Crowd, name: str) -> None:
    """Be gone in the middle of something, without a word."""
    rng = random.Random(name)
    bound = (Parse("", "SELECT s FROM big", ()), Bind("", "", (), (), ()), Execute("", 10))
    with crowd.present(name):
        while not crowd.ended.wait(rng.random()):
            with contextlib.suppress(OSError):
                client = WireClient(crowd.dsn)
                roll = rng.randrange(6)
                if roll == 0:
                    client.send(Query(LONG))
                elif roll == 1:
                    client.send(Query("SELECT a.s, b.s FROM big a JOIN big b ON a.k = b.k"))
                elif roll == 2:
                    client.send(Query("COPY bulk FROM STDIN"), CopyData(b"-1\t1\tgone\n" * 1_000))
                elif roll == 3:
                    client.send(*bound)
                elif roll == 4:
                    client.send(Query("BEGIN"), Query("UPDATE own SET n = n + 1 WHERE id = -1"))
                else:
                    client.send_bytes(encode_frontend(Query("x" * 100_000))[:50_000])
                crowd.ended.wait(rng.random() * 0.1)
                client.reset()
                crowd.counted("vanished")


def kill_jvms(crowd: Crowd, name: str, server: Meridian) -> None:
    """kill -9 of the JVM alone: the server starts another one."""
    with crowd.present(name):
        while not crowd.ended.wait(KILL_JVM_S):
            for child in children(server.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                crowd.counted("JVMs killed")
