"""Constant queries that take long stand in nobody's way (J1 of `coordinator/in_process.py`)."""

from threading import Thread

import psycopg
import pytest

from tests.session.stack import serving

LONG = (
    ("select regexp_count(repeat('ab', 60000), 'a')", None),
    ("select regexp_count(%s, 'a')", ["ab" * 60_000]),
    (f"select regexp_count('{'ab' * 60_000}', 'a')", None),
    ("select length(to_char(1, repeat('9', 120000)))", None),
)


@pytest.mark.parametrize(
    ("query", "parameters"), LONG, ids=["growing", "given", "written", "formatted"]
)
def test_others_go_on(query: str, parameters: list[str] | None) -> None:
    with serving() as dsn, psycopg.connect(dsn) as one, psycopg.connect(dsn) as other:
        taking = Thread(target=lambda: one.execute(query.encode(), parameters))
        taking.start()
        while taking.is_alive():
            other.execute("select 1")
            if one.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                break
        other.execute("select 1")
        assert taking.is_alive()
        taking.join()
        assert one.execute("select 2").fetchone() == (2,)


def test_they_can_be_cancelled() -> None:
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("select regexp_count(repeat('ab', 60000), 'a')")
        assert connection.execute("select length(repeat('ab', 6))").fetchone() == (12,)
