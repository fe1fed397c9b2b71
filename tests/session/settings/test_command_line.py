"""`meridian serve` and `check` as processes: one line and exit code 1, or ready and exit code 0."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.servers import Meridian

QUICK = ("--spark-master", "reference")


def meridian(*arguments: str) -> tuple[int, str, str]:
    """Run a command to its end: exit code, stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "coordinator.main", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_port_in_use_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = meridian("serve", "--listen", listen, "--data-dir", str(data), *QUICK)
    assert (code, out) == (1, "")
    assert err == f"meridian: cannot listen on {listen}: address already in use\n"
    assert not data.exists()


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = meridian(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file"), *QUICK
    )
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("meridian: ")


def test_unknown_settings_are_refused() -> None:
    assert meridian("serve", "--set", "nonsense=1") == (
        1, "", 'meridian: unrecognized configuration parameter "nonsense"\n',
    )  # fmt: skip


def test_a_life(tmp_path: Path) -> None:
    server = Meridian(tmp_path, QUICK)
    try:
        with psycopg.connect(server.start(), autocommit=True) as connection:
            connection.execute("create table t (a int4)")
            connection.execute("insert into t values (1), (2)")
            code, _, err = meridian(
                "serve", "--listen", "127.0.0.1:0", "--data-dir", str(server.data)
            )
            assert code == 1
            assert "is in use by process" in err
        server.kill()
        with psycopg.connect(server.start(), autocommit=True) as connection:
            assert connection.execute("select count(*) from t").fetchone() == (2,)
        assert server.stop() == 0
        checked = server.check()
        assert (checked.returncode, checked.stdout) == (0, "checked 1 tables: ok\n")
    finally:
        server.kill()


def test_a_warehouse_without_its_stash_is_not_served_as_if_empty(tmp_path: Path) -> None:
    server = Meridian(tmp_path, QUICK)
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("create table t (a int4)")
        connection.execute("insert into t values (1)")
    assert server.stop() == 0
    for left in server.data.glob("stash.db*"):
        left.unlink()
    code, out, err = meridian(
        "serve", "--listen", "127.0.0.1:0", "--data-dir", str(server.data), *QUICK
    )
    assert (code, out) == (1, "")
    assert err == (
        "meridian: the stash is empty, but the warehouse has tables: the stash was lost\n"
    )


def test_a_warehouse_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "warehouse"
    listen, data = ("--listen", "127.0.0.1:0"), ("--data-dir", str(tmp_path / "data"))
    code, out, err = meridian("serve", *listen, *data, "--warehouse", str(place), *QUICK)
    assert (code, out) == (1, "")
    assert err == f"meridian: cannot open the warehouse {place}: no such directory\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_standby_without_a_word(number: int, tmp_path: Path) -> None:
    first, second = Meridian(tmp_path, QUICK), Meridian(tmp_path, QUICK)
    try:
        first.start()
        second.launch("--standby")
        while "standing by" not in second.log:
            assert second.is_running
        second.signal(number)
        assert second.wait() == 0
        assert "Traceback" not in second.log
    finally:
        second.kill()
        first.kill()


def test_a_directory_that_is_removed_while_it_runs_fences_its_table(tmp_path: Path) -> None:
    server = Meridian(tmp_path, QUICK)
    try:
        with psycopg.connect(server.start(), autocommit=True) as connection:
            for name in ("bad", "good"):
                connection.execute(f"create table {name} (a int4)")  # type: ignore[arg-type]
                connection.execute(f"insert into {name} values (1)")  # type: ignore[arg-type]
                connection.execute(f"optimize {name}")  # type: ignore[arg-type]
            shards = connection.execute("select table_name, shard from meridian.cuts").fetchall()
            shutil.rmtree(server.data / "warehouse" / str(dict(shards)["bad"]))
            # The stash keeps what is acknowledged; the flush of it meets what is not there.
            connection.execute("insert into bad values (2)")
            with pytest.raises(psycopg.Error):
                connection.execute("optimize bad")
            for query in ("select * from bad", "insert into bad values (3)"):
                with pytest.raises(psycopg.errors.DataCorrupted, match='table "bad" is damaged'):
                    connection.execute(query)
            connection.execute("insert into good values (2)")
            connection.execute("optimize good")
            assert connection.execute("select count(*) from good").fetchone() == (2,)
        assert server.stop() == 0
        with psycopg.connect(server.start(), autocommit=True) as connection:
            with pytest.raises(psycopg.errors.DataCorrupted, match='table "bad" is damaged'):
                connection.execute("select * from bad")
            connection.execute("drop table bad")
            assert connection.execute("select count(*) from good").fetchone() == (2,)
        assert server.stop() == 0
        assert "Traceback" not in server.log
    finally:
        server.kill()


def test_what_could_not_be_flushed_at_the_end_is_told(tmp_path: Path) -> None:
    server = Meridian(tmp_path, QUICK)
    try:
        with psycopg.connect(server.start(), autocommit=True) as connection:
            for name in ("bad", "good"):
                connection.execute(f"create table {name} (a int4)")  # type: ignore[arg-type]
                connection.execute(f"optimize {name}")  # type: ignore[arg-type]
            shards = connection.execute("select table_name, shard from meridian.cuts").fetchall()
            log = server.data / "warehouse" / str(dict(shards)["bad"]) / "_delta_log"
            log.rename(log.with_name("away"))
            log.write_text("in the way")
            connection.execute("insert into bad values (1)")
            connection.execute("insert into good values (1)")
        assert server.stop() == 1
        assert "the stash keeps what is missing and the next start writes it: public.bad\n" in (
            server.log
        )
        log.unlink()
        log.with_name("away").rename(log)
        with psycopg.connect(server.start(), autocommit=True) as connection:
            assert connection.execute("select a from bad join good using (a)").fetchone() == (1,)
        assert server.stop() == 0
    finally:
        server.kill()
