"""ctid and xmin on the local engine: of rows in files of every kind, in memory, uncommitted."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from compute.duckdb import relations
from compute.row_versions import IDS_MAX, ctids, xmins
from sql.types.sql_type import INT8
from storage.batch import InlineSlice, ShardView
from storage.row_versions import COMMIT_FIELD, IN_FILE, ROW_ID_FIELD, RowIds, RowOrigins
from storage.types import Source
from tests.engines.duckdb.local_engine import Engine, Shard, opened, plan_of

SCHEMA = pa.schema([pa.field("k", pa.int64())])
PLAN = plan_of("select k, ctid, xmin from t order by k", [("k", INT8)])
BOTH = plan_of(
    "select a.k, a.ctid = b.ctid from t a join t b on a.k = b.k order by 1", [("k", INT8)]
)
TS = 1_764_000_000_000_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(tmp_path_factory.mktemp("versions")) as engine:
        yield engine


def origins(ids: RowIds, times: list[int], first_rows: list[int]) -> RowOrigins:
    return RowOrigins(ids, np.array(times, np.int64), np.array(first_rows, np.int64))


def keys(first: int, count: int) -> pa.Table:
    return pa.table({"k": range(first, first + count)}, schema=SCHEMA)


@pytest.fixture
def view(engine: Engine) -> tuple[ShardView, list[tuple[int, int, int]]]:
    """Files of one commit, of several, rewritten, each whole and with holes; a tail."""
    shard = Shard(engine, SCHEMA)
    expected: list[tuple[int, int, int]] = []
    parts: list[tuple[str, int | None, list[int]]] = []
    for number, holes in enumerate(([], [1])):
        base = 100 * number
        shard.file(f"single-{number}", keys(base, 4))
        known = {f"single-{number}": origins(RowIds.from_first(base + 7), [TS], [0])}
        rows = [(base + i, base + 7 + i, TS) for i in range(4)]
        shard.file(f"several-{number}", keys(base + 10, 6))
        ids = RowIds((0, 4), (base + 20, base + 60))
        known[f"several-{number}"] = origins(ids, [TS + 1, TS + 2], [0, 2])
        rows += [(base + 10 + i, base + 20 + i, TS + 1 + (i > 1)) for i in range(4)]
        rows += [(base + 14 + i, base + 60 + i, TS + 2) for i in range(2)]
        stored = keys(base + 30, 3).append_column(
            pa.field(ROW_ID_FIELD, pa.int64()), [[base + 90, base + 3, base + 91]]
        )
        times = [TS + 9, TS + 8, TS + 7]
        shard.file(f"moved-{number}", stored.append_column(COMMIT_FIELD, [times]))
        known[f"moved-{number}"] = origins(IN_FILE, [TS + 10], [0])
        found = [base + 90, base + 3, base + 91]
        rows += [(base + 30 + i, found[i], times[i]) for i in range(3)]
        for name, origin in known.items():
            shard.files[name] = replace(shard.files[name], origins=origin)
            parts.append((name, None, holes))
        gone = {base + first + hole for first in (0, 10, 30) for hole in holes}
        expected += [row for row in rows if row[0] not in gone]
    made = shard.view(parts)
    tail = InlineSlice(Source(f"@{TS + 20}"), keys(1000, 3), made.files[0].deleted, 500)
    expected += [(1000 + i, 500 + i, TS + 20) for i in range(3)]
    return replace(made, inline=(tail,)), sorted(expected)


@pytest.mark.parametrize("small", [True, False])
def test_all_kinds_of_rows(
    engine: Engine,
    view: tuple[ShardView, list[tuple[int, int, int]]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    small: bool,
) -> None:
    monkeypatch.setattr(relations, "is_small_view", lambda _: small)
    rows, expected = view
    columns = list(zip(*expected, strict=True))
    ids, commits = (np.array(column, np.int64) for column in columns[1:])
    wanted = list(zip(columns[0], ctids(ids).to_pylist(), xmins(commits).to_pylist(), strict=True))
    for _ in range(3):
        # Read once, and as tables of the engine.
        assert engine.values(PLAN, rows) == wanted
    assert engine.values(BOTH, rows) == [(key, True) for key in columns[0]]


@pytest.mark.parametrize("small", [True, False])
def test_uncommitted_rows_have_neither(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    monkeypatch.setattr(relations, "is_small_view", lambda _: small)
    shard = Shard(engine, SCHEMA)
    shard.file("staged", keys(0, 2))
    view = shard.view([("staged", None, [])], [("@own", keys(5, 1), [])])
    assert engine.values(PLAN, view) == [(0, None, None), (1, None, None), (5, None, None)]


@pytest.mark.parametrize("small", [True, False])
def test_a_file_gets_ids_with_its_commit(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    monkeypatch.setattr(relations, "is_small_view", lambda _: small)
    shard = Shard(engine, SCHEMA)
    shard.file("staged", keys(0, 1))
    own = shard.view([("staged", None, [])])
    for _ in range(3):
        assert engine.values(PLAN, own) == [(0, None, None)]
    file = replace(shard.files["staged"], origins=origins(RowIds.from_first(0), [TS], [0]))
    shard.files["staged"] = file
    committed = shard.view([("staged", None, [])])
    ((_, place, _),) = engine.values(PLAN, committed)
    assert place == "(1000000000,10000)"


def test_texts_of_ctids_are_ordered_as_ids_are() -> None:
    ids = np.array([0, 1, 55_535, 55_536, 1 << 20, 1 << 39, 1 << 40, IDS_MAX - 1], np.int64)
    texts: list[Any] = ctids(ids).to_pylist()
    assert texts[0] == "(1000000000,10000)"
    assert texts[-1] == "(4294967294,65535)"
    assert texts == sorted(set(texts))


def test_commits_that_follow_each_other_have_other_xmins() -> None:
    stamps = np.arange(TS, TS + 5_000_000, 977, dtype=np.int64)
    found: list[Any] = xmins(stamps).to_pylist()
    assert len(set(found)) == len(found)
    assert all(3 <= xmin < 1 << 32 for xmin in found)
