"""What is told of a history afterwards: at its own timestamp each, in each envelope and order."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import psycopg
import pytest

from coordinator.core.change_streams.steps import ChangeStep
from coordinator.execution.change_streams import change_rows, compared_rows, netting
from coordinator.execution.change_streams.change_rows import TableChanges
from coordinator.execution.change_streams.envelopes import EnvelopeRows, Key
from coordinator.execution.change_streams.row_forms import RelationViews
from coordinator.execution.change_streams.shared_steps import StepSharing
from sql.plan.nodes import RelationId
from storage.shard import ShardState
from storage.types import ShardId, Timestamp
from tests.session.change_streams.history import OFTEN_CUT, History, make_history
from tests.support.stack import serving

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def told_history() -> Iterator[tuple[psycopg.Connection, History]]:
    with serving(core=OFTEN_CUT) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection, make_history(connection, seed=34)


def _told(connection: psycopg.Connection, statement: str, history: History) -> list[Row]:
    """All rows of a subscription to the past."""
    statement = f"{statement} AS OF {history.begin} UP TO {history.end}"
    rows = connection.execute(statement.encode()).fetchall()
    assert [ts for ts, *_ in rows] == sorted(ts for ts, *_ in rows)
    return rows


def _answer(connection: psycopg.Connection, query: str, ts: int) -> Counter[str]:
    rows = connection.execute(f"{query} AS OF {ts}".encode()).fetchall()
    return Counter(map(repr, rows))


def check_fold(connection: psycopg.Connection, history: History, query: str) -> None:
    """The sum of all diffs up to each checkpoint is the query there."""
    rows = _told(connection, f"SUBSCRIBE ({query})", history)
    at, fold = 0, Counter[str]()
    for checkpoint in history.checkpoints:
        while at < len(rows) and rows[at][0] <= checkpoint:
            fold[repr(rows[at][2:])] += rows[at][1]
            assert fold[repr(rows[at][2:])] >= 0
            at += 1
        assert +fold == _answer(connection, query, checkpoint), f"at {checkpoint}"
    assert at == len(rows)


LINEAR = (
    "TABLE k",
    "TABLE both_tables",
    "SELECT v, part FROM k WHERE id > 3",
    "SELECT a FROM t UNION ALL SELECT a FROM t UNION ALL SELECT c FROM u WHERE a < c",
)


@pytest.mark.parametrize("query", LINEAR)
def test_each_commit_is_told_at_its_own_timestamp(
    told_history: tuple[psycopg.Connection, History], query: str
) -> None:
    check_fold(*told_history, query)


COMPARED = (
    "TABLE joined",
    "SELECT a % 3 AS g, count(*), sum(b), max(b) FILTER (WHERE a > 2) FROM t GROUP BY a % 3",
    "SELECT count(*), max(t.a) FROM t, u WHERE t.a = u.a",
    "SELECT DISTINCT b FROM t",
    "SELECT a FROM u EXCEPT ALL SELECT a FROM t",
    "SELECT a, rank() OVER (PARTITION BY a % 2 ORDER BY b) FROM t",
    "SELECT a FROM t WHERE EXISTS (SELECT FROM u WHERE u.a = t.a)",
    "WITH w AS (SELECT a FROM t) SELECT x.a FROM w x, w y WHERE x.a = y.a + 1",
    "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES",
    "SELECT x FROM t, generate_series(1, a) x",
    "SELECT 1 AS a UNION ALL SELECT a FROM t",
)


def check_resumed(connection: psycopg.Connection, history: History, query: str) -> None:
    """The fold of subscriptions that each go on where the one before ended is the query."""
    ts = history.begin
    fold = _answer(connection, query, ts)
    for checkpoint in history.checkpoints:
        if checkpoint == ts:
            continue
        statement = f"SUBSCRIBE ({query}) WITH (SNAPSHOT = false) AS OF {ts}"
        for at, diff, *row in connection.execute(f"{statement} UP TO {checkpoint + 1}".encode()):
            assert ts < at <= checkpoint
            assert _answer(connection, query, at - 1) != _answer(connection, query, at)
            fold[repr(tuple(row))] += diff
            assert fold[repr(tuple(row))] >= 0
        assert +fold == _answer(connection, query, checkpoint), f"at {checkpoint}"
        ts = checkpoint


@pytest.mark.parametrize("query", COMPARED)
def test_answers_are_compared(told_history: tuple[psycopg.Connection, History], query: str) -> None:
    check_resumed(*told_history, query)


def _equal_key(value: object) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _by_key(rows: Sequence[Row], key: Sequence[int]) -> dict[Row, list[Row]]:
    found: dict[Row, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple([_equal_key(row[at]) for at in key]), []).append(row)
    return found


def _expected(rows: Sequence[Row], key: Sequence[int], *, upsert: bool) -> list[Row]:
    """The envelope of one timestamp's diffs: what a client could make of them itself."""
    went = _by_key([row[2:] for row in rows if row[1] == -1], key)
    came = _by_key([row[2:] for row in rows if row[1] == 1], key)
    told: list[Row] = []
    for image in {*went, *came}:
        old, new = went.get(image, []), came.get(image, [])
        named = [(new or old)[0][at] for at in key]
        others = [at for at in range(len(rows[0]) - 2) if at not in key]
        nothing = [None] * len(others)
        before = [old[0][at] for at in others] if old else nothing
        after = [new[0][at] for at in others] if new else nothing
        if len(old) > 1 or len(new) > 1:
            state, before, after = "key_violation", nothing, nothing
        elif not new:
            state = "delete"
        elif upsert:
            state = "upsert"
        else:
            state = "update" if old else "insert"
        shown = after if upsert else [*before, *after]
        told.append((rows[0][0], state, *named, *shown))
    return told


