"""Plans that stand twice: fresh ids inside, the same ids outside."""

from collections.abc import Callable
from itertools import count

from sql.binder.bind import bind
from sql.parser.parse import parse
from sql.plan.nodes import ColumnId, Plan, PlanColumn, Subquery, output_columns
from sql.plan.renumbering import (
    canonical_expression,
    free_columns,
    is_same_expression,
    parts_with_columns,
    with_fresh_ids,
)
from sql.plan.traverse import child_expressions, plan_expressions
from sql.statements.bound import BoundQuery
from tests.unit.sql.described import context


def plan_of(text: str) -> Plan:
    bound = bind(parse(text)[0], context(), []).bound
    assert isinstance(bound, BoundQuery)
    return bound.plan


def from_10_000() -> Callable[[], ColumnId]:
    numbers = count(10_000)
    return lambda: ColumnId(next(numbers))


def made(value: object) -> set[int]:
    own = {int(value.id)} if isinstance(value, PlanColumn) else set[int]()
    return own.union(*[made(part) for part in parts_with_columns(value)])


def subqueries(plan: Plan) -> list[Subquery]:
    exprs = list(plan_expressions(plan))
    found: list[Subquery] = []
    while exprs:
        expr = exprs.pop()
        exprs += child_expressions(expr)
        if isinstance(expr, Subquery):
            found.append(expr)
    return found


QUERIES = (
    "select a, sum(l) over (partition by b order by a) from t"
    " where exists (select 1 from u where x = a)",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3)"
    " select p.n, q.n from r p join r q on p.n < q.n",
    "select distinct on (b) b, (select max(x) from u where y = t.b) from t order by b limit 3",
    "select b, grouping(b), count(*) from t group by rollup (b) union select y, 0, x from u",
    "select g, num from t, generate_series(1, t.a) with ordinality s(g, num)",
)


def test_everything_that_a_plan_makes_gets_another_id() -> None:
    for text in QUERIES:
        plan = plan_of(text)
        fresh, ids = with_fresh_ids(plan, from_10_000())
        assert made(plan).isdisjoint(made(fresh)), text
        assert free_columns(fresh) == free_columns(plan) == set(), text
        columns = zip(output_columns(plan), output_columns(fresh), strict=True)
        assert all(ids[old.id] == new.id and old.name == new.name for old, new in columns), text
        back = {new: old for old, new in ids.items()}
        assert len(back) == len(ids), text


def test_what_a_plan_refers_to_outside_stays() -> None:
    (subquery,) = subqueries(plan_of("select (select max(x) from u where y = t.b) from t"))
    outside = free_columns(subquery.plan)
    assert len(outside) == 1
    fresh, _ = with_fresh_ids(subquery.plan, from_10_000())
    assert free_columns(fresh) == outside
    assert fresh != subquery.plan


def test_subqueries_of_one_form_are_the_same() -> None:
    text = (
        "select (select max(x) from u where y = t.b), (select max(x) from u where y = t.b) from t"
    )
    left, right = subqueries(plan_of(text))
    assert left != right
    assert is_same_expression(left, right)
    assert canonical_expression(left) == canonical_expression(right)
    other = (
        "select (select max(x) from u where y = t.b), (select min(x) from u where y = t.b) from t"
    )
    left, right = subqueries(plan_of(other))
    assert not is_same_expression(left, right)
