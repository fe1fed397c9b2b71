"""dlt, its PostgreSQL destination."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

import dlt
import psycopg2
from cases import Cases, address, folder, same, url

cases = Cases("dlt", dlt.__version__, seconds_max=90)


@contextlib.contextmanager
def _pipeline(dataset: str) -> Iterator[Any]:
    _ask(f"drop schema if exists {dataset} cascade")
    _ask(f"drop schema if exists {dataset}_staging cascade")
    with folder() as place:
        # It wants a password, also where the server asks for none.
        at = {**address(), "password": address()["password"] or "none"}
        made = "postgresql://{user}:{password}@{host}:{port}/{database}".format(**at)
        destination = dlt.destinations.postgres(made)
        yield dlt.pipeline(
            dataset, destination=destination, dataset_name=dataset, pipelines_dir=str(place)
        )


def _ask(query: str) -> list[Any]:
    connection = psycopg2.connect(url())
    with connection, connection.cursor() as cursor:
        cursor.execute(query)
        rows = cursor.fetchall() if cursor.description else []
    connection.close()
    return rows


@cases.case
def rows_are_appended_and_replaced() -> None:
    with _pipeline("dlt_append") as pipeline:
        rows = [{"id": 1, "name": "ada", "score": 1.5}, {"id": 2, "name": None, "score": 2.0}]
        for mode in ("replace", "append"):
            pipeline.run(rows, table_name="person", write_disposition=mode)
        same(_ask("select count(*), count(name) from dlt_append.person"), [(4, 2)])
        pipeline.run(rows, table_name="person", write_disposition="replace")
        same(_ask("select count(*) from dlt_append.person"), [(2,)])


@cases.case
def rows_are_merged_by_key() -> None:
    with _pipeline("dlt_merge") as pipeline:
        options = {"table_name": "t", "write_disposition": "merge", "primary_key": "id"}
        pipeline.run([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], **options)
        pipeline.run([{"id": 2, "v": "c"}, {"id": 3, "v": "d"}], **options)
        same(_ask("select id, v from dlt_merge.t order by id"), [(1, "a"), (2, "c"), (3, "d")])


@cases.case
def rows_are_upserted() -> None:
    with _pipeline("dlt_upsert") as pipeline:
        mode = {"disposition": "merge", "strategy": "upsert"}
        options = {"table_name": "t", "write_disposition": mode, "primary_key": "id"}
        pipeline.run([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], **options)
        pipeline.run([{"id": 2, "v": "c"}], **options)
        same(_ask("select id, v from dlt_upsert.t order by id"), [(1, "a"), (2, "c")])


@cases.case
def history_is_kept() -> None:
    with _pipeline("dlt_scd") as pipeline:
        mode = {"disposition": "merge", "strategy": "scd2"}
        pipeline.run([{"id": 1, "v": "a"}], table_name="t", write_disposition=mode)
        pipeline.run([{"id": 1, "v": "b"}], table_name="t", write_disposition=mode)
        query = "select v, _dlt_valid_to is null from dlt_scd.t order by v"
        same(_ask(query), [("a", False), ("b", True)])


@cases.case
def nested_rows_are_tables() -> None:
    with _pipeline("dlt_nested") as pipeline:
        pipeline.run(
            [{"id": 1, "pets": [{"n": "x"}, {"n": "y"}], "at": {"x": 1}}], table_name="owner"
        )
        query = "select o.at__x, p.n from dlt_nested.owner o join dlt_nested.owner__pets p"
        same(_ask(f"{query} on p._dlt_parent_id = o._dlt_id order by n"), [(1, "x"), (1, "y")])


@cases.case
def columns_come_later() -> None:
    with _pipeline("dlt_evolve") as pipeline:
        pipeline.run([{"id": 1}], table_name="t")
        pipeline.run([{"id": 2, "more": "x", "when": "2024-01-01T00:00:00Z"}], table_name="t")
        same(_ask("select id, more from dlt_evolve.t order by id"), [(1, None), (2, "x")])


@cases.case
def a_load_is_incremental() -> None:
    with _pipeline("dlt_incremental") as pipeline:
        at = dlt.sources.incremental("id", initial_value=0)

        @dlt.resource(name="t", primary_key="id")
        def rows(upto: int, id_: Any = at) -> Iterator[dict[str, int]]:
            yield from ({"id": i} for i in range(1, upto) if i > (id_.last_value or 0))

        pipeline.run(rows(4))
        pipeline.run(rows(6))
        same(_ask("select count(*), max(id) from dlt_incremental.t"), [(5, 5)])


@cases.case
def state_is_restored_from_the_destination() -> None:
    with _pipeline("dlt_state") as pipeline:
        pipeline.run([{"id": 1}], table_name="t")
        pipeline.drop()
        pipeline.sync_destination()
        same("t" in pipeline.default_schema.tables, True)
        same(len(_ask("select * from dlt_state._dlt_loads")), 1)


@cases.case
def datasets_are_read_back() -> None:
    with _pipeline("dlt_read") as pipeline:
        pipeline.run([{"id": i, "v": i * 1.5} for i in range(10)], table_name="t")
        same(len(pipeline.dataset()["t"].df()), 10)
        with pipeline.sql_client() as client:
            same(client.execute_sql("select sum(v) from t where id > %s", 7), [(25.5,)])


@cases.case
def frames_are_loaded() -> None:
    import pandas

    with _pipeline("dlt_frame") as pipeline:
        frame = pandas.DataFrame({"id": [1, 2], "t": ["x", "ü"]})
        pipeline.run(frame, table_name="t")
        same(_ask("select id, t from dlt_frame.t order by id"), [(1, "x"), (2, "ü")])


if __name__ == "__main__":
    cases.run()