def _shown(row: Row) -> str:
    """Of several rows of one key, any shows it: 0 or -0."""
    return repr(row).replace("-0.0", "0.0") if row[1] == "key_violation" else repr(row)


@pytest.mark.parametrize("style", ["UPSERT", "DEBEZIUM"])
@pytest.mark.parametrize("key", [("id",), ("part",), ("v",), ("v", "part"), ("id", "part", "v")])
def test_an_envelope_tells_the_same_by_key(
    told_history: tuple[psycopg.Connection, History], style: str, key: tuple[str, ...]
) -> None:
    connection, history = told_history
    diffs = _told(connection, "SUBSCRIBE k", history)
    clause = f"ENVELOPE {style} (KEY ({', '.join(key)}))"
    found = _told(connection, f"SUBSCRIBE k {clause}", history)
    places = [("id", "part", "v").index(name) for name in key]
    expected: list[Row] = []
    for _, rows in groupby(diffs, key=lambda row: row[0]):
        expected += _expected(list(rows), places, upsert=style == "UPSERT")
    assert sorted(map(_shown, found)) == sorted(map(_shown, expected))
    states = {row[1] for row in found}
    assert "delete" in states
    # A row that goes is told before one that comes.
    for (ts, state, *_), (then, following, *_) in pairwise(found):
        assert ts != then or state == "delete" or following != "delete"


def test_upserts_fold_to_the_table(told_history: tuple[psycopg.Connection, History]) -> None:
    connection, history = told_history
    check_upserts(connection, history)


def check_upserts(connection: psycopg.Connection, history: History) -> None:
    """Upserts and deletes up to each checkpoint make the table."""
    rows = _told(connection, "SUBSCRIBE k ENVELOPE UPSERT (KEY (id))", history)
    at, held = 0, dict[object, Row]()
    for checkpoint in history.checkpoints:
        while at < len(rows) and rows[at][0] <= checkpoint:
            _, state, key, *others = rows[at]
            if state == "upsert":
                held[key] = (key, *others)
            else:
                assert state == "delete"
                del held[key]
            at += 1
        expected = _answer(connection, "TABLE k", checkpoint)
        assert Counter(map(repr, held.values())) == expected, f"at {checkpoint}"


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("id", lambda row: row[2]),
        ("id DESC", lambda row: -row[2]),
        ("meridian_diff DESC, id", lambda row: (-row[1], row[2])),
        ("part DESC NULLS LAST, id", lambda row: (row[3] is None, _turned(row[3]), row[2])),
        ("id % 3, meridian_diff * id", lambda row: (math.fmod(row[2], 3), row[1] * row[2])),
        ("1, 4", lambda row: (row[2], row[1])),
    ],
)
def test_the_rows_of_a_timestamp_in_order(
    told_history: tuple[psycopg.Connection, History], order: str, key: Callable[[Row], Any]
) -> None:
    connection, history = told_history
    found = _told(connection, f"SUBSCRIBE k WITHIN TIMESTAMP ORDER BY {order}", history)
    expected = _told(connection, "SUBSCRIBE k", history)
    assert Counter(map(repr, found)) == Counter(map(repr, expected))
    assert any(len(list(rows)) > 2 for _, rows in groupby(found, key=lambda row: row[0]))
    for (ts, *one), (then, *following) in pairwise(found):
        assert ts != then or key((ts, *one)) <= key((then, *following))


