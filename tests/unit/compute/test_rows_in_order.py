"""Rows that are kept in the order of a query are those that the query selects (O1 to O3)."""

from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from compute.access import rows_in_order
from compute.access.rows_in_memory import NotInMemoryError
from compute.access.rows_in_order import RowsInOrder, compile_rows_in_order
from compute.reference.executor import execute_plan
from compute.reference.expressions import Row
from sql.plan.nodes import (
    BoolOp,
    ColumnId,
    ColumnRef,
    Const,
    Filter,
    Limit,
    Logical,
    Param,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    Sort,
    SortKey,
)
from sql.types.sql_type import BOOL, INT8, TEXT
from storage.batch import DataFile, FileSlice, InlineSlice, ShardView, WriteBatch
from storage.shard import ShardState
from storage.types import ShardId, Source, Timestamp
from storage.unencoded_rows import SliceRows, StoredValues, UnencodedRows

SHARD = ShardId("t")
SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("free", pa.bool_())])
N, T, FREE, SOURCE, INDEX = (ColumnId(at) for at in range(5))
PLACE: Final = 2


def column(id_: ColumnId) -> PlanColumn:
    types = {N: INT8, T: TEXT, FREE: BOOL, SOURCE: TEXT, INDEX: INT8}
    return PlanColumn(id_, f"c{id_}", types[id_])


def ref(id_: ColumnId) -> ColumnRef:
    return ColumnRef(id_, column(id_).type)


def query(*keys: SortKey, limit: int | None = 1_000, more: Plan | None = None) -> Plan:
    """SELECT n, t .. FROM t WHERE free ORDER BY .. LIMIT .., as the binder makes it."""
    identity = (column(SOURCE), column(INDEX))
    scan = Scan(RelationId("t"), "t", (column(N), column(T), column(FREE)), (0, 1, 2), identity)
    shown = tuple(map(column, (N, T, SOURCE, INDEX)))
    selected: Plan = Project(
        more or Filter(scan, ref(FREE)), shown, tuple(ref(c.id) for c in shown)
    )
    if keys:
        selected = Sort(selected, keys)
    bound = None if limit is None else Const(limit, INT8)
    return Project(Limit(selected, bound, None), shown, tuple(ref(c.id) for c in shown))


ORDERS = (
    (),
    (SortKey(ref(N), descending=False, nulls_first=False),),
    (
        SortKey(ref(T), descending=True, nulls_first=False),
        SortKey(ref(N), descending=False, nulls_first=True),
    ),
)


def compiled(plan: Plan) -> RowsInOrder:
    found = compile_rows_in_order(plan, PLACE)
    assert found is not None
    rows, shown = found
    assert list(shown) == [0, 1, 2, 3]
    return rows


def table(rows: list[tuple[int | None, str | None, bool | None]]) -> pa.Table:
    columns = [
        pa.array(list(values), field.type)
        for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def as_it_is(plan: Plan, view: ShardView) -> list[Row]:
    return list(execute_plan(plan, {RelationId("t"): view}))


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 5), st.none() | st.sampled_from("abc"), st.none() | st.booleans()
    ),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("commit", "commit", "look", "look", "own", "own", "back")),
        ROWS,
        st.lists(st.integers(0, 30), max_size=4),
    ),
    max_size=12,
)


@given(st.sampled_from(ORDERS), STEPS)
@settings(max_examples=300, deadline=None)
def test_they_are_those_of_the_query(keys: tuple[SortKey, ...], steps: list[tuple]) -> None:
    plan = query(*keys)
    rows, state, now, newest = compiled(plan), ShardState(SHARD, SCHEMA, Timestamp(1)), 1, 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows_in_order, "_GONE_MAX", 1)
        patched.setattr(rows_in_order, "_SLICES_MORE", 0)
        for kind, content, goes in steps:
            view = state.view(Timestamp(now))
            live = [(p.source, at) for p in view.inline for at in range(p.rows.num_rows)]
            live = [(s, at) for s, at in live if at not in (view.inline_slice(s) or _NONE).deleted]
            deletes: dict[Source, BitMap64] = {}
            for place in {number % len(live) for number in goes} if live else ():
                deletes.setdefault(live[place][0], BitMap64()).add(live[place][1])
            batch = WriteBatch(table(content), deletes=deletes)
            if kind == "commit":
                now += 1
                state = state.committed(Timestamp(now), batch)
                continue
            own = batch if kind == "own" else None
            at = Timestamp(max(1, now - 2) if kind == "back" else now)
            view = state.view(at, own)
            expected = as_it_is(plan, view)
            has_own = own is not None and any(row[0] == "@own" for row in map(_name, expected))
            try:
                found = list(rows.rows(view, ()))
            except NotInMemoryError:
                assert has_own or view.upto is None or view.upto < newest
                continue
            finally:
                newest = max(newest, view.upto or 0)
            assert found == expected
            assert [rows.identity(row) for row in found] == list(map(_name, expected))


