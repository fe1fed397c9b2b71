"""Metrics: listed on their page, read by Prometheus' own parser, and equal to what clients count.

`REWRITE=1` writes the table of the page.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.metrics import ALWAYS, METRICS, SQLSTATE_CLASSES
from coordinator.server_counters import (
    SECONDS_BOUNDS,
    STATEMENT_KINDS,
    TAGS_MAX,
    Durations,
    ServerCounters,
)
from tests.session.monitoring.http_client import Samples, get, scrape, value
from tests.support.servers import Meridian, free_port, meridian

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
HEADER = "| metric | type | unit | labels | meaning |\n| --- | --- | --- | --- | --- |\n"
SHOWN_VALUES = 11
"""Longer lists of a label's values are cut."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Meridian, int]]:
    port = free_port()
    options = ("--spark-master", "none", "--set", f"http_listen=127.0.0.1:{port}")
    with meridian(tmp_path_factory.mktemp("metrics"), options) as server:
        yield server, port


# --- the page -------------------------------------------------------------------------------------


def _labels(label: str, values: tuple[str, ...]) -> str:
    if not label:
        return ""
    shown = ", ".join(f"`{one}`" for one in values[:SHOWN_VALUES])
    return f"`{label}`: {shown}{' ..' if len(values) > SHOWN_VALUES else ''}"


def _table() -> str:
    rows = [
        *((name, kind, unit, _labels(label, values), text) for name, kind, unit, label, values, text
          in ALWAYS),
        *((m.name, m.type, m.unit, _labels(m.label, tuple(m.values)), m.text) for m in METRICS),
    ]  # fmt: skip
    return HEADER + "".join(f"| `{row[0]}` | {' | '.join(row[1:])} |\n" for row in rows)


def test_the_page_lists_them_all() -> None:
    page = PAGE.read_text()
    found = re.search(rf"{re.escape(HEADER)}(?:\|.*\n)+", page)
    assert found is not None
    if os.environ.get("REWRITE"):
        PAGE.write_text(page.replace(found[0], _table()))
    else:
        assert found[0] == _table(), "REWRITE=1 writes it"


def test_a_server_exposes_what_the_page_lists(served: tuple[Meridian, int]) -> None:
    _, port = served
    answer = get(port, "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    families = {f.name: f for f in text_string_to_metric_families(answer.text)}
    listed = {m.name.removesuffix("_total"): (m.type, m.label, set(m.values)) for m in METRICS}
    listed |= {row[0]: (row[1], row[3], set(row[4])) for row in ALWAYS}
    own = {name for name in families if not name.startswith("process_")}
    assert own == set(listed)
    assert "process_resident_memory_bytes" in families
    for name, (kind, label, values) in listed.items():
        samples = families[name].samples
        assert families[name].type == kind
        assert samples
        for sample in samples:
            assert set(sample.labels) - {"le"} == ({label} if label else set())
        if label:
            assert {sample.labels[label] for sample in samples} == values


def test_rows_of_the_page_are_in_prometheus_words() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.type == "counter"), metric.name
        assert not metric.unit or metric.unit in metric.name
        assert bool(metric.label) == bool(metric.values)


# --- what clients count ---------------------------------------------------------------------------


class _Counting:
    """A client that counts what it is told."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        self.statements: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def run(self, text: str, values: tuple[object, ...] = (), *, prepare: bool = False) -> None:
        try:
            cursor = self._connection.execute(text.encode(), values, prepare=prepare)
        except psycopg.Error as error:
            self.errors[(error.sqlstate or "")[:2]] += 1
            return
        self.count(cursor.statusmessage or "")
        if text.startswith(("ROLLBACK", "DROP")):
            # psycopg forgets then what it has prepared.
            self.count("DEALLOCATE ALL")

    def count(self, tag: str, times: int = 1) -> None:
        word, *numbers = tag.split()
        kind = {"BEGIN": "transaction", "COMMIT": "transaction", "ROLLBACK": "transaction",
                "CREATE": "definition", "DROP": "definition", "SET": "setting",
                "FETCH": "cursor", "DECLARE": "cursor", "DEALLOCATE": "other"}  # fmt: skip
        name = kind.get(word, word.lower())
        self.statements[name] += times
        if numbers and numbers[-1].isdecimal():
            self.rows[name] += times * int(numbers[-1])


def _by(samples: Samples, before: Samples, name: str, label: str) -> Counter[str]:
    grown = Counter[str]()
    for (found, labels), count in samples.items():
        if found == name:
            grown[dict(labels)[label]] += int(count - before[found, labels])
    return +grown


def _session(client: _Counting, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Statements of all ways in which they are answered: short, in blocks, batched, one by one."""
    client.run("CREATE TABLE t (a int PRIMARY KEY, b text)")
    for number in range(20):
        client.run("INSERT INTO t VALUES (%s, %s)", (number, "x"), prepare=number > 2)
    for number in range(20):
        client.run("SELECT b FROM t WHERE a = %s", (number,), prepare=True)
        client.run(f"SELECT b FROM t WHERE a = {number + 10}")
        client.run(f"SELECT {number}")
    for number in range(5):
        client.run("BEGIN")
        client.run("SELECT b FROM t WHERE a = %s", (number,), prepare=True)
        client.run("UPDATE t SET b = %s WHERE a = %s", ("y", number), prepare=True)
        client.run(f"UPDATE t SET b = 'z' WHERE a = {number}")
        client.run("COMMIT" if number else "ROLLBACK")
    client.run("SELECT a, count(*) FROM t GROUP BY a")
    client.run("INSERT INTO t VALUES (0, 'again')")
    client.run("SELECT 1 / 0")
    client.run("SELECT nothing")
    client.run("SELEC 1")
    client.run("BEGIN")
    client.run("DECLARE c CURSOR FOR SELECT a FROM t")
    client.run("FETCH 7 FROM c")
    client.run("COMMIT")
    client.run("INSERT INTO t SELECT g, 'g' FROM generate_series(100, 149) g")
    client.run("SET work_mem = '1MB'")
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO t VALUES (%s, 'many')", [(number,) for number in range(200, 230)]
        )
        client.count("INSERT 0 1", 30)
        with cursor.copy("COPY t FROM STDIN") as copy:
            for number in range(300, 310):
                copy.write_row((number, "copied"))
        client.count("COPY 10")
    client.run("DELETE FROM t WHERE a >= 100")
    client.run("DROP TABLE t")


