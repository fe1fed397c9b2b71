"""Passes keep the columns of a plan (P1), and what a plan lacks they do not bring in (F1)."""

import pytest

from sql.emit.duckdb import dialect as duckdb
from sql.emit.duckdb.passes import DUCKDB_PASSES
from sql.emit.spark import dialect as spark
from sql.emit.spark.passes import SPARK_PASSES
from sql.plan.nodes import Plan, output_columns
from sql.plan.traverse import scans
from sql.rewrite import passes
from sql.rewrite.passes import (
    CHARACTERS_MAX,
    NODES_MAX,
    REWRITTEN_MAX,
    Pass,
    RewrittenPlans,
    apply_passes,
)
from sql.rewrite.plan_facts import PlanFacts, facts_of
from sql.types.sql_type import FLOAT8, INT8
from tests.engines.spark.shared_engine import plan_of

COLUMNS = [("id", INT8), ("k", INT8), ("v", INT8)]
FLOATS = [("k", INT8), ("f", FLOAT8)]
STATEMENTS = (
    "select k, count(*) from t where v > 1 group by k order by k",
    "select case when v <> 0 then 10 / v end from t",
    "select q from (select k, 10 / v as q from t) s where k = 1 or q > 1",
    "select (select max(u.v) from u where u.k = t.k) from t",
    "select (select u.v from u where u.k = t.k and 10 / u.v > 1) from t",
    "select case when k > 0 then (select 10 / v from u limit 1) end from t",
    "select * from t left join u on t.k = u.k and exists (select from s where s.k = t.v + u.v)",
    "select x.n from t, lateral (select count(*) as n from u where u.k = t.k) x",
    "select (select w.f + t.v from t where t.k = w.k limit 1) from w",
    "select lag(v, 1, 10 / k) over (order by id) from t",
    "select case random(1, 2) when 1 then 'a' when 2 then 'b' end from t",
    "with recursive r as (select k from t union select k + 1 from r where k < 3) select k from r",
)
PASSES = {"local": DUCKDB_PASSES, "spark": SPARK_PASSES}


def shown(facts: PlanFacts) -> dict[str, bool]:
    return {
        "subquery": facts.has_subquery,
        "lateral": facts.has_lateral,
        "volatile": facts.is_volatile,
        "outer float": facts.has_outer_float,
        "failure": facts.may_fail(by_overflow=False),
        "overflow": facts.may_fail(),
    }


@pytest.mark.parametrize("engine", PASSES)
@pytest.mark.parametrize("text", STATEMENTS)
def test_passes_keep_columns_and_what_is_not_there(engine: str, text: str) -> None:
    plan = plan_of(text, t=COLUMNS, u=COLUMNS, s=COLUMNS, w=FLOATS)
    facts, columns = facts_of(plan), output_columns(plan)
    absent = {name for name, there in shown(facts).items() if not there}
    for rewrite in PASSES[engine]:
        plan = rewrite(plan, facts)
        assert output_columns(plan) == columns
        assert not absent & {name for name, there in shown(facts_of(plan)).items() if there}


def test_passes_run_in_the_order_of_the_tuple_with_the_facts_of_the_first_plan() -> None:
    plan = plan_of("select 1 / v from t", t=COLUMNS)
    seen: list[tuple[str, PlanFacts]] = []

    def noting(name: str) -> Pass:
        def note(plan: Plan, facts: PlanFacts) -> Plan:
            seen.append((name, facts))
            return plan

        return note

    assert apply_passes(plan, (noting("a"), noting("b"))) is plan
    assert seen == [("a", facts_of(plan)), ("b", facts_of(plan))]
    assert facts_of(plan).fails


def test_passes_run_once_for_a_plan() -> None:
    runs: list[Plan] = []

    def noted(plan: Plan, _facts: PlanFacts) -> Plan:
        runs.append(plan)
        return plan

    rewritten = RewrittenPlans([noted])
    one, other = (plan_of("select k from t where v > 1", t=COLUMNS) for _ in range(2))
    assert rewritten.of(one) is rewritten.of(one)
    assert len(runs) == 1
    rewritten.of(other)
    assert len(runs) == 2, "an equal plan is another one"
    long = plan_of("values " + ", ".join(f"({n})" for n in range(NODES_MAX)))
    rewritten.of(long)
    rewritten.of(long)
    assert len(runs) == 4, "a long one is not held"
    wide = plan_of(f"select '{'x' * CHARACTERS_MAX}' || 'y'")
    rewritten.of(wide)
    rewritten.of(wide)
    assert len(runs) == 6, "nor is a large literal"
    for _ in range(REWRITTEN_MAX):
        rewritten.of(plan_of("select 1"))
    rewritten.of(one)
    assert len(runs) == 7 + REWRITTEN_MAX, "the oldest is forgotten"


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_a_relation_of_another_name_needs_no_passes(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("select case when v <> 0 then 10 / v end from t", t=COLUMNS)
    (relation,) = {scan.relation for scan in scans(plan)}
    emit = {"spark": spark.emit, "duckdb": duckdb.emit}[engine]
    first = emit(plan, {relation: "r1"}).text

    def none(plan: Plan, passes: object) -> Plan:
        raise AssertionError("the passes have run for this plan")

    monkeypatch.setattr(passes, "apply_passes", none)
    assert emit(plan, {relation: "r2"}).text == first.replace("r1", "r2")
