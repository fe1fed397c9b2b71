"""The server's side of connections that nobody serves."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import uvloop

from coordinator.config import Settings
from coordinator.execution.context import Services
from coordinator.execution.views.attempts import CatchUpLog
from coordinator.server.connection import Connection
from coordinator.server.server import Server
from storage.clock import SystemClock


def test_who_connects_while_the_server_ends_is_turned_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert uvloop.run(_connect_after_the_group_has_failed(tmp_path)) == b""
    assert not caplog.records


@dataclass
class _Services:
    clock: SystemClock = field(default_factory=SystemClock)
    sessions: object = None
    memory: object = None
    counters: object = None
    statistics: object = None
    catch_up: CatchUpLog = field(default_factory=CatchUpLog)


async def _accept_and_fail(server: Server, services: Services) -> None:
    async with asyncio.TaskGroup() as group:
        await server.accept(group, services)
        raise RuntimeError("the driver has failed")


async def _connect_after_the_group_has_failed(place: Path) -> bytes:
    server = Server(Settings(listen="127.0.0.1:0", data_dir=str(place)), Connection)
    port = await server.bind()
    # Nobody gets as far as to ask for the others.
    services = cast(Services, _Services())
    with pytest.raises(ExceptionGroup) as failed:
        await _accept_and_fail(server, services)
    # Nothing else has: what the services do not have, say.
    assert [str(error) for error in failed.value.exceptions] == ["the driver has failed"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()
        await server.stop()
