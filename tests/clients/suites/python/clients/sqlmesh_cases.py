"""SQLMesh: plans, environments, incremental models, audits; state and models on the server."""

import contextlib
import datetime
import os
import textwrap
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
os.environ["MAX_FORK_WORKERS"] = "1"

import psycopg2
from cases import Cases, address, folder, same, url
from sqlmesh import Context
from sqlmesh.core.config import Config, GatewayConfig, ModelDefaultsConfig, PostgresConnectionConfig

cases = Cases("sqlmesh", version("sqlmesh"), seconds_max=170)

MODELS = {
    "seeds/person.csv": "id,name,day\n1,ada,2024-01-01\n2,bob,2024-01-02\n3,eve,2024-01-03\n",
    "models/person.sql": """
        MODEL (name sm.person, kind SEED (path '../seeds/person.csv'),
            columns (id INT, name TEXT, day DATE), grain id);
    """,
    "models/daily.sql": """
        MODEL (name sm.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day),
            start '2024-01-01', cron '@daily', audits (not_null(columns := (id))));
        SELECT id, name, day FROM sm.person WHERE day BETWEEN @start_date AND @end_date;
    """,
    "models/keyed.sql": """
        MODEL (name sm.keyed, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), start '2024-01-01');
        SELECT id, name FROM sm.person;
    """,
    "models/full.sql": """
        MODEL (name sm.whole, kind FULL, start '2024-01-01');
        SELECT COUNT(*)::INT AS n, MAX(name)::TEXT AS last FROM sm.daily;
    """,
    "models/view.sql": """
        MODEL (name sm.seen, kind VIEW);
        SELECT id, UPPER(name) AS name FROM sm.person;
    """,
}


def _ask(query: str) -> list[Any]:
    connection = psycopg2.connect(url())
    with connection, connection.cursor() as cursor:
        cursor.execute(query)
        rows = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


@contextlib.contextmanager
def _project() -> Iterator[tuple[Any, Any]]:
    """A function that makes a context, and the project's folder."""
    schemas = "select nspname from pg_namespace where nspname like 'sm%' or nspname like 'sqlmesh%'"
    for (name,) in _ask(schemas):
        _ask(f'drop schema "{name}" cascade')
    at = address()
    connection = PostgresConnectionConfig(
        host=at["host"], port=int(at["port"]), user=at["user"], password=at["password"],
        database=at["database"], concurrent_tasks=1,
    )  # fmt: skip
    with folder() as place:
        for name, text in MODELS.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        config = Config(
            gateways={"main": GatewayConfig(connection=connection)},
            model_defaults=ModelDefaultsConfig(dialect="postgres"),
        )
        yield (lambda: Context(paths=str(place), config=config)), place


def _planned(context: Any, environment: str = "prod", **options: Any) -> None:
    context.plan(environment, auto_apply=True, no_prompts=True, **options)


@cases.case
def a_plan_builds_every_kind_of_model() -> None:
    with _project() as (make, _):
        _planned(make())
        same(_ask("select n, last from sm.whole"), [(3, "eve")])
        same(_ask("select count(*) from sm.daily"), [(3,)])
        same(sorted(_ask("select id, name from sm.keyed")), [(1, "ada"), (2, "bob"), (3, "eve")])
        same(_ask("select name from sm.seen where id = 1"), [("ADA",)])


@cases.case
def a_second_plan_changes_nothing() -> None:
    with _project() as (make, _):
        _planned(make())
        plan = make().plan_builder("prod", skip_tests=True).build()
        same((plan.has_changes, plan.requires_backfill), (False, False))


@cases.case
def an_environment_of_its_own() -> None:
    with _project() as (make, place):
        _planned(make())
        path = place / "models" / "full.sql"
        path.write_text(path.read_text().replace("MAX(name)", "MIN(name)"))
        context = make()
        _planned(context, "dev", include_unmodified=True)
        same(_ask("select last from sm__dev.whole"), [("ada",)])
        same(_ask("select last from sm.whole"), [("eve",)])
        _planned(make())
        same(_ask("select last from sm.whole"), [("ada",)])


@cases.case
def rows_that_change_are_restated() -> None:
    with _project() as (make, _):
        _planned(make())
        _planned(make(), restate_models=["sm.keyed"], start="2024-01-01")
        same(_ask("select count(*) from sm.keyed"), [(3,)])


@cases.case
def audits_run() -> None:
    with _project() as (make, _):
        context = make()
        _planned(context)
        context.audit(start="2024-01-01", end=datetime.date(2024, 1, 5))


@cases.case
def a_model_is_evaluated_and_queried() -> None:
    with _project() as (make, _):
        context = make()
        _planned(context)
        same(len(context.evaluate("sm.seen", "2024-01-01", "2024-01-05", "2024-01-05")), 3)
        same(int(context.fetchdf("select count(*) as n from sm.person").n[0]), 3)


@cases.case
def environments_are_diffed_and_removed() -> None:
    with _project() as (make, _):
        context = make()
        _planned(context)
        _planned(context, "dev", include_unmodified=True)
        context.table_diff("prod", "dev", on=["id"], select_models={"sm.keyed"})
        context.invalidate_environment("dev", sync=True)
        same(_ask("select count(*) from pg_views where schemaname = 'sm__dev'"), [(0,)])


@cases.case
def a_run_and_a_clean_up() -> None:
    with _project() as (make, _):
        context = make()
        _planned(context)
        context.run()
        context.run_janitor(ignore_ttl=True)
        same(_ask("select n from sm.whole"), [(3,)])


if __name__ == "__main__":
    cases.run()
