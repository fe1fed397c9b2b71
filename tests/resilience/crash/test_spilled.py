"""A transaction larger than its memory, on the real server: committed, flushed, killed, checked."""

from pathlib import Path

import psycopg

from tests.support.servers import meridian

ROWS = 20_000
OPTIONS = (
    "--spark-master", "reference",
    "--set", "inline_bytes_max=4096",
    "--set", "transaction_inline_bytes_max=8192",
)  # fmt: skip


def parquet(data: Path) -> set[str]:
    """Data files in the warehouse."""
    return {path.name for path in data.glob("warehouse/*/*.parquet")}


def test_what_was_spilled_is_there_after_a_kill(tmp_path: Path) -> None:
    with meridian(tmp_path, OPTIONS) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table t (a int, b text)")
            connection.commit()
            for number in range(300):
                connection.execute("insert into t values (%s, 'a row of some length')", (number,))
            with connection.cursor().copy("copy t from stdin") as copy:
                for number in range(1000, 1000 + ROWS):
                    copy.write_row((number, "copied"))
            connection.execute("delete from t where a % 2 = 1")
            connection.execute("savepoint s")
            connection.execute("delete from t")
            connection.execute("insert into t select a, b from (values (1, 'x'), (2, 'y')) v(a, b)")
            connection.execute("rollback to s")
            connection.execute("update t set b = 'new' where a < 10")
            connection.commit()
        answers = []
        for _ in range(2):
            with psycopg.connect(server.dsn) as connection:
                answers.append(
                    connection.execute(
                        "select count(*), sum(a), count(*) filter (where b = 'new') from t"
                    ).fetchone()
                )
            server.kill()
            server.start()
        with psycopg.connect(server.dsn) as connection:
            connection.execute("insert into t values (-1, 'later')")
        assert server.stop() == 0
        checked = server.check()
        assert checked.returncode == 0, checked.stdout
        server.start()
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("select count(*) from t").fetchone() == (150 + ROWS // 2 + 1,)
    expected = sum(range(0, 300, 2)) + sum(range(1000, 1000 + ROWS, 2))
    assert answers == [(150 + ROWS // 2, expected, 5)] * 2


def test_what_was_rolled_back_leaves_no_file(tmp_path: Path) -> None:
    with meridian(tmp_path, OPTIONS) as server:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("create table t (a int, b text)")
            connection.commit()
            before = parquet(server.data)
            with connection.cursor().copy("copy t from stdin") as copy:
                for number in range(ROWS):
                    copy.write_row((number, "copied"))
            assert parquet(server.data) > before
            connection.rollback()
        assert server.stop() == 0
        assert not parquet(server.data) - before
        assert "orphan" not in server.check().stdout
