"""A real Prometheus scrapes a server under load; each alert's expression is asked of it.

`make visible`: needs Debian's `prometheus`, which `.ci/run` installs.
"""

import json
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.session.deployment.deployed import DEPLOY, dashboard_expressions, read_yaml
from tests.session.deployment.test_deployment import metrics_of
from tests.session.monitoring.http_client import get
from tests.support.servers import free_port, meridian

pytestmark = pytest.mark.slow

RULES = DEPLOY / "prometheus" / "alerts.yml"
PATIENCE_S = 60
"""Only against hanging for ever."""

CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: [{rules}]
scrape_configs:
  - job_name: meridian
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    """The path of one of Debian's programs."""
    found = shutil.which(name)
    assert found is not None, "install Debian's package prometheus, as .ci/run does"
    return found


def promtool(*arguments: str, told: str = "") -> str:
    """What it has to say; nothing but success is taken."""
    command = [program("promtool"), *arguments]
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def load(dsn: str) -> Iterator[None]:
    """Clients that write, read and fail, all the time."""
    done = threading.Event()

    def work() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not done.is_set():
                connection.execute("insert into loaded values (1)")
                connection.execute("select count(*) from loaded")
                with pytest.raises(psycopg.errors.DivisionByZero):
                    connection.execute("select 1 / 0")

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table loaded (id int)")
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


class Prometheus:
    """One that runs and has scraped."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def ask(self, expression: str) -> list[Any]:
        """The samples of an expression, now."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self._address}/api/v1/query?{query}") as answer:
            said = json.load(answer)
        assert said["status"] == "success", said
        return list(said["data"]["result"])

    def rules(self) -> list[Any]:
        """The rules as it has evaluated them."""
        with urllib.request.urlopen(f"{self._address}/api/v1/rules") as answer:
            (group,) = json.load(answer)["data"]["groups"]
        return list(group["rules"])

    def wait_for(self, expression: str) -> None:
        """Until an expression has samples."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.ask(expression):
                    return
            except OSError:
                pass  # it starts
            assert time.monotonic() < give_up, f"{expression} has no samples"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, int]]:
    place = tmp_path_factory.mktemp("prometheus")
    metrics, port = free_port(), free_port()
    config = place / "prometheus.yml"
    config.write_text(CONFIG.format(rules=RULES, port=metrics))
    options = ("--spark-master", "none", "--set", f"http_listen=127.0.0.1:{metrics}")
    command = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={place / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with meridian(place, options) as server, load(server.dsn), (place / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            prometheus = Prometheus(port)
            prometheus.wait_for("increase(meridian_commits_total[30s]) > 0")
            yield prometheus, metrics
        finally:
            process.terminate()
            process.wait()


def test_the_files_are_right(tmp_path: Path) -> None:
    promtool("check", "rules", str(RULES))
    token = tmp_path / "token"
    token.write_text("a token")
    config = (RULES.parent / "prometheus.yml").read_text()
    here = config.replace("/run/secrets/metrics", str(token)).replace("alerts.yml", str(RULES))
    (tmp_path / "prometheus.yml").write_text(here)
    promtool("check", "config", str(tmp_path / "prometheus.yml"))


def test_promtool_likes_the_metrics(scraped: tuple[Prometheus, int]) -> None:
    promtool("check", "metrics", told=get(scraped[1], "/metrics").text)


def test_every_metric_of_an_alert_has_samples(scraped: tuple[Prometheus, int]) -> None:
    (group,) = read_yaml(RULES)["groups"]
    for name in sorted({name for rule in group["rules"] for name in metrics_of(rule["expr"])}):
        scraped[0].wait_for(name)


def test_every_panel_shows_something(scraped: tuple[Prometheus, int]) -> None:
    for _, expression in dashboard_expressions():
        scraped[0].wait_for(expression)


def test_every_alert_is_evaluated_and_a_healthy_server_fires_none(
    scraped: tuple[Prometheus, int],
) -> None:
    prometheus, _ = scraped
    (group,) = read_yaml(RULES)["groups"]
    assert len(prometheus.rules()) == len(group["rules"])
    for rule in prometheus.rules():
        assert rule["health"] in {"ok", "unknown"}, rule
        assert not prometheus.ask(rule["query"]), rule["name"]


def test_alerts_fire(tmp_path: Path) -> None:
    """Promtool plays samples of a cluster that is in trouble."""
    played = {
        'meridian_health{job="meridian",instance="one",state="ready"}': "0x20",
        'meridian_health{job="meridian",instance="two",state="ready"}': "0x20",
        'up{job="meridian",instance="two"}': "0x20",
        'meridian_errors_total{instance="one",sqlstate_class="XX"}': "0+1x20",
        'meridian_conflicts_total{instance="one",by="row"}': "0+600x20",
        'meridian_commits_total{instance="one"}': "0+60x20",
        'meridian_subscription_lag_seconds{instance="one"}': "700x20",
        'meridian_commits_waiting{instance="one"}': "3x20",
        'meridian_upper_behind_seconds{instance="one"}': "0+60x20",
        # An idle server has an old upper, and one that is busy has commits that wait.
        'meridian_commits_waiting{instance="two"}': "0x20",
        'meridian_upper_behind_seconds{instance="two"}': "0+60x20",
        'meridian_commits_waiting{instance="three"}': "3x20",
        'meridian_upper_behind_seconds{instance="three"}': "1x20",
        'meridian_sources{instance="one",state="broken"}': "1x20",
        'meridian_source_stop_seconds{instance="one",state="stalled"}': "500+60x20",
        'meridian_view_behind_seconds{instance="one"}': "800+60x20",
        'meridian_failing_views{instance="one"}': "1x20",
    }
    expected = {"MeridianNobodyLeads", "MeridianDown", "MeridianInternalErrors"}
    expected |= {"MeridianManyConflicts", "MeridianSubscriberBehind", "MeridianSourceBroken"}
    expected |= {
        "MeridianSourceStalled",
        "MeridianViewFails",
        "MeridianViewBehind",
        "MeridianUpperBehind",
    }
    series = "".join(f"      - {{series: '{name}', values: '{v}'}}\n" for name, v in played.items())
    told = f"rule_files: ['{RULES}']\ntests:\n  - interval: 1m\n    input_series:\n{series}"
    told += "    promql_expr_test:\n"
    for name in sorted(expected):
        told += (
            f'      - {{expr: \'count(ALERTS{{alertname="{name}",alertstate="firing"}})\','
            " eval_time: 18m, exp_samples: [{labels: '{}', value: 1}]}\n"
        )
    (tmp_path / "alerts_test.yml").write_text(told)
    promtool("test", "rules", str(tmp_path / "alerts_test.yml"))
