"""Metrics of sources, of views that follow their inputs, and of commits that wait."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from coordinator.core.sources.observed import ObservedSource
from coordinator.monitoring.observation import ObservedServing, SourceTotals
from coordinator.server.diagnostics import find_troubles
from sql.catalog.objects import SourceDefinition
from storage.types import Timestamp
from tests.session.change_streams.followers import until
from tests.session.monitoring.http_client import scrape, value
from tests.support.connections import GatedStash, connected, on_a_loop, waiting
from tests.support.servers import Meridian, free_port, meridian
from tests.support.stack import running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Meridian, int]]:
    port = free_port()
    options = ("--spark-master", "none", "--set", f"http_listen=127.0.0.1:{port}")
    with meridian(tmp_path_factory.mktemp("metrics"), options) as server:
        yield server, port


@pytest.fixture
def client(served: tuple[Meridian, int]) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(served[0].dsn, autocommit=True) as connection:
        yield connection


def test_sources(served: tuple[Meridian, int], client: "psycopg.Connection[Any]") -> None:
    _, port = served
    before = scrape(port)
    client.execute("create source s from generator counter (rows per second 100000, max rows 40)")
    idle = scrape(port)
    assert value(idle, "meridian_sources", state="idle") == 1
    assert value(idle, "meridian_source_rows_total") == value(before, "meridian_source_rows_total")
    client.execute("create table counter from source s")
    until(lambda: client.execute("select count(*) from counter").fetchall() == [(40,)])
    running_now = scrape(port)
    assert value(running_now, "meridian_sources", state="running") == 1
    assert value(running_now, "meridian_source_rows_total") == 40
    assert value(running_now, "meridian_source_errors_total") == 0
    client.execute("alter source s pause")
    paused = scrape(port)
    assert value(paused, "meridian_sources", state="paused") == 1
    assert value(paused, "meridian_sources", state="running") == 0
    assert value(paused, "meridian_source_stop_seconds", state="paused") > 0
    assert value(paused, "meridian_source_stop_seconds", state="broken") == 0
    client.execute("drop source s cascade")
    gone = scrape(port)
    assert value(gone, "meridian_sources", state="paused") == 0
    assert value(gone, "meridian_source_stop_seconds", state="paused") == 0
    assert value(gone, "meridian_source_rows_total") == 40, "a counter never goes back"


def _source(oid: int, rows: dict[int, int], errors: int) -> ObservedSource:
    definition = SourceDefinition(oid=oid, schema="public", name=f"s{oid}", connector="generator")
    return ObservedSource(
        definition, (), "running", Timestamp(0), 1, "", "", "", "", None, {}, None, rows, errors
    )


def test_totals_of_sources_only_grow() -> None:
    totals = SourceTotals()
    for sources, expected in (
        ([_source(1, {7: 5}, 1)], (5, 1)),
        ([_source(1, {7: 9}, 1), _source(2, {8: 2}, 0)], (11, 1)),
        # A table is detached: its rows are not counted any more, and were there.
        ([_source(1, {}, 2), _source(2, {8: 2}, 0)], (11, 2)),
        ([_source(1, {9: 3}, 2)], (14, 2)),
        ([], (14, 2)),
    ):
        totals.add(sources)
        assert (totals.rows, totals.errors) == expected


def test_views(served: tuple[Meridian, int], client: "psycopg.Connection[Any]") -> None:
    _, port = served
    client.execute("create table t (a int)")
    client.execute("insert into t values (1)")
    client.execute("create materialized view stored as select a from t")
    client.execute("create materialized view later as select a from t with no data")
    client.execute(
        "create materialized view m with (refresh = 'on commit') as select 10 / a as q from t"
    )
    found = scrape(port)
    for state, count in {"exact": 1, "stored": 1, "not populated": 1, "behind": 0}.items():
        assert value(found, "meridian_views", state=state) == count
    assert value(found, "meridian_view_behind_seconds") == 0
    client.execute("insert into t values (0)")
    error = "select last_error from meridian.materialized_views where table_name = 'm'"
    until(lambda: "22012" in str(client.execute(error.encode()).fetchall()))
    # The error is that of the commit, told before catch-up has tried.
    until(lambda: value(scrape(port), "meridian_failing_views") == 1)
    failing = scrape(port)
    assert value(failing, "meridian_views", state="behind") == 1
    behind = value(failing, "meridian_view_behind_seconds")
    assert behind > 0
    assert value(scrape(port), "meridian_view_behind_seconds") > behind
    client.execute("delete from t where a = 0")
    state = "select state from meridian.materialized_views where table_name = 'm'"
    until(lambda: client.execute(state.encode()).fetchall() == [("exact",)])
    until(lambda: value(scrape(port), "meridian_view_behind_seconds") == 0)
    healed = scrape(port)
    assert value(healed, "meridian_views", state="exact") == 1
    assert value(healed, "meridian_failing_views") == 0
    client.execute("drop table t cascade")


@on_a_loop
async def test_commits_that_wait() -> None:
    stash = GatedStash()
    async with running(stash=stash) as stack, connected(stack, 3) as (asking, one, two):
        await one.execute(b"create table t (a int)")
        (line,) = stack.driver.observe()
        assert line.commits_waiting == 0, "an idle server has none"
        stash.gate.clear()
        async with asyncio.TaskGroup() as group:
            for connection in (one, two):
                group.create_task(connection.execute(b"insert into t values (1)"))
            await waiting(stack, asking, 2)
            (line,) = stack.driver.observe()
            seen = line.commits_waiting
            stash.gate.set()
        assert seen == 2
        (line,) = stack.driver.observe()
        assert line.commits_waiting == 0


def test_troubles_have_no_secrets() -> None:
    source = replace(
        _source(1, {}, 0), state="broken", code="28P01", reason="postgresql://a:hunter2@h said no"
    )
    serving = _serving(source)
    assert list(find_troubles(serving)) == [
        "source public.s1 is broken: 28P01 postgresql://a:<hidden>@h said no"
    ]


class _Line:
    def __init__(self, *sources: ObservedSource) -> None:
        self.shards = ()
        self.sources = sources


def _serving(*sources: ObservedSource) -> ObservedServing:
    made = object.__new__(ObservedServing)
    object.__setattr__(made, "timelines", (_Line(*sources),))
    object.__setattr__(made, "views", ())
    return made
