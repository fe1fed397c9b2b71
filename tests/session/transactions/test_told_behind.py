"""The Delta log of a view says since when it is behind (V13): other readers know without asking."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from psycopg import errors

from coordinator.core.settings import CoreSettings
from storage.delta.table import BEHIND_PROPERTY
from storage.live_files import FileMap
from storage.memory import MemoryObjectStore, MemoryStash
from storage.types import Timestamp
from storage.version import Version
from storage.view_marks import BehindMark, add_mark, marked_at, recovered_marks
from tests.session.transactions.test_followed_views import play
from tests.session.transactions.test_isolation import value
from tests.support.connections import all_rows, connected
from tests.support.exported import export
from tests.support.foreign_readers import delta_spark_reader
from tests.support.log_cuts import cuts_of_versions
from tests.support.stack import running

PATIENT = CoreSettings(view_budget_us=20_000_000)
SINCE = "select behind_since from meridian.materialized_views where table_name = 'm'"
SHARD = "select shard from meridian.cuts where table_name = 'm' limit 1"


class Stage:
    """Servers one after the other on the same data; each writes its last cut when it ends."""

    def __init__(self) -> None:
        self.stash = MemoryStash()
        self.store = MemoryObjectStore()
        self.shard = ""

    def play(self, *statements: str) -> object:
        """Run these with catch-up asleep; since when the view is behind then."""
        return asyncio.run(self._play(*statements))

    async def _play(self, *statements: str) -> object:
        server = running(core=PATIENT, maintained=True, stash=self.stash, store=self.store)
        async with server as stack, connected(stack, 1) as (one,):
            stack.server.stop_catch_up()
            await play(one, *statements)
            return await value(one, SINCE)

    def log(self, place: Path) -> Path:
        """The view's table, for readers of files."""
        shard = asyncio.run(self._shard())
        export(self.store, place)
        return place / shard

    async def _shard(self) -> str:
        server = running(core=PATIENT, stash=self.stash, store=self.store)
        async with server as stack, connected(stack, 1) as (one,):
            stack.server.stop_catch_up()
            return str(await value(one, SHARD))

    async def is_exact_at(self, cuts: Iterable[int]) -> list[bool]:
        """Where stored rows answer."""
        found: list[bool] = []
        server = running(core=PATIENT, stash=self.stash, store=self.store)
        async with server as stack, connected(stack, 1) as (one,):
            await play(one, "alter materialized view m set (refresh = 'on commit')")
            await play(one, "set view_reads = stored")
            for cut in cuts:
                try:
                    await all_rows(one, f"select * from m as of {cut}")
                except errors.ObjectNotInPrerequisiteState:
                    found.append(False)
                else:
                    found.append(True)
        return found


def told(table: Path, version: int | None = None) -> str | None:
    """What delta-rs finds."""
    from deltalake import DeltaTable

    return DeltaTable(table, version=version).metadata().configuration.get(BEHIND_PROPERTY)


CREATE = (
    "create table t (a int)",
    "insert into t values (1), (2)",
    "create materialized view m with (refresh = 'on commit') as select a, 10 / a as q from t",
)


STORY = (
    CREATE,
    ("insert into t values (3)",),
    ("insert into t values (0)",),
    ("insert into t values (4)",),
    ("delete from t where a = 0", "refresh materialized view m"),
    ("alter table t add column b int",),
    ("insert into t values (5)", "alter materialized view m set (refresh = 'manual')"),
)


def test_delta_rs_finds_since_when_a_view_is_behind(tmp_path: Path) -> None:
    stage = Stage()
    found: list[int | None] = []
    for number, statements in enumerate(STORY):
        since = stage.play(*statements)
        text = told(stage.log(tmp_path / str(number)))
        found.append(None if text is None else int(text))
        assert found[-1] == since, (number, found)
    first, last = found[2], found[5]
    assert first is not None
    assert last is not None
    assert found == [None, None, first, first, None, last, None]
    assert last > first
    # Each version is told as it is at its cut.
    table = stage.log(tmp_path / "all")
    cuts = cuts_of_versions(table)
    exact = asyncio.run(stage.is_exact_at(cuts.values()))
    assert exact == [told(table, version) is None for version in cuts]
    assert {*exact} == {True, False}


@pytest.mark.spark
def test_delta_spark_finds_it_too(tmp_path: Path) -> None:
    stage = Stage()
    since = stage.play(*CREATE, "insert into t values (0)")
    table = stage.log(tmp_path / "behind")
    stage.play("delete from t where a = 0", "refresh materialized view m")
    exact = stage.log(tmp_path / "exact")
    with delta_spark_reader() as reader:
        properties = {
            path: dict(reader.query(f"SHOW TBLPROPERTIES delta.`{path}`", {}))
            for path in (table, exact)
        }
        assert properties[table][BEHIND_PROPERTY] == str(since)
        assert BEHIND_PROPERTY not in properties[exact]
        assert len(reader.query("SELECT * FROM m", {"m": exact})) == 2


def test_marks() -> None:
    at = Timestamp
    none: tuple[BehindMark, ...] = ()
    assert add_mark(none, at(5), behind=False, kept=None) == ()
    left = add_mark(none, at(5), behind=True, kept=None)
    assert left == (BehindMark(at(5), at(5)),)
    assert add_mark(left, at(7), behind=True, kept=None) is left
    both = add_mark(left, at(9), behind=False, kept=None)
    assert [marked_at(both, at(ts)) for ts in (4, 5, 8, 9)] == [None, 5, 5, None]
    again = add_mark(both, at(11), behind=True, kept=at(10))
    assert again == (BehindMark(at(9), None), BehindMark(at(11), at(11)))
    # A compacted history begins at 20; the log knows that the view was left before.
    base = (BehindMark(at(20), at(20)), BehindMark(at(30), None))
    versions = [Version(0, at(3), FileMap(), behind_since=at(3)), Version(1, at(40), FileMap())]
    assert recovered_marks(base, versions) == (BehindMark(at(20), at(3)), base[1])
    assert recovered_marks(base, versions[1:]) == base
    assert recovered_marks(base[1:], versions) == base[1:]