_NONE = InlineSlice(Source("@0"), table([(1, "a", True)]), BitMap64())


def _name(row: Row) -> tuple[object, ...]:
    return row[PLACE], row[PLACE + 1]


def test_what_a_transaction_has_deleted_comes_back() -> None:
    """Also a whole slice that nobody has looked at before, with the slices after it."""
    plan = query(ORDERS[1][0])
    rows, state = compiled(plan), ShardState(SHARD, SCHEMA, Timestamp(1))
    for ts in range(2, 6):
        state = state.committed(Timestamp(ts), WriteBatch(table([(3, "a", True)])))
    own = WriteBatch(deletes={Source("@3"): BitMap64([0])})
    for view in (
        state.view(Timestamp(2)),
        state.view(Timestamp(5), own),
        state.view(Timestamp(4)),
        state.view(Timestamp(5), WriteBatch(deletes={Source("@4"): BitMap64([0])})),
        state.view(Timestamp(4)),
        state.view(Timestamp(5)),
    ):
        if view.upto == 4:
            with pytest.raises(NotInMemoryError):
                rows.rows(view, ())
        else:
            assert list(rows.rows(view, ())) == as_it_is(plan, view)


def test_files_with_rows_are_left_to_others() -> None:
    rows = compiled(query())
    state = ShardState(SHARD, SCHEMA, Timestamp(1)).committed(
        Timestamp(2), WriteBatch(table([(1, "a", True)]))
    )
    view = state.view(Timestamp(2))
    file = DataFile(Source("f"), 2, 10, "")
    # A row beyond the limit may be deleted, too.
    for deleted, there in ((BitMap64([0]), True), (BitMap64([0, 1]), False)):
        limit = 1 if there else 2
        part = FileSlice(file, limit, deleted)
        shown = ShardView(SHARD, SCHEMA, view.files_key, (part,), view.inline, upto=view.upto)
        assert len(list(rows.rows(shown, ()))) == 1
    beyond = FileSlice(file, 1, BitMap64([1]))
    shown = ShardView(SHARD, SCHEMA, view.files_key, (beyond,), view.inline, upto=view.upto)
    with pytest.raises(NotInMemoryError):
        rows.rows(shown, ())


def test_much_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ShardState(SHARD, SCHEMA, Timestamp(1))
    for ts in range(2, 6):
        state = state.committed(Timestamp(ts), WriteBatch(table([(ts, "a" * 50, True)] * 3)))
    for name, most in (
        ("COMING_MAX", 11),
        ("ORDERED_MAX", 11),
        ("ORDERED_BYTES_MAX", 12 * 252 - 1),
    ):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rows_in_order, name, most)
            with pytest.raises(NotInMemoryError):
                compiled(query()).rows(state.view(Timestamp(5)), ())
            patched.setattr(rows_in_order, name, most + 1)
            assert len(list(compiled(query()).rows(state.view(Timestamp(5)), ()))) == 12


def test_which_queries() -> None:
    scan = Scan(RelationId("t"), "t", (column(N),), (0,), None)
    by_sum = SortKey(Logical(BoolOp.NOT, (ref(FREE),), BOOL), descending=False, nulls_first=False)
    assert compile_rows_in_order(query(limit=None), PLACE) is None
    assert compile_rows_in_order(query(by_sum), PLACE) is None
    assert compile_rows_in_order(query(more=scan), PLACE) is None
    assert compile_rows_in_order(scan, PLACE) is None
    made = query()
    assert isinstance(made, Project)
    assert isinstance(made.input, Limit)
    for changed in (Const(3, INT8), Param(1, INT8)):
        offset = Project(Limit(made.input.input, changed, Const(1, INT8)), made.columns, made.exprs)
        assert compile_rows_in_order(offset, PLACE) is None


class _Counting:
    """A RowEncoder that counts the tables it makes."""

    schema = SCHEMA
    encoded_schema = b""
    tables = 0

    def table(self, rows: StoredValues) -> pa.Table:
        self.tables += 1
        return table([*rows])  # type: ignore[list-item]

    def rows(self, rows: StoredValues) -> SliceRows:
        return UnencodedRows(rows, 100, self)


def test_slices_that_are_values_are_decoded_at_once() -> None:
    encoder = _Counting()
    parts = [
        InlineSlice(Source(f"@{at}"), encoder.rows([(at, "a", True)]), BitMap64())
        for at in range(1, 4)
    ]
    view = ShardView(SHARD, SCHEMA, "", (), tuple(parts), upto=Timestamp(3), is_whole=True)
    found = compiled(query(*ORDERS[1])).rows(view, ())
    assert [row[0] for row in found] == [1, 2, 3]
    assert encoder.tables == 1
