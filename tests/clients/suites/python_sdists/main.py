"""Run both suites with pytest and print an outcome for each test: `python main.py CACHE`.

A test that PostgreSQL fails or skips is no case: only passed tests and failed ones are reported.
`APART` names the tests that need features of other issues; their cases get the suffix.
"""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from pathlib import Path

import psycopg

TEST_SECONDS_MAX = 60
SUITE_SECONDS_MAX = 3000
SQLALCHEMY = (
    "test/dialect/test_suite.py",
    *(
        f"test/dialect/postgresql/test_{name}.py"
        for name in ("reflection", "query", "on_conflict", "dialect", "types")
    ),
)
APART = (
    (
        "functions",
        r"test_enum_function_return|test_exceptions_str|test_log_listener_02|notice_logging|reflect_check_constraint$",
    ),
    ("do", r"test_log_listener_0[13]|test_prepare_09_raise_error"),
    ("ranges", r"[Rr]ange(?!_check)"),
    (
        "extensions",
        r"[Hh][Ss]tore|HSTORE|[Cc][Ii][Tt]ext|test_custom_codec_|test_extra_codec_alias",
    ),
    ("full_text", r"MatchTest|TSVector|TSQUERY|[Tt]s_?[Vv]ector|regconfig"),
    ("materialized_views", r"[Mm]aterialized"),
    ("invalid_indexes", r"InvalidIndexReflectionTest"),
    ("inheritance", r"[Ii]nherit|[Pp]artitioned"),
    ("foreign_tables", r"ForeignTable"),
    ("large_objects", r"oid_collision"),
    ("bit", r"BitString|(?:^|_)bit(?:_|$)"),
    ("inet", r"[Nn]etwork|INET|[Ii]net_|CIDR|MACADDR"),
    ("prepared_transactions", r"[Tt]wo_?[Pp]hase|twophase"),
    ("exclusion_constraints", r"[Ee]xclude"),
    ("collations", r"_collation|[Cc]ollate|Collation"),
)


def main(cache: Path) -> None:
    """Run both."""
    sources = cache / "sources"
    at = os.environ
    address = f"{at['PGUSER']}@{at['PGHOST']}:{at['PGPORT']}/{at['PGDATABASE']}"
    with psycopg.connect("", autocommit=True) as connection:
        for schema in ("test_schema", "test_schema_2"):
            connection.execute(f"create schema if not exists {schema}".encode())
    (place,) = sources.glob("sqlalchemy-*/")
    options = ["--dburi", f"postgresql+psycopg://{address}", "--maxfail", "100000"]
    options += ["-p", "no:warnings", "-p", "logging", *SQLALCHEMY]
    _run("sqlalchemy-suite", place, options)
    (place,) = sources.glob("asyncpg-*/")
    _run("asyncpg-suite", place, ["tests"])


def _run(client: str, place: Path, options: list[str]) -> None:
    report = place / f"report-{os.environ.get('SUITE_SERVER', 'server')}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-q", "--tb", "short"]
    command += ["--timeout", str(TEST_SECONDS_MAX), "--junitxml", str(report), *options]
    with subprocess.Popen(command, cwd=place, stdout=sys.stderr) as program:
        try:
            program.wait(SUITE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            # pytest ends in order and writes its report.
            program.send_signal(2)
            program.wait(60)
    version = place.name.rpartition("-")[2]
    for case, ok, reason in _outcomes(report):
        outcome = {"client": client, "version": version, "case": case, "ok": ok, "reason": reason}
        print(json.dumps(outcome), flush=True)


def _outcomes(report: Path) -> Iterator[tuple[str, bool, str]]:
    for test in Xml.parse(report).iter("testcase"):
        if test.find("skipped") is not None:
            continue
        broken = test.find("failure")
        broken = test.find("error") if broken is None else broken
        name = f"{test.get('classname', '')}.{test.get('name', '')}"
        if broken is None:
            yield _case(name), True, ""
        else:
            text = f"{broken.get('message') or ''}\n{broken.text or ''}"
            yield _case(name), False, _reason(text)


def _case(name: str) -> str:
    """The test's name without the server's version, and with the feature that it needs."""
    name = re.sub(r"_postgresql\+psycopg_[0-9_]+", "", name)
    name = re.sub(r"^(?:tests|test\.dialect(?:\.postgresql)?)\.", "", name)
    name = re.sub(r"\s+", "_", name)
    features = [feature for feature, pattern in APART if re.search(pattern, name)]
    return f"{name}_needs_{features[0]}" if features else name


def _reason(text: str) -> str:
    """The server's error, or else the last one that a traceback names."""
    ours = re.findall(r"(?:asyncpg\.exceptions|psycopg\.errors)\.(\w+\)?:? .*)", text)
    others = re.findall(r"(?m)^E? *((?:\w+\.)*\w*(?:Error|Exception)\b.*)$", text)
    return (ours or others or [text.strip()])[-1].strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
