"""Statements of one string are found as templates, as those that are sent alone."""

import asyncio
from collections.abc import Sequence

import pytest

from coordinator.pgwire.client_codec import row_values
from coordinator.pgwire.messages import (
    BackendMessage,
    CommandComplete,
    DataRows,
    ErrorResponse,
    Query,
)
from coordinator.session.statement_binder import StatementBinder
from sql.binder.state import BindContext
from tests.support.connections import on_a_loop
from tests.support.stack import running
from tests.support.wire import WireClient


class Bound:
    """How often a statement was bound."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        context = StatementBinder.context

        def counted(binder: StatementBinder, *args: object, **options: object) -> BindContext:
            self.count += 1
            return context(binder, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(StatementBinder, "context", counted)


def _asked(dsn: str, texts: Sequence[str]) -> list[list[BackendMessage]]:
    with WireClient(dsn) as client:
        found: list[list[BackendMessage]] = []
        for text in texts:
            client.send(Query(text))
            found.append(client.answers(1))
        return found


@on_a_loop
async def test_each_shape_of_a_string_is_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    string = "".join([f"insert into t values ({n}, 'x{n}'); select {n};" for n in range(100)])
    async with running() as stack:
        await asyncio.to_thread(_asked, stack.dsn, ["create table t (a int, b text)"])
        bound = Bound(monkeypatch)
        (told,) = await asyncio.to_thread(_asked, stack.dsn, [string])
        assert sum(isinstance(message, CommandComplete) for message in told) == 200
        assert bound.count < 20


@on_a_loop
async def test_places_are_those_in_the_string() -> None:
    good = "insert into t values (1, 'ü'); " * 3
    async with running() as stack:
        await asyncio.to_thread(_asked, stack.dsn, ["create table t (a int, b text)"])
        for bad, place in (("insert into t values (1, 'x', 3)", 31), ("select nope", 8)):
            told = (await asyncio.to_thread(_asked, stack.dsn, [good + bad]))[0]
            (error,) = [message for message in told if isinstance(message, ErrorResponse)]
            assert dict(error.fields)["P"] == str(len(good) + place)


@on_a_loop
async def test_a_syntax_error_anywhere_refuses_the_string() -> None:
    texts = [
        "create table t (a int)",
        "insert into t values (1); insert into t values (2); insert into t values (3); nope",
        "begin; insert into t values (1); insert into t values (2); commit; nope",
        "select count(*) from t",
    ]
    async with running() as stack:
        *_, first, second, count = await asyncio.to_thread(_asked, stack.dsn, texts)
        for told in (first, second):
            assert not any(isinstance(message, CommandComplete) for message in told)
        assert [row_values(message.data) for message in count if isinstance(message, DataRows)] == [
            (b"0",)
        ]
