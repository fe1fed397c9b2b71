"""Followers of the tests: what a subscription tells, and what is seen of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def told(dsn: str, statement: str) -> Iterator[tuple[psycopg.Connection, list[tuple[object, ...]]]]:
    """The rows of a subscription as they come, on a connection of its own."""
    rows: list[tuple[object, ...]] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        failure: list[psycopg.Error] = []

        def follow() -> None:
            try:
                rows.extend(connection.cursor().stream(statement.encode()))
            except psycopg.Error as error:
                failure.append(error)

        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield connection, rows
        finally:
            thread.join(30)
            assert not thread.is_alive()
            rows.extend((error.sqlstate, *_said(error)) for error in failure)


def _said(error: psycopg.Error) -> tuple[str | None, ...]:
    return (error.diag.message_primary, error.diag.message_detail, error.diag.message_hint)


def until(holds: Callable[[], object]) -> None:
    for _ in range(600):
        if holds():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never holds")


def subscriptions(connection: psycopg.Connection) -> int:
    found = connection.execute("select count(*) from meridian.subscriptions").fetchone()
    assert found is not None
    return int(found[0])


def cancel(connection: psycopg.Connection) -> None:
    """By a statement: libpq's own way waits for the server with the GIL, which runs here."""
    connection.execute("select pg_cancel_backend(pid) from meridian.subscriptions")


def now(connection: psycopg.Connection) -> int:
    found = connection.execute("select meridian_now()").fetchone()
    assert found is not None
    return int(found[0])
