"""J3, J4 of `compute/reference/joins.py`: looking up keys changes neither rows nor their order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute.reference.expressions import Row
from compute.reference.joins import EqualPlaces, JoinSides, equal_places, joined_rows
from sql.plan.nodes import Join, JoinKind
from sql.plan.traverse import plan_nodes
from tests.unit.sql.test_read_conditions import plan_of

_ROWS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers(0, 2)), max_size=12)


@given(_ROWS, _ROWS, st.sampled_from(list(JoinKind)), st.sampled_from([1, 2]), st.booleans())
def test_rows_and_their_order(
    left: list[Row], right: list[Row], kind: JoinKind, keys: int, nulls: bool
) -> None:
    def condition(row: Row) -> bool | None:
        if not nulls and (row[0] is None or row[2] is None):
            return None
        return row[0] == row[2] and (keys == 1 or row[1] == row[3])

    equal = [EqualPlaces(0, 0, nulls), EqualPlaces(1, 1, False)][:keys]
    nothing: Row = (None, None)
    sides = JoinSides(
        lambda: iter(left), lambda: iter(right), condition, equal, nothing, nothing, None
    )
    looped = replace(sides, equal=())
    assert list(joined_rows(kind, sides)) == list(joined_rows(kind, looped))


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("a.id = b.id", 1),
        ("b.id = a.id and a.k = b.k", 2),
        ("a.id = b.k and (a.k = b.id and a.s < b.s)", 2),
        ("a.id = b.id and 1 / b.k > 0 and a.k = b.k", 1),
        ("1 / b.k > 0 and a.id = b.id", 0),
        ("a.id = a.k", 0),
        ("a.s = b.s", 1),
        ("a.id = b.id or a.k = b.k", 0),
        ("a.id is not distinct from b.id", 1),
        ("a.id is distinct from b.id", 0),
        ("a.id < b.id", 0),
    ],
)
def test_which_columns_are_looked_up(condition: str, count: int) -> None:
    plan = plan_of(f"select 1 from l a left join r b on {condition}")
    (join,) = (node for node in plan_nodes(plan) if isinstance(node, Join))
    assert len(equal_places(join)) == count