def test_counters_are_what_clients_count(served: tuple[Meridian, int]) -> None:
    server, port = served
    before = scrape(port)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        client = _Counting(connection)
        _session(client, connection)
        during = scrape(port)
    assert client.errors == {"23": 1, "22": 1, "42": 2}
    assert _by(during, before, "meridian_statements_total", "kind") == client.statements
    assert _by(during, before, "meridian_rows_total", "kind") == client.rows
    assert _by(during, before, "meridian_errors_total", "sqlstate_class") == client.errors
    assert value(during, "meridian_connections", state="idle") == 1
    for name in ("sessions", "commits", "commit_groups", "received_bytes", "sent_bytes"):
        assert value(during, f"meridian_{name}_total") > value(before, f"meridian_{name}_total")
    grown = value(during, "meridian_commits_total") - value(before, "meridian_commits_total")
    groups = [value(s, "meridian_commit_groups_total") for s in (before, during)]
    assert groups[0] < groups[1] <= groups[0] + grown
    assert value(during, "meridian_stash_seconds_count") >= groups[1] - groups[0]
    engines = [
        value(during, "meridian_engine_seconds_count", engine=engine)
        for engine in ("in_process", "local")
    ]
    assert sum(engines) > 0


def test_waits_conflicts_and_holds(served: tuple[Meridian, int]) -> None:
    server, port = served
    with (
        psycopg.connect(server.dsn, autocommit=True) as one,
        psycopg.connect(server.dsn, autocommit=True) as other,
    ):
        one.execute("CREATE TABLE w (a int PRIMARY KEY, b int)")
        one.execute("INSERT INTO w VALUES (1, 1), (2, 2)")
        before = scrape(port)
        one.execute("BEGIN")
        one.execute("SELECT sum(b) FROM w").fetchall()
        other.execute("UPDATE w SET b = 3 WHERE a = 1")
        held = scrape(port)
        one.execute("INSERT INTO w VALUES (3, 3)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("COMMIT")
        one.execute("BEGIN")
        one.execute("UPDATE w SET b = 4 WHERE a = 2")
        other.execute("SET lock_timeout = '1ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("UPDATE w SET b = 5 WHERE a = 2")
        locked = scrape(port)
        one.execute("ROLLBACK")
        one.execute("DROP TABLE w")
        after = scrape(port)
    assert value(held, "meridian_connections", state="idle in transaction") == 1
    assert value(held, "meridian_hold_age_seconds", kind="transaction") > 0
    assert value(held, "meridian_transactions") >= 1
    assert value(locked, "meridian_locks", state="held") > 0
    conflicts = _by(after, before, "meridian_conflicts_total", "by")
    assert sum(conflicts.values()) >= 1
    waits = [value(samples, "meridian_lock_waits_total") for samples in (before, after)]
    assert waits[1] == waits[0] + 1


# --- small parts ----------------------------------------------------------------------------------


def test_tags_are_bounded_whatever_comes() -> None:
    counters = ServerCounters()
    for number in range(3 * TAGS_MAX):
        counters.completed(f"SELECT {number}")
        assert len(counters._tags) <= TAGS_MAX
    counters.completed("")
    counters.completed("VACUUM")
    counters.suspended(5)
    assert counters.statements["select"] == 3 * TAGS_MAX
    assert counters.statements["other"] == 2
    assert counters.rows["select"] == sum(range(3 * TAGS_MAX)) + 5
    assert set(counters.statements) == set(STATEMENT_KINDS)


def test_durations_fall_into_buckets() -> None:
    durations = Durations()
    for seconds in (0.0, SECONDS_BOUNDS[0], SECONDS_BOUNDS[0] * 1.01, 1e6):
        durations.add(seconds)
    assert durations.counts == [2, 1, *[0] * (len(SECONDS_BOUNDS) - 2), 1]


def test_classes_of_sqlstates_are_told_once() -> None:
    assert len(set(SQLSTATE_CLASSES)) == len(SQLSTATE_CLASSES)


def test_metrics_beyond_loopback_need_a_token() -> None:
    open_rules, closed = HttpRules((), None), HttpRules((), "t")
    for address, status in (("10.0.0.1", 403), (None, 403), ("127.0.0.2", None), ("::1", None)):
        refused = open_rules.refusal(host="10.0.0.1", local_address=address, authorization=None)
        assert (refused and refused[0]) == status
    told = closed.refusal(host="10.0.0.1", local_address="10.0.0.1", authorization="Bearer t")
    assert told is None
