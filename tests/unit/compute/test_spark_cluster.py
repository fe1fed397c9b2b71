"""What is handed to Spark for a cluster, and how long a query waits for its executors."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compute.executor import NoExecutors
from compute.spark import cluster as cluster_module
from compute.spark.allowed_conf import ALLOWED_CONF, refused_conf
from compute.spark.cluster import ClusterWatch, StartWatch
from compute.spark.session import ClusterSettings, SparkSettings, launch_conf
from coordinator.config import Settings, SettingsError, load
from coordinator.failures import statement_failure
from storage.threads import Threads

URL = "spark://master:7077"


def conf_of(cluster: ClusterSettings | None, **conf: str) -> dict[str, str]:
    master = "local[*]" if cluster is None else URL
    settings = SparkSettings(Path("/d"), Path("/w"), master=master, conf=conf, cluster=cluster)
    return launch_conf(settings)


@pytest.mark.parametrize("cluster", [None, ClusterSettings()])
def test_the_driver_is_on_loopback_unless_somebody_says_where(
    cluster: ClusterSettings | None,
) -> None:
    conf = conf_of(cluster)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    for name in ("spark.driver.port", "spark.executor.memory", "spark.cores.max"):
        assert name not in conf


def test_a_cluster_is_told_where_the_driver_is_and_what_it_may_take() -> None:
    conf = conf_of(
        ClusterSettings(
            driver_host="db.example",
            driver_bind="0.0.0.0",
            driver_port=7078,
            executor_memory_mb=3000,
            cores_max=12,
        )
    )
    expected = {
        "spark.master": URL,
        "spark.driver.host": "db.example",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.port": "7078",
        "spark.executor.memory": "3000m",
        "spark.cores.max": "12",
    }
    assert expected.items() <= conf.items()
    host = conf_of(ClusterSettings(driver_host="10.0.0.5"))
    assert host["spark.driver.bindAddress"] == "10.0.0.5"


def test_what_the_server_decides_wins_over_what_is_given() -> None:
    given = {"spark.executor.cores": "4", "spark.driver.host": "x", "spark.sql.ansi.enabled": "no"}
    conf = conf_of(ClusterSettings(), **given)
    assert conf["spark.executor.cores"] == "4"
    assert conf["spark.driver.host"] == "127.0.0.1"
    assert conf["spark.sql.ansi.enabled"] == "true"


def test_only_listed_settings_of_spark_may_be_given() -> None:
    assert refused_conf(dict.fromkeys(ALLOWED_CONF, "1")) is None
    assert refused_conf({"spark.executorEnv.JAVA_HOME": "/java"}) is None
    for name in ("spark.sql.ansi.enabled", "spark.executor.extraJavaOptions", "spark.executorEnv."):
        assert refused_conf({name: "1"}) == name
    decided = launch_conf(SparkSettings(Path("/d"), Path("/w")))
    assert not ALLOWED_CONF & decided.keys(), "what is fixed cannot be given"


def settings_of(*sets: str, flags: dict[str, str] | None = None) -> Settings:
    return load(flags=flags or {}, sets=sets, environment={})


def test_settings_of_a_cluster(tmp_path: Path) -> None:
    master = f"spark_master={URL}"
    settings = settings_of(
        master, "spark_driver_host=h", "spark_driver_port=0", "spark_conf.spark.executor.cores=2"
    )
    assert settings.spark_conf == {"spark.executor.cores": "2"}
    assert settings.spark_wait_s == 60
    file = tmp_path / "m.toml"
    file.write_text('[spark_conf]\n"spark.network.timeout" = "30s"\n')
    from_file = settings_of(master, flags={"config": str(file)})
    assert from_file.spark_conf == {"spark.network.timeout": "30s"}


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        (["spark_driver_host=h"], "spark_driver_host is for a cluster"),
        (["spark_cores_max=2"], "spark_cores_max is for a cluster"),
        ([f"spark_master={URL}", "spark_driver_bind=h"], "needs spark_driver_host"),
        ([f"spark_master={URL}", "spark_driver_port=70000"], "at most 65535"),
        ([f"spark_master={URL}", "spark_wait_s=0"], "greater than 0"),
        (["spark_conf.spark.jars=x"], 'spark_conf takes no "spark.jars"'),
    ],
)
def test_wrong_settings_of_a_cluster_are_refused(sets: list[str], line: str) -> None:
    with pytest.raises(SettingsError, match=line):
        settings_of(*sets)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "POLL_SECONDS", 0.001)


def watched(count: Callable[[], int], wait_s: float) -> Any:
    """What a query gives that ends when `count` was asked ten times."""

    async def run() -> str:
        threads, asked = Threads(1, "asked"), [0]
        work: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def counted() -> int:
            asked[0] += 1
            if asked[0] == 10:
                loop.call_soon_threadsafe(work.set_result, "done")
            return count()

        loop = asyncio.get_running_loop()
        try:
            return await ClusterWatch(counted, threads, wait_s=wait_s).until(work)
        finally:
            threads.shutdown()

    return asyncio.run(run())


@pytest.mark.usefixtures("no_patience")
def test_a_query_waits_for_executors_for_so_long_and_then_is_refused() -> None:
    assert watched(lambda: 1, wait_s=0.0) == "done"
    assert watched(lambda: 0, wait_s=3600) == "done"
    with pytest.raises(NoExecutors):
        watched(lambda: 0, wait_s=0.0)


@pytest.mark.usefixtures("no_patience")
def test_executors_that_are_lost_and_found_again_are_no_refusal() -> None:
    counts = iter([1, 0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert watched(lambda: next(counts), wait_s=3600) == "done"


@pytest.mark.usefixtures("no_patience")
def test_who_waits_for_a_start_without_executors_is_refused() -> None:
    class Context:
        """A SparkContext, but for what is asked of it."""

        def statusTracker(self) -> "Context":  # noqa: N802 - Spark's name
            return self

        def getExecutorInfos(self) -> list[str]:  # noqa: N802
            return ["driver"] if not there.is_set() else ["driver", "1"]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        watch, start = StartWatch(0.0), loop.create_future()
        waiting = loop.run_in_executor(threads, watch.until_there, Context())
        with pytest.raises(NoExecutors) as caught:
            await watch.ready(start)
        failure = statement_failure(caught.value)
        assert (failure.sqlstate, failure.message) == (
            "57P03", "the Spark cluster has no executors"
        )  # fmt: skip
        there.set()
        await waiting
        start.set_result("ready")
        assert await watch.ready(start) == "ready"

    there, threads = threading.Event(), Threads(1, "start")
    asyncio.run(run())
    threads.shutdown()
