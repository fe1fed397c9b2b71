"""A table whose files are damaged is fenced, and no other: found at the start, or while it runs."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import LiteralString

import psycopg
import pytest

from storage.errors import Determinate
from storage.memory import MemoryObjectStore, MemoryStash
from storage.shard import ShardState
from tests.session.transactions.test_timelines import Ask, in_server, refused

DAMAGED = 'table "bad" is damaged'


def removed(store: MemoryObjectStore, chosen: Callable[[str], bool]) -> list[str]:
    """Take objects away as somebody with rm would."""
    gone = [name for name in asyncio.run(store.list("")) if chosen(name)]
    for name in gone:
        store.tamper(name, None)
    assert gone
    return gone


def shard_of(ask: Ask, name: str) -> str:
    shards = dict(ask("SELECT table_name, shard FROM meridian.cuts"))
    return str(shards[name])


class Scene:
    """Two tables with a version each; what happens to the files of `bad` is up to the test."""

    def __init__(self) -> None:
        self.stash, self.store = MemoryStash(), MemoryObjectStore()
        self.shard = ""
        self.tell(self._made)
        self.tell(self._look)

    def tell(self, *stories: Callable[[Ask], None]) -> None:
        in_server(*stories, stash=self.stash, store=self.store)

    def _made(self, ask: Ask) -> None:
        for name in ("bad", "good"):
            ask(f"CREATE TABLE {name} (a int PRIMARY KEY, b text)")  # type: ignore[arg-type]
            ask(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")  # type: ignore[arg-type]

    def _look(self, ask: Ask) -> None:
        self.shard = shard_of(ask, "bad")

    def remove(self, part: str = "") -> None:
        removed(self.store, lambda name: name.startswith(self.shard) and part in name)


def fenced_alone(ask: Ask) -> None:
    """Every use of the damaged table names it; the other one serves."""
    refused(ask, "SELECT * FROM bad", "XX001", DAMAGED)
    refused(ask, "INSERT INTO bad VALUES (3)", "XX001", DAMAGED)
    refused(ask, "UPDATE bad SET b = 'z'", "XX001", DAMAGED)
    refused(ask, "OPTIMIZE bad", "XX001", DAMAGED)
    refused(ask, "SELECT * FROM good JOIN bad USING (a)", "XX001", DAMAGED)
    ask("UPDATE good SET b = b || '!' WHERE a = 1")
    assert len(ask("SELECT * FROM good")) == 2
    seen = ask("SELECT table_name, fenced, fence FROM meridian.frontiers ORDER BY 1")
    assert seen == [("bad", True, "damaged"), ("good", False, None)]


def answers(ask: Ask, query: LiteralString, *values: int) -> None:
    assert ask(query) == [(value,) for value in values]


def dropped(ask: Ask) -> None:
    ask("DROP TABLE bad")
    refused(ask, "SELECT * FROM bad", "42P01")
    ask("CREATE TABLE bad (a int)")
    ask("INSERT INTO bad VALUES (7)")
    assert ask("SELECT * FROM bad") == [(7,)]


@pytest.mark.parametrize("part", ["", "_delta_log/", "00000000000000000000.json"])
def test_a_table_without_its_log_is_fenced_alone(
    part: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    scene.remove(part)
    with caplog.at_level(logging.ERROR):
        scene.tell(fenced_alone, fenced_alone)
    assert "public.bad is damaged, so it is fenced" in caplog.text
    scene.tell(dropped, lambda ask: answers(ask, "SELECT * FROM bad", 7))


def test_a_log_that_is_not_what_was_written_fences_its_table() -> None:
    scene = Scene()
    log = f"{scene.shard}/_delta_log/00000000000000000000.json"
    scene.store.tamper(log, scene.store.peek(log)[:-40])
    scene.tell(fenced_alone)


def test_what_was_damaged_and_is_whole_again_is_served_by_the_next_start() -> None:
    scene = Scene()
    kept = {name: scene.store.peek(name) for name in asyncio.run(scene.store.list(scene.shard))}
    scene.remove()
    scene.tell(fenced_alone)
    for name, content in kept.items():
        scene.store.tamper(name, content)
    scene.tell(lambda ask: answers(ask, "SELECT a FROM bad ORDER BY 1", 1, 2))


def test_nothing_is_served_if_the_whole_warehouse_is_away() -> None:
    scene = Scene()
    removed(scene.store, lambda _: True)
    with pytest.raises(Exception, match="the warehouse was lost"):
        scene.tell(fenced_alone)


class Fading(MemoryObjectStore):
    """Gives the names below `away` so many times, and not again."""

    away, left = "", 0

    async def list(self, prefix: str) -> Sequence[str]:
        if self.away and prefix.startswith(self.away):
            self.left -= 1
            if self.left < 0:
                raise Determinate(f"{prefix}: Input/output error")
        return await super().list(prefix)


@pytest.mark.parametrize("read_before", [0, 1])
def test_a_log_that_storage_does_not_give_fences_its_table(
    read_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first loading, or at the second, for versions that an old batch names."""
    scene = Scene()
    store = scene.store = Fading()
    scene.stash = MemoryStash()
    scene.tell(scene._made, scene._look)
    store.away, store.left = scene.shard, read_before
    if read_before:
        monkeypatch.setattr(ShardState, "knows", lambda state, _: state.shard != scene.shard)

    def story(ask: Ask) -> None:
        refused(ask, "SELECT * FROM bad", "58030", 'table "bad"')
        assert len(ask("SELECT * FROM good")) == 2

    scene.tell(story)


