"""Compose files, the Dockerfile, alerts: what can be said of them without containers."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from coordinator.monitoring.metrics import ALWAYS, METRICS
from tests.session.deployment.deployed import (
    CLUSTER,
    DEPLOY,
    SINGLE,
    dashboard_expressions,
    read_yaml,
    service,
)
from tests.session.monitoring.http_client import get
from tests.support.servers import Meridian, free_port, meridian, postgres

PASSWORD, TOKEN = "a first password", "a token of metrics"
_METRIC = re.compile(r"\bmeridian_\w+")


def _run(program: str, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_compose_files_follow_the_schema() -> None:
    schema = "--builtin-schema", "vendor.compose-spec"
    assert not _run("check-jsonschema", *schema, str(SINGLE), str(CLUSTER))


def test_the_dockerfile_has_no_known_mistakes() -> None:
    assert not _run("hadolint", str(DEPLOY.parent / "Dockerfile"))


def test_the_image_has_all_packages() -> None:
    root = DEPLOY.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    found = project["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = re.findall(r"^COPY (\w+) \1$", (root / "Dockerfile").read_text(), re.MULTILINE)
    assert {*copied} == {name.removesuffix("*") for name in found}


def metrics_of(expression: str) -> list[str]:
    """The names of metrics in an expression."""
    return _METRIC.findall(expression)


def _known() -> set[str]:
    known = {one[0] for one in ALWAYS} | {metric.name for metric in METRICS}
    known |= {
        f"{metric.name}_{part}"
        for metric in METRICS
        if metric.type == "histogram"
        for part in ("bucket", "count", "sum")
    }
    return known


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    expressions = dashboard_expressions()
    asked = {name for _, expression in expressions for name in metrics_of(expression)}
    assert len(asked) > 15
    assert asked <= _known()


def test_alerts_ask_for_metrics_that_exist() -> None:
    (group,) = read_yaml(DEPLOY / "prometheus" / "alerts.yml")["groups"]
    asked = {name for rule in group["rules"] for name in metrics_of(rule["expr"])}
    assert len(asked) > 8
    assert asked <= _known()


def test_prometheus_scrapes_every_coordinator() -> None:
    (job,) = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
    services = read_yaml(CLUSTER)["services"]
    ports = {
        f"{name}:{one['environment']['MERIDIAN_HTTP_LISTEN'].rpartition(':')[2]}"
        for name, one in services.items()
        if one.get("image") == "meridian:local"
    }
    (targets,) = job["static_configs"]
    assert set(targets["targets"]) == ports
    token = services["one"]["environment"]["MERIDIAN_HTTP_TOKEN_FILE"]
    assert job["authorization"]["credentials_file"] == token


# --- the cluster, started by hand -----------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[tuple[Meridian, int], tuple[Meridian, int]]]:
    """Both coordinators of the compose file, with the ports of their metrics; the first leads."""
    secrets = {"first": PASSWORD, "stash": "whatever: trusted", "metrics": TOKEN}
    for name, secret in secrets.items():
        (tmp_path / name).write_text(secret)
        (tmp_path / name).chmod(0o600)
    with postgres() as stash:
        here = {
            "/run/secrets": str(tmp_path),
            "/warehouse": str(tmp_path / "warehouse"),
            "postgresql://postgres@stash:5432/postgres": stash,
        }
        ports = free_port(), free_port()
        first, second = (
            service(CLUSTER, name, {**here, "*:7480": f"127.0.0.1:{port}"})
            for name, port in zip(("one", "two"), ports, strict=True)
        )
        no_jvm = ("--spark-master", "none")
        with meridian(tmp_path / "one", (*first.options, *no_jvm), {**first.environment}) as leader:
            other = Meridian(tmp_path / "two", (*second.options, *no_jvm), {**second.environment})
            other.launch()
            try:
                yield (leader, ports[0]), (other, ports[1])
            finally:
                other.kill()


def test_the_second_takes_over(
    two: tuple[tuple[Meridian, int], tuple[Meridian, int]],
) -> None:
    (leader, one), (other, two_) = two
    assert get(one, "/readyz").text.strip() == "ready"
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    assert get(one, "/metrics", allowed).status == 200
    assert get(one, "/metrics", {**allowed, "Host": "one:7480"}).status == 200
    assert get(one, "/metrics").status == 401
    with psycopg.connect(_with_password(leader.dsn), autocommit=True) as connection:
        connection.execute("create table t (id int primary key)")
        connection.execute("insert into t values (7)")
    leader.kill()
    dsn = other.wait_until_ready()
    assert get(two_, "/readyz").text.strip() == "ready"
    with psycopg.connect(_with_password(dsn)) as connection:
        assert connection.execute("select id from t").fetchall() == [(7,)]


def _with_password(dsn: str) -> str:
    return psycopg.conninfo.make_conninfo(dsn, password=PASSWORD)
