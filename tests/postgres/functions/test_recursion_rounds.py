"""Which recursions Spark does itself, and what is made before a statement for the others."""

from collections.abc import Iterator

import pytest

from compute.engine_sql import engine_sql
from sql.emit.emitted_query import DerivedRelation, EmittedQuery, Iterations
from sql.emit.spark.dialect import emit
from sql.errors import SqlError
from sql.plan.nodes import RelationId
from sql.types.sql_type import INT4
from tests.engines.spark.shared_engine import plan_of

EDGE = [("a", INT4), ("b", INT4)]
REACH = "with recursive r(x) as (select 1 union select b from edge, r where a = x)"
DEPTHS = "with recursive r(x) as (select 1 union all select b from edge, r where a = x)"


def emitted(text: str, *parameters: int) -> EmittedQuery:
    plan = plan_of(text, edge=EDGE)
    return emit(plan, {RelationId("edge"): "edge"}, parameters, prefix="m")


def rounds_of(made: DerivedRelation) -> Iterations:
    assert made.rounds is not None, "it is a recursion"
    return made.rounds


def all_made(query: EmittedQuery) -> Iterator[DerivedRelation]:
    """What is made before a statement, and before that."""
    for one in query.made:
        yield one
        yield from all_made(one.base)
        if one.rounds is not None:
            yield from all_made(one.rounds.step)


def test_a_union_is_made_in_rounds() -> None:
    query = emitted(f"{REACH} select x from r")
    (made,) = query.made
    rounds = rounds_of(made)
    assert rounds.distinct
    assert f"`{made.name}`" in query.text
    assert f"`{rounds.last}`" in rounds.step.text
    assert "except" in rounds.step.text
    assert f"`{made.name}`" in rounds.step.text
    assert "recursive" not in query.text


@pytest.mark.parametrize(
    ("step", "native"),
    [
        ("select b from edge, r where a = x", True),
        ("select b from r left join edge on a = x", True),
        ("select b from edge right join r on a = x", True),
        ("select x + 1 from r where x < (select max(a) from edge)", True),
        ("select max(n) + 1 from (select x as n from r) q having max(n) < 5", False),
        ("select n from (select x + 1 as n, row_number() over () from r) q where n < 5", False),
        ("select n from (select x + 1 as n from r limit 1) q where n < 5", False),
        ("select distinct x + 1 from r where x < 5", False),
        ("(select x + 1 from r where x < 5 except select 3)", False),
        ("(with s as (select x from r) select p.x + 1 from s p, s q where p.x < 5)", False),
        ("select x + n from r, (select a, count(*)::int as n from edge group by a) e", False),
        ("select l.b from r, lateral (select b from edge where a = x limit 1) l", True),
    ],
)
def test_what_spark_does_itself(step: str, native: bool) -> None:
    text = f"with recursive r(x) as (select 1 union all {step}) select x from r"
    query = emitted(text)
    assert ("recursive" in query.text) is native
    assert bool(query.made) is not native


def test_with_queries_that_a_step_reads_are_made_once_and_by_whoever_reads_them_first() -> None:
    query = emitted(
        "with recursive s as (select a, count(*) as n from edge group by a),"
        " r(x) as (select 1 union select s.a from r, s, s z where s.n = x and z.n = x)"
        " select count(*) from r, s"
    )
    recursion, shared = query.made
    assert shared.rounds is None
    assert not recursion.base.made
    assert rounds_of(recursion).step.made == (shared,)
    assert shared.within == frozenset()


def test_what_reads_a_round_is_made_anew_for_the_next() -> None:
    query = emitted(
        "with recursive r(x) as (select 1 union"
        " (with recursive u(y) as (select x from r where x < 3 union select y + 1 from u"
        " where y < 9) select p.y from u p, (with recursive w(z) as (select 1 union"
        " select z + 1 from w where z < 3) select z from w) w where p.y > w.z)) select x from r"
    )
    (outer,) = query.made
    last = rounds_of(outer).last
    inner, alone = rounds_of(outer).step.made
    assert inner.within == {last}
    assert alone.within == frozenset()
    assert outer.within == frozenset()
    names = [made.name for made in all_made(query)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("text", "rows_max"),
    [
        ("select x from r limit 3", 3),
        ("select x + 1 from r offset 2 limit 3", 5),
        ("select x from r limit $1", 7),
        ("select x from r order by x limit 3", None),
        ("select x from r where x > 2 limit 3", None),
        ("select count(*) from r limit 3", None),
        ("select x from r offset 3", None),
        ("select x from r limit null", None),
    ],
)
def test_a_limit_ends_the_rounds(text: str, rows_max: int | None) -> None:
    (made,) = emitted(f"{REACH} {text}", *[7] * ("$1" in text)).made
    assert rounds_of(made).rows_max == rows_max


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # One recursion for each row of `edge`.
        ("select (with recursive r(x) as (select a union select x - 1 from r) select max(x) from r)"
         " from edge", "WITH RECURSIVE that refers to the query around it"),
        # It is made even if no row asks for it.
        ("select case when a > 9 then (with recursive r(x) as (select 1 union select 9 / x from r)"
         " select max(x) from r) end from edge", "a recursion that may fail, in a subquery,"),
        ("with recursive s as (select 1 / a as a from edge) select (with recursive r(x) as"
         " (select 1 union select s.a from r, s, s z where s.a = z.a) select max(x) from r)"
         " from edge", "a recursion that may fail, in a subquery,"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, refused: str) -> None:
    with pytest.raises(SqlError) as raised:
        emitted(text)
    assert raised.value.sqlstate == "0A000"
    assert raised.value.message.startswith(refused)


def test_explain_tells_what_is_made_before() -> None:
    shown = engine_sql("spark", plan_of(f"{REACH} select x from r", edge=EDGE), ())
    assert shown is not None
    main, base, step = shown.split("; ")
    assert "from `made_2`" in main
    assert base.startswith("made_2: select distinct ")
    assert step.startswith("made_2 by rounds of made_1: select ")


def test_a_plain_recursion_stays_in_the_statement() -> None:
    assert not emitted(f"{DEPTHS} select x from r").made
