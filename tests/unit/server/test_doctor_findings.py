"""What `meridian doctor` judges from metrics, disks, the check and the log."""

import re

import pytest

from coordinator.config import Settings, load
from coordinator.monitoring.metrics import ALWAYS, METRICS
from coordinator.server.diagnostics import shown_settings
from coordinator.server.doctor_findings import (
    _LIMITS,
    DiskSpace,
    DoctorFinding,
    Rank,
    judge_check,
    judge_disks,
    judge_limits,
    judge_log,
    judge_metrics,
    metric_samples,
)

GIB = 1 << 30


def texts(findings: list[DoctorFinding]) -> list[str]:
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ('meridian_fenced_tables{reason="damaged"} 2.0', "2 tables are fenced"),
        ("meridian_clock_doubted 1.0", "the clock is not believed"),
        ("meridian_tail_age_seconds 901.0", "the tail grows"),
        ('meridian_sources{state="broken"} 1.0', "1 sources are broken"),
        ('meridian_source_stop_seconds{state="stalled"} 700.0', "stalled for 700 s"),
        ("meridian_failing_views 3.0", "3 materialized views cannot"),
        ("meridian_view_behind_seconds 1000.0", "behind its inputs for 1000 s"),
        ('meridian_errors_total{sqlstate_class="XX"} 1.0', "1 internal errors"),
        ("meridian_jvm_starts_total 1.0\nmeridian_jvm_up 0.0", "the JVM is dead"),
        ("process_open_fds 950.0\nprocess_max_fds 1000.0", "950 of 1000 file descriptors"),
        (
            "meridian_commits_waiting 2.0\nmeridian_upper_behind_seconds 60.0",
            "2 commits wait, and the newest readable timestamp is 60 s old",
        ),
    ],
)
def test_metrics_in_trouble(sample: str, said: str) -> None:
    (found,) = judge_metrics(metric_samples(f"{sample}\n"))
    assert said in found.text


@pytest.mark.parametrize(
    "sample",
    [
        'meridian_fenced_tables{reason="damaged"} 0.0',
        'meridian_sources{state="running"} 5.0',
        "meridian_upper_behind_seconds 4000.0\nmeridian_commits_waiting 0.0",
        "meridian_upper_behind_seconds 1.0\nmeridian_commits_waiting 40.0",
        "meridian_jvm_starts_total 0.0\nmeridian_jvm_up 0.0",
        "meridian_jvm_starts_total 2.0\nmeridian_jvm_up 1.0",
        'meridian_errors_total{sqlstate_class="42"} 100.0',
    ],
)
def test_an_idle_or_busy_server_is_well(sample: str) -> None:
    assert list(judge_metrics(metric_samples(f"{sample}\n"))) == []


def test_limits_are_of_metrics_that_exist() -> None:
    known = {(m.name, value) for m in METRICS for value in (m.values or ("",))}
    known |= {(row[0], value) for row in ALWAYS for value in row[4]}
    assert {(name, label) for name, label, *_ in _LIMITS} <= known


def test_what_is_near_to_a_limit() -> None:
    text = 'meridian_connections{state="idle"} 5.0\nmeridian_connections{state="active"} 4.0\n'
    samples = metric_samples(f"{text}process_resident_memory_bytes {95 << 20}\n")
    settings = {"connections_max": 10, "memory_max_mb": 100}
    assert texts(list(judge_limits(samples, settings))) == [
        "9 of connections_max = 10 sessions are open",
        "the process has 95 MiB of memory_max_mb = 100",
    ]
    assert not [*judge_limits(samples, {"connections_max": 20, "memory_max_mb": 200})]
    assert not [*judge_limits(samples, {})]


def test_full_disks() -> None:
    def said(total: int, free: int, inodes: int | None) -> list[tuple[Rank, str]]:
        found = judge_disks([DiskSpace("x", total, free, inodes)])
        return [(one.rank, re.sub(":.*", "", one.text)) for one in found]

    assert said(100 * GIB, 50 * GIB, None) == []
    assert said(100 * GIB, 50 * GIB, 10**6) == []
    assert said(100 * GIB, 4 * GIB, None) == [(Rank.WATCH, "the disk of x is nearly full")]
    assert said(2 * GIB, GIB // 2, None) == [(Rank.BROKEN, "the disk of x is nearly full")]
    (only,) = said(100 * GIB, 50 * GIB, 10)
    assert only == (Rank.BROKEN, "the disk of x has room for 10 more files only")


def test_a_check_that_fails_tells_its_first_error() -> None:
    assert list(judge_check("orphan: x: y\nchecked 1 tables: ok\n", is_clean=True)) == []
    text = "orphan: a: b\nerror: t: part-1 is missing\nerror: u: c\nchecked 2 tables: 2 errors\n"
    (found,) = judge_check(text, is_clean=False)
    assert (
        found.text == "meridian check fails: error: t: part-1 is missing, and 1 more in check.txt"
    )
    (found,) = judge_check("Traceback\n  x\nValueError: y\n", is_clean=False)
    assert found.text == "meridian check fails: ValueError: y"
    assert [*judge_check("", is_clean=False)]


def test_errors_of_clients_are_not_the_servers() -> None:
    lines = (
        "2026-01-01T00:00:00.000Z ERROR meridian.session [7] division by zero",
        '{"error_severity":"ERROR","message":"x","logger":"meridian.session"}',
        "2026-01-01T00:00:00.000Z WARNING meridian.loop the event loop stands",
        "2026-01-01T00:00:00.000Z ERROR meridian.sources source 7 failed",
        '{"error_severity":"CRITICAL","message":"the server ends","logger":"meridian.serving"}',
        "meridian: the stash is away",
    )
    found = texts(list(judge_log("\n".join(lines))))
    assert found == [f"the log has: {line}" for line in reversed(lines[3:])]


SECRETS = (
    "postgresql://ann:hunter2@host/db",
    "postgresql://ann:hun'hunter2@host/db",
    "postgresql://ann:a@b:hunter2@host/db",
    "postgresql://ann@host/db?password=hunter2",
    "postgresql://ann@host/db?sslpassword=a'hunter2&x=1",
)


@pytest.mark.parametrize("stash", SECRETS)
def test_settings_are_shown_without_secrets(stash: str) -> None:
    settings = load(
        flags={"stash": stash, "warehouse": "/w", "spark_master": "spark://m:7077"},
        sets=[
            "spark_conf.spark.authenticate.secret=it's hunter2 and more",
            "spark_conf.spark.executorEnv.DB_PASS=hunter2",
            "spark_conf.spark.executor.cores=3",
            "app.api_token=hunter2",
            "TimeZone=Europe/Berlin",
        ],
        environment={"MERIDIAN_PASSWORD": "hunter2"},
    )
    shown = shown_settings(settings)
    assert "hunter2" not in shown
    assert shown.count("<hidden>") == 4
    assert "host/db" in shown
    for line in ("connections_max = 200", "variables.TimeZone = 'Europe/Berlin'",
                 "spark_conf.spark.executor.cores = '3'", "listen = '127.0.0.1:7432'"):  # fmt: skip
        assert line in shown.splitlines()


def test_all_settings_are_shown() -> None:
    lines = shown_settings(Settings()).splitlines()
    assert {line.partition(" = ")[0] for line in lines} == {
        name
        for name in Settings.__dataclass_fields__
        if name not in {"first_password", "is_password_shown", "variables", "spark_conf"}
    }
