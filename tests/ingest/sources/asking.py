"""Statements, their rows and refusals."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


def rows(client: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    """The answer."""
    return client.execute(query.encode()).fetchall()


def refused(client: psycopg.Connection, statement: str) -> psycopg.Error:
    """The error; the statement has to fail."""
    with pytest.raises(psycopg.Error) as caught:
        client.execute(statement.encode())
    return caught.value


def refusal(client: psycopg.Connection, statement: str) -> tuple[str | None, str | None]:
    """Its SQLSTATE and message."""
    error = refused(client, statement)
    return error.sqlstate, error.diag.message_primary


def notices(client: psycopg.Connection, statement: str) -> list[str | None]:
    """What the statement tells."""
    told: list[str | None] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        told.append(diagnostic.message_primary)

    client.add_notice_handler(hear)
    try:
        client.execute(statement.encode())
    finally:
        client.remove_notice_handler(hear)
    return told