def _turned(text: str | None) -> int:
    return 0 if text is None else -ord(text)


# --- planted -------------------------------------------------------------------------------------


@pytest.fixture
def unshared(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What others were told before something was planted is not told again."""

    async def nothing(_: StepSharing, step: ChangeStep) -> None:
        del step

    monkeypatch.setattr(StepSharing, "find", nothing)
    return monkeypatch


def _netted_across_timestamps(patch: pytest.MonkeyPatch) -> None:
    next_commits = change_rows._next_commits

    def merged(step: Any) -> Any:
        few, reached = next_commits(step)
        return [TableChanges(reached, change.tables) for change in few], reached

    patch.setattr(change_rows, "_next_commits", merged)


def _equal_rows_cancel_as_sets(patch: pytest.MonkeyPatch) -> None:
    """Of rows that went and came, all copies cancel out, however many of each there are."""
    patch.setattr(netting, "_cancel", lambda left, image: left[image] > 0)


def _one_table_of_a_commit(patch: pytest.MonkeyPatch) -> None:
    """A commit that wrote to two tables is told of the first."""

    def first(ts: Any, tables: dict[Any, Any]) -> TableChanges:
        return TableChanges(ts, dict([next(iter(tables.items()))]))

    patch.setattr(change_rows, "TableChanges", first)


def _whole_tables_beside_changes(patch: pytest.MonkeyPatch) -> None:
    """The other branch of UNION ALL is told anew with each change."""
    view = change_rows.ChangeRows._view
    seen: dict[object, Any] = {}

    def kept(self: Any, name: Any, parts: Any) -> Any:
        made = view(self, name, parts)
        if parts:
            seen[name] = made
        return seen.get(name, made)

    patch.setattr(change_rows.ChangeRows, "_view", kept)


@pytest.mark.parametrize(
    ("plant", "query"),
    [
        (_netted_across_timestamps, "TABLE both_tables"),
        (_equal_rows_cancel_as_sets, "SELECT b FROM t UNION ALL SELECT b FROM t"),
        (_one_table_of_a_commit, "TABLE both_tables"),
        (_whole_tables_beside_changes, "TABLE both_tables"),
    ],
)
def test_planted_in_changes(
    told_history: tuple[psycopg.Connection, History],
    unshared: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    query: str,
) -> None:
    plant(unshared)
    with pytest.raises(AssertionError):
        check_fold(*told_history, query)


def _one_side_at_another_timestamp(patch: pytest.MonkeyPatch) -> None:
    """Of a join, one side is read where the step begins."""

    def torn(step: ChangeStep, ts: Timestamp) -> RelationViews:
        return {
            RelationId(one.state.shard): one.state.view(
                step.after if place else ts, schema=one.schema
            )
            for place, one in enumerate(step.shards)
        }

    patch.setattr(compared_rows, "views_at", torn)


def _last_commit_of_one_table(patch: pytest.MonkeyPatch) -> None:
    """Commits to other tables than the first wake nobody."""
    last_commit = compared_rows.last_commit
    first: list[ShardId] = []

    def of_one(state: ShardState, after: Timestamp, upto: Timestamp) -> Timestamp | None:
        first.append(state.shard)
        return last_commit(state, after, upto) if state.shard == first[0] else None

    patch.setattr(compared_rows, "last_commit", of_one)


@pytest.mark.parametrize("plant", [_one_side_at_another_timestamp, _last_commit_of_one_table])
def test_planted_in_compared_answers(
    told_history: tuple[psycopg.Connection, History],
    unshared: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    plant(unshared)
    with pytest.raises(AssertionError):
        check_resumed(*told_history, "TABLE joined")


def test_planted_a_key_change_as_one_row(
    told_history: tuple[psycopg.Connection, History], unshared: pytest.MonkeyPatch
) -> None:
    keys = EnvelopeRows._keys

    def paired(self: EnvelopeRows, rows: Any) -> Sequence[Key]:
        found = keys(self, rows)
        return [found[0], found[0]] if len(found) == 2 else found

    unshared.setattr(EnvelopeRows, "_keys", paired)
    with pytest.raises(AssertionError):
        check_upserts(*told_history)
