"""The queries of TPC-H as materialized views that commits maintain, over refresh streams.

After each refresh all of them are exact, and their stored rows are those of their queries. Some at
scale 0.01 are a part of `make test`; all 22 at scale 0.1 one of `make views`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.queries.statement_files import cases_of
from tests.postgres.tpch.loading import load
from tests.postgres.tpch.refresh_streams import Refresh, short_streams, streams
from tests.postgres.tpch.test_tpch import QUERIES
from tests.support.servers import meridian

WAYS = {
    "q01": "sums",
    "q02": "full",
    "q03": "full",
    "q04": "sums",
    "q05": "sums",
    "q06": "sums",
    "q07": "sums",
    "q08": "sums",
    "q09": "sums",
    "q10": "full",
    "q11": "full",
    "q12": "sums",
    "q13": "sums",
    "q14": "sums",
    "q15": "changes",
    "q16": "full",
    "q17": "sums",
    "q18": "full",
    "q19": "sums",
    "q20": "changes",
    "q21": "full",
    "q22": "sums",
}
"""How each is maintained; those with LIMIT are full."""
INCREMENTAL_MIN = 15

ORDERED_BY = {
    "q02": "s_acctbal, n_name, s_name, p_partkey",
    "q03": "revenue, o_orderdate",
    "q10": "revenue",
    "q16": "supplier_cnt, p_brand, p_type, p_size",
    "q18": "o_totalprice, o_orderdate",
    "q21": "numwait, s_name",
}
"""Among peers LIMIT may take any, so only what a query is ordered by has one right answer."""

IN_SHORT = ("q01", "q02", "q04", "q13", "q15", "q17")
CASES = {f"q{number:02d}": case.text for number, case in enumerate(cases_of(QUERIES), 1)}
OPTIONS = ("--spark-master", "none", "--set", "view_budget_ms=600000")
STATES = "select table_name, state, given_up_because from meridian.materialized_views"

Client = psycopg.Connection[tuple[Any, ...]]


def create(client: Client, names: tuple[str, ...]) -> dict[str, str]:
    """Make the views; how EXPLAIN says that each is maintained."""
    ways: dict[str, str] = {}
    for name in names:
        text = f"create materialized view {name} with (refresh = 'on commit') as {CASES[name]}"
        lines = [str(line) for (line,) in client.execute(f"explain {text}".encode())]
        (said,) = [line for line in lines if line.startswith("Maintenance: ")]
        ways[name] = said.removeprefix("Maintenance: ").partition(" (")[0]
        client.execute(text.encode())
    return ways


def rows(client: Client, name: str, reads: str) -> Counter[tuple[Any, ...]]:
    client.execute(f"set view_reads = {reads}".encode())
    return Counter(client.execute(f"select {ORDERED_BY.get(name, '*')} from {name}".encode()))


def check(client: Client, names: tuple[str, ...], refresh: Refresh) -> set[str]:
    """Play a refresh; every view is exact and right. The views whose rows have changed."""
    before = {name: rows(client, name, "stored") for name in names}
    with client.transaction():
        for text in refresh.statements:
            assert client.execute(text.encode()).rowcount > 0, text
    states = {name: (state, reason) for name, state, reason in client.execute(STATES)}
    assert states == dict.fromkeys(names, ("exact", None)), refresh.name
    changed: set[str] = set()
    for name in names:
        stored = rows(client, name, "stored")
        assert stored == rows(client, name, "definition"), (refresh.name, name)
        if stored != before[name]:
            changed.add(name)
    return changed


def follow(place: Path, scale: float, names: tuple[str, ...], played: Sequence[Refresh]) -> None:
    with meridian(place, OPTIONS) as server:
        load(server.dsn, scale)
        with psycopg.connect(server.dsn, autocommit=True) as client:
            client.execute("set engine = local")
            assert create(client, names) == {name: WAYS[name] for name in names}
            changed = set[str]()
            for refresh in played:
                changed |= check(client, names, refresh)
            assert changed == {*names}


def test_enough_are_incremental() -> None:
    assert list(WAYS) == list(CASES)
    assert sum(way != "full" for way in WAYS.values()) >= INCREMENTAL_MIN


def test_some_over_refresh_streams(tmp_path: Path) -> None:
    follow(tmp_path, 0.01, IN_SHORT, short_streams(0.01))


@pytest.mark.slow
def test_all_over_refresh_streams(tmp_path: Path) -> None:
    follow(tmp_path, 0.1, tuple(CASES), streams(0.1))