def test_a_prepared_statement_meets_the_fence_too() -> None:
    scene = Scene()
    scene.remove()

    def story(ask: Ask) -> None:
        ask("PREPARE p AS SELECT * FROM bad")
        refused(ask, "EXECUTE p", "XX001", DAMAGED)
        with pytest.raises(psycopg.Error, match=DAMAGED):
            ask("SELECT * FROM bad AS OF meridian_now()")

    scene.tell(story)


def test_files_that_go_while_it_runs_fence_their_table() -> None:
    scene = Scene()

    def story(ask: Ask) -> None:
        assert len(ask("SELECT * FROM bad")) == 2
        scene.remove(".parquet")
        # A blind write does not look: nothing of it needs the files.
        ask("CREATE TABLE free (a int)")
        ask("INSERT INTO free VALUES (1)")
        refused(ask, "SELECT * FROM bad", "XX001", DAMAGED)
        fenced_alone_but(ask, "free")

    scene.tell(story)


def fenced_alone_but(ask: Ask, other: str) -> None:
    refused(ask, "INSERT INTO bad VALUES (3)", "XX001", DAMAGED)
    assert len(ask("SELECT * FROM good")) == 2
    seen = ask("SELECT table_name, fence FROM meridian.frontiers ORDER BY 1")
    assert seen == [("bad", "damaged"), (other, None), ("good", None)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT b FROM bad WHERE a = 1",
        "INSERT INTO bad VALUES (1)",
        "UPDATE bad SET b = 'z' WHERE a = 2",
        "DELETE FROM bad",
        "SELECT count(*) FROM good JOIN bad USING (a)",
    ],
)
@pytest.mark.parametrize("way", ["cut short", "other bytes"])
def test_a_broken_file_is_met_by_whatever_reads_it(statement: LiteralString, way: str) -> None:
    scene = Scene()
    (name,) = (n for n in asyncio.run(scene.store.list(scene.shard)) if n.endswith(".parquet"))
    content = scene.store.peek(name)
    broken = content[:-20] if way == "cut short" else content[:4] + bytes(len(content) - 4)

    def story(ask: Ask) -> None:
        scene.store.tamper(name, broken)
        refused(ask, statement, "XX001", DAMAGED)
        assert len(ask("SELECT * FROM good")) == 2

    scene.tell(story)


def test_a_failure_that_is_not_of_the_files_fences_nothing() -> None:
    scene = Scene()

    def story(ask: Ask) -> None:
        refused(ask, "SELECT 1 / (a - 1) FROM bad", "22012")
        assert len(ask("SELECT * FROM bad")) == 2

    scene.tell(story)
