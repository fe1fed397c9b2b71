"""`change_data_feed` of a table: what SQL makes of it, and what delta-rs is told."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from psycopg import errors

from coordinator.core.settings import CoreSettings
from storage.memory import MemoryStash
from tests.session.execution.test_foreign_moments import MirroredStore, wait_until_flushed
from tests.support.connections import Connection, all_rows, connected, on_a_loop
from tests.support.stack import running

SOON = CoreSettings(cut_age_us=20_000)


@contextmanager
def mirrored(root: Path) -> Iterator[MirroredStore]:
    store = MirroredStore(root)
    try:
        yield store
    finally:
        store.close()


def feed(root: Path, first: int = 0) -> list[dict[str, object]]:
    """What delta-rs is told of the first table."""
    path = sorted(root.glob("t*"))[0]
    rows = DeltaTable(path).load_cdf(starting_version=first, allow_out_of_range=True)
    return pa.RecordBatchReader.from_stream(rows).read_all().to_pylist()


def newest(root: Path) -> int:
    path = sorted(root.glob("t*"))[0]
    return DeltaTable(path).version()


async def flushed(connection: Connection, *statements: str) -> None:
    """Until it is in the files: a cut is one for all tables, and has rows of the last one."""
    more = ("create table if not exists last (v int)", "insert into last values (1)")
    for statement in (*statements, *more):
        await connection.execute(statement.encode())
    await wait_until_flushed(connection)


def folded(rows: list[dict[str, object]]) -> Counter[tuple[object, ...]]:
    """The rows that are left when all is told."""
    left: Counter[tuple[object, ...]] = Counter()
    for row in sorted(rows, key=lambda row: (row["_commit_version"], row["_change_type"])):
        values = tuple(value for name, value in row.items() if not name.startswith("_c"))
        left[values] += 1 if row["_change_type"] == "insert" else -1
        assert left[values] >= 0, row
    return +left


@on_a_loop
async def test_delta_rs_is_told_what_statements_change(tmp_path: Path) -> None:
    stash = MemoryStash()
    with mirrored(tmp_path) as store:
        async with (
            running(stash=stash, store=store, core=SOON) as stack,
            connected(stack, 1) as (one,),
        ):
            await flushed(
                one,
                "create table t (id int primary key, v text) with (change_data_feed = on)",
                "insert into t select g, 'a' from generate_series(1, 10) g",
            )
            await flushed(one, "update t set v = 'b' where id < 4", "delete from t where id = 9")
            updated = newest(tmp_path)
            await flushed(one, "alter table t add column w int default 7")
            await flushed(one, "insert into t values (11, 'c', 1)", "delete from t where id = 11")
            await flushed(one, "update t set w = id where id in (1, 2)")
            expected = Counter(await all_rows(one, "select id, v, w from t"))
        told = feed(tmp_path)
        assert folded(told) == expected
        kinds = Counter(row["_change_type"] for row in told if row["_commit_version"] == updated)
        assert kinds.keys() <= {"insert", "delete"}
        # After a start it goes on.
        async with (
            running(stash=stash, store=store, core=SOON) as stack,
            connected(stack, 1) as (one,),
        ):
            await flushed(one, "truncate t")
            assert folded(feed(tmp_path)) == {}


@on_a_loop
async def test_a_feed_is_switched_and_shown(tmp_path: Path) -> None:
    options = "select options from meridian.table_options"
    with mirrored(tmp_path) as store:
        async with running(store=store, core=SOON) as stack, connected(stack, 1) as (one,):
            await flushed(one, "create table t (id int)", "insert into t values (1), (2)")
            assert await all_rows(one, options) == []
            await flushed(one, "alter table t set (change_data_feed)", "delete from t where id = 1")
            assert await all_rows(one, options) == [("change_data_feed = 'on'",)]
            first = newest(tmp_path)
            assert [row["_change_type"] for row in feed(tmp_path, first)] == ["delete"]
            # The table keeps it through other definitions.
            await flushed(
                one, "alter table t add v text", "comment on table t is 'x'", "delete from t"
            )
            assert [row["_change_type"] for row in feed(tmp_path, first)] == ["delete"] * 2
            for off in ("set (change_data_feed = off)", "reset (change_data_feed)"):
                await flushed(one, f"alter table t {off}", "insert into t values (3)")
                assert await all_rows(one, options) == []
                with pytest.raises(Exception, match=r"(?i)change data|cdf|feed"):
                    feed(tmp_path, newest(tmp_path))
                await flushed(
                    one, "alter table t set (change_data_feed = on)", "insert into t values (4)"
                )
                assert [row["id"] for row in feed(tmp_path, newest(tmp_path))] == [4]


@on_a_loop
async def test_what_is_no_feed_is_refused() -> None:
    async with running() as stack, connected(stack, 1) as (one,):
        for value in ("2", "maybe", "0.5"):
            with pytest.raises(errors.InvalidParameterValue, match="change_data_feed"):
                await one.execute(
                    f"create table t (v int) with (change_data_feed = {value})".encode()
                )
        with pytest.raises(errors.InvalidParameterValue, match="more than once"):
            await one.execute(
                "create table t (v int) with (change_data_feed, change_data_feed = off)"
            )
        await one.execute('create table t (v int, "_Commit_Version" int)')
        await one.execute("create table s (v int) with (change_data_feed = on)")
        for text in (
            "alter table t set (change_data_feed = on)",
            "create table u (_change_type text) with (change_data_feed = on)",
            "alter table s add column _commit_timestamp timestamptz",
            "alter table s rename column v to _change_type",
        ):
            with pytest.raises(
                errors.FeatureNotSupported, match="in a table with change_data_feed"
            ):
                await one.execute(text.encode())
        await one.execute("alter table t set (change_data_feed = off)")
        await one.execute("alter table s reset (change_data_feed)")
        await one.execute("alter table s rename column v to _change_type")
