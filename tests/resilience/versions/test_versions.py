"""A data directory written by an earlier version opens, answers as before, checks and goes on."""

from pathlib import Path

import psycopg
import pytest

from tests.resilience.versions.archives import OPTIONS, answers, archives, recorded, run, unpacked
from tests.resilience.versions.contents import GOES_ON, REFUSED
from tests.support.servers import Meridian


def test_there_are_versions() -> None:
    assert archives()


@pytest.mark.parametrize("name", archives())
def test_a_version_opens_serves_and_checks(name: str, tmp_path: Path) -> None:
    unpacked(name, tmp_path)
    server = Meridian(tmp_path, OPTIONS)
    assert server.check().returncode == 0, "clean as it was left"
    try:
        dsn = server.start()
        assert answers(dsn) == recorded(name), "the tail is still in the txns shard"
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement, sqlstate in REFUSED:
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute(statement.encode())
                assert refused.value.sqlstate == sqlstate, statement
        assert server.stop() == 0
        assert server.check().returncode == 0, "after the flush of the tail"
        dsn = server.start()
        assert answers(dsn) == recorded(name), "from files alone"
        run(dsn, GOES_ON)
        assert server.stop() == 0
    finally:
        server.kill()
    assert server.check().returncode == 0, "after writes by this version"
