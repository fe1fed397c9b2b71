"""dbt: a project of models, seeds, snapshots and tests, at the server's default level."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg2
from cases import Cases, address, folder, same, url

cases = Cases("dbt", f"{version('dbt-core')}/{version('dbt-postgres')}", seconds_max=170)

FILES = {
    "dbt_project.yml": """
        name: shop
        version: "1.0"
        profile: shop
        models: {shop: {+materialized: view}}
        seeds: {shop: {+column_types: {id: bigint}}}
    """,
    "seeds/customers.csv": "id,name,joined\n1,ada,2024-01-01\n2,bob,2024-02-01\n3,eve,\n",
    "seeds/orders.csv": "id,customer_id,amount\n1,1,10.50\n2,1,20\n3,2,5.25\n",
    "models/stg_orders.sql": """
        select id, customer_id, amount::numeric(10,2) as amount from {{ ref('orders') }}
    """,
    "models/totals.sql": """
        {{ config(materialized='table', indexes=[{'columns': ['id'], 'unique': true}]) }}
        with t as (select customer_id, sum(amount) as total from {{ ref('stg_orders') }} group by 1)
        select c.id, c.name, coalesce(t.total, 0) as total
        from {{ ref('customers') }} c left join t on t.customer_id = c.id
    """,
    "models/log.sql": """
        {{ config(materialized='incremental', unique_key='id') }}
        select id, amount from {{ ref('stg_orders') }}
        {% if is_incremental() %} where id >= (select max(id) from {{ this }}) {% endif %}
    """,
    "models/merged.sql": """
        {{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
        select id, amount from {{ ref('stg_orders') }}
    """,
    "models/grown.sql": """
        {{ config(materialized='incremental', on_schema_change='append_new_columns') }}
        select id {% if is_incremental() %}, 5 as more{% endif %} from {{ ref('stg_orders') }}
    """,
    "models/short.sql": """
        {{ config(materialized='ephemeral') }}
        select 1 as one
    """,
    "models/uses_short.sql": "select one + 1 as two from {{ ref('short') }}",
    "models/schema.yml": """
        models:
          - name: totals
            description: what each customer paid
            config: {persist_docs: {relation: true, columns: true}}
            columns:
              - name: id
                description: the customer
                data_tests: [unique, not_null]
              - name: name
                data_tests: [{accepted_values: {arguments: {values: [ada, bob, eve]}}}]
          - name: stg_orders
            columns:
              - name: customer_id
                data_tests:
                  - relationships: {arguments: {to: ref('customers'), field: id}}
          - name: strict
            config: {contract: {enforced: true}, materialized: table}
            constraints: [{type: primary_key, columns: [id]}]
            columns:
              - {name: id, data_type: int, constraints: [{type: not_null}]}
              - {name: v, data_type: text, constraints: [{type: check, expression: "v <> ''"}]}
    """,
    "models/strict.sql": "select 1::int as id, 'x'::text as v",
    "snapshots/customers_snapshot.sql": """
        {% snapshot customers_snapshot %}
        {{ config(target_schema=target.schema, unique_key='id', strategy='check',
            check_cols='all') }}
        select * from {{ ref('customers') }}
        {% endsnapshot %}
    """,
    "tests/positive.sql": "select * from {{ ref('totals') }} where total < 0",
    "macros/keep.sql": """
        {% macro keep() %}{% do log(run_query('select 41 + 1 as n').columns[0][0], info=true) %}
        {% endmacro %}
    """,
}  # fmt: skip


def _ask(query: str) -> list[Any]:
    connection = psycopg2.connect(url())
    with connection, connection.cursor() as cursor:
        cursor.execute(query)
        rows = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


@contextlib.contextmanager
def _project(schema: str) -> Iterator[Any]:
    """A function that runs dbt in a new project."""
    _ask(f"drop schema if exists {schema} cascade")
    at = address()
    output = {
        "type": "postgres", "host": at["host"], "port": int(at["port"]), "user": at["user"],
        "password": at["password"], "dbname": at["database"], "schema": schema, "threads": 2,
    }  # fmt: skip
    profiles = {"shop": {"target": "dev", "outputs": {"dev": output}}}
    with folder() as place:
        for name, text in {**FILES, "profiles.yml": json.dumps(profiles)}.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

        def dbt(*words: str, code: int = 0) -> str:
            command = [str(Path(sys.executable).parent / "dbt"), "--no-use-colors", *words]
            environment = {**os.environ, "DO_NOT_TRACK": "1", "DBT_PROFILES_DIR": str(place)}
            done = subprocess.run(
                command, cwd=place, env=environment, capture_output=True, text=True, check=False
            )
            print(done.stdout, file=sys.stderr)
            assert done.returncode == code, _complaint(done.stdout)
            return done.stdout

        dbt.place = place  # type: ignore[attr-defined]
        yield dbt


def _complaint(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if "not supported" in line or "rror" in line]
    return found[-1] if found else "dbt failed"


@cases.case
def debug_finds_the_server() -> None:
    with _project("dbt_debug") as dbt:
        same("All checks passed" in dbt("debug"), True)


@cases.case
def build_makes_everything_twice() -> None:
    with _project("dbt_build") as dbt:
        for _ in range(2):
            dbt("build")
        rows = _ask("select name, total from dbt_build.totals order by id")
        same(
            [(name, float(total)) for name, total in rows],
            [("ada", 30.5), ("bob", 5.25), ("eve", 0)],
        )
        same(_ask("select count(*) from dbt_build.log"), [(3,)])


@cases.case
def seeds_and_incremental_models_follow_changes() -> None:
    with _project("dbt_incremental") as dbt:
        dbt("seed")
        dbt("run", "-s", "stg_orders", "log", "merged")
        path = dbt.place / "seeds" / "orders.csv"
        path.write_text("id,customer_id,amount\n1,1,10.50\n3,2,7.25\n4,3,1\n")
        dbt("seed")
        dbt("run", "-s", "stg_orders", "log", "merged")
        wanted = [(1, 10.5), (2, 20.0), (3, 7.25), (4, 1.0)]
        for table in ("log", "merged"):
            rows = _ask(f"select id, amount from dbt_incremental.{table} order by id")
            same([(key, float(amount)) for key, amount in rows], wanted)
        dbt("run", "-s", "log", "--full-refresh")
        same(_ask("select count(*) from dbt_incremental.log"), [(3,)])


@cases.case
def new_columns_are_appended() -> None:
    with _project("dbt_grown") as dbt:
        dbt("seed")
        dbt("run", "-s", "stg_orders", "grown")
        dbt("run", "-s", "grown")
        same(_ask("select count(*), count(more) from dbt_grown.grown"), [(6, 3)])


@cases.case
def snapshots_keep_history() -> None:
    with _project("dbt_snap") as dbt:
        dbt("seed")
        dbt("snapshot")
        (dbt.place / "seeds" / "customers.csv").write_text(
            "id,name,joined\n1,ada,2024-01-01\n2,robert,2024-02-01\n3,eve,\n"
        )
        dbt("seed")
        dbt("snapshot")
        query = "select name, dbt_valid_to is null from dbt_snap.customers_snapshot where id = 2"
        same(sorted(_ask(query)), [("bob", False), ("robert", True)])


@cases.case
def tests_find_what_is_wrong() -> None:
    with _project("dbt_tests") as dbt:
        dbt("build", "--exclude", "customers_snapshot")
        _ask("insert into dbt_tests.orders values (9, 77, 1)")
        out = dbt("test", "--store-failures", code=1)
        same("Got 1 result, configured to fail if != 0" in out, True)


@cases.case
def contracts_and_comments() -> None:
    with _project("dbt_contract") as dbt:
        dbt("build", "-s", "strict", "+totals")
        constraints = "select count(*) from information_schema.table_constraints"
        keys = "where table_schema = 'dbt_contract' and constraint_type = 'PRIMARY KEY'"
        same(_ask(f"{constraints} {keys}"), [(1,)])
        query = "select obj_description('dbt_contract.totals'::regclass, 'pg_class')"
        same(_ask(query), [("what each customer paid",)])
        index = "where tablename = 'totals' and schemaname = 'dbt_contract'"
        query = f"select strpos(indexdef, 'UNIQUE') > 0 from pg_indexes {index}"
        same(_ask(query), [(True,)])


@cases.case
def the_catalog_is_documented() -> None:
    with _project("dbt_docs") as dbt:
        dbt("build", "-s", "+totals")
        dbt("docs", "generate")
        found = json.loads((dbt.place / "target" / "catalog.json").read_text())
        same(found["errors"], None)
        node = found["nodes"]["model.shop.totals"]
        same(
            (node["metadata"]["type"], list(node["columns"])),
            ("BASE TABLE", ["id", "name", "total"]),
        )


@cases.case
def operations_and_previews() -> None:
    with _project("dbt_show") as dbt:
        same("42" in dbt("run-operation", "keep"), True)
        dbt("seed")
        same(
            "20" in dbt("show", "--inline", "select max(amount) as m from {{ ref('orders') }}"),
            True,
        )
        dbt("compile", "-s", "uses_short")
        dbt("run", "-s", "uses_short")
        same(_ask("select two from dbt_show.uses_short"), [(2,)])


@cases.case
def a_view_becomes_a_table_and_back() -> None:
    with _project("dbt_swap") as dbt:
        dbt("seed")
        path = dbt.place / "models" / "stg_orders.sql"
        body = path.read_text()
        for kind in ("table", "view", "table"):
            path.write_text(f"{{{{ config(materialized='{kind}') }}}}\n{body}")
            dbt("run", "-s", "stg_orders", "totals")
        same(_ask("select count(*) from dbt_swap.totals"), [(3,)])


if __name__ == "__main__":
    cases.run()
