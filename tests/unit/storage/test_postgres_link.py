"""What a link to the stash says when it cannot be made."""

import asyncio

import asyncpg
import pytest

from storage.errors import Determinate
from storage.postgres_link import Link


def test_the_reason_is_told_also_if_the_last_attempt_had_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = 0

    async def connect(*_: object, **__: object) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise asyncpg.InvalidCatalogNameError("there is no such database")
        await asyncio.Event().wait()

    async def open_link() -> None:
        link = Link("postgresql://nowhere", name="test")
        await link.open(asyncio.get_running_loop().time() + 0.2)

    monkeypatch.setattr(asyncpg, "connect", connect)
    with pytest.raises(Determinate, match="there is no such database"):
        asyncio.run(open_link())
    assert attempts > 1
