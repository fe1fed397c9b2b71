"""What the runner of client suites makes of the lines that programs print."""

from pathlib import Path

import pytest

from tests.clients.suites import running, verdicts
from tests.clients.suites.features import FEATURES
from tests.clients.suites.outcomes import Outcome, parse_outcomes, short_reason
from tests.clients.suites.page import PAGE, written_page
from tests.clients.suites.running import NotRun, environment_of, prepare
from tests.clients.suites.suite import ROOT, Suite, all_suites
from tests.clients.suites.verdicts import (
    ALLOW,
    allow_more,
    allowed,
    broken_promises,
    judge,
    needed_feature,
    results,
)


def _outcome(case: str, reason: str = "", client: str = "pgx") -> Outcome:
    return Outcome(client, "1.0", case, not reason, reason)


def test_lines_that_are_no_outcome_are_told() -> None:
    lines = [
        '{"client": "pgx", "version": "1.0", "case": "a", "ok": true, "reason": ""}\n',
        "\n",
        "added 5 packages\n",
        '{"client": "pgx", "case": "b", "ok": true}\n',
        '{"client": "pgx", "version": "1.0", "case": "a", "ok": false, "reason": "42601 no\\nat"}',
    ]
    outcomes, wrong = parse_outcomes(lines)
    # Of two reports of one case the worse one counts.
    assert outcomes == [_outcome("a", "42601 no")]
    assert wrong == ["added 5 packages", '{"client": "pgx", "case": "b", "ok": true}']


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\n  first\nsecond", "first"),
        ("no file /tmp/suite-x/y.sql here", "no file PATH here"),
        ("connection to 127.0.0.1:5433, port 5433 failed", "connection to HOST, port PORT failed"),
        ("<object at 0x7f00aa00bb11>", "<object at 0x..>"),
        ("and/or stays", "and/or stays"),
        ("x" * 300, "x" * 158 + ".."),
    ],
)
def test_reasons_are_the_same_in_every_run(text: str, reason: str) -> None:
    assert short_reason(text) == reason


def test_what_postgresql_does_not_pass_is_not_counted() -> None:
    peer = [
        _outcome("a"),
        _outcome("b"),
        _outcome("c", "broken here, too"),
        _outcome("d"),
        _outcome("e_needs_triggers"),
        _outcome("f_needs_triggers"),
    ]
    ours = [_outcome("a"), _outcome("b", "0A000"), _outcome("c"), _outcome("f_needs_triggers")]
    (verdict,) = judge(peer, ours)
    assert (verdict.cases, verdict.passed) == (3, 1)
    assert verdict.failures == {"b": "0A000", "d": "not reported"}
    assert verdict.apart == {"e_needs_triggers": "not reported", "f_needs_triggers": ""}
    assert verdict.wrong == {"c": "broken here, too"}
    assert verdict.passing == ("a", "f_needs_triggers")


def test_allow_files_only_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "ALLOW", tmp_path / "allow")
    peer = [_outcome("a"), _outcome("b"), _outcome("c")]
    (first,) = judge(peer, [_outcome("b"), _outcome("a")])
    assert allow_more(first) == 2
    (second,) = judge(peer, [_outcome("b", "42601"), _outcome("c")])
    assert allow_more(second) == 1
    assert allowed("pgx") == ["a", "b", "c"]
    broken = broken_promises(["pgx"], [_outcome("b", "42601"), _outcome("c")])
    assert broken == [("pgx", "a", "not reported"), ("pgx", "b", "42601")]


def test_a_suite_without_its_toolchain_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="this machine lacks no-such-program"):
        prepare(Suite(name="absent", needs=("no-such-program",), run=["true"]))


def test_a_suite_is_set_up_once_for_each_state_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.clients.suites.suite.SUITES", tmp_path)
    monkeypatch.setattr("tests.clients.suites.suite.ROOT", tmp_path)
    counting = ["{python}", "-c", "open(r'{cache}/count', 'a').write('x')"]
    suite = Suite(name="made", set_up=[counting], run=["true"])
    suite.folder.mkdir()
    for text, count in (("1", 1), ("1", 1), ("2", 2)):
        (suite.folder / "manifest").write_text(text)
        prepare(suite)
        assert (suite.cache / "count").read_text() == "x" * count
    failing = Suite(name="made", set_up=[["{python}", "-c", "exit('no network')"]], run=["true"])
    with pytest.raises(NotRun, match="no network"):
        prepare(failing)


def test_programs_find_the_server_in_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.os, "environ", {"PGSERVICE": "mine", "PATH": "p"})
    assert environment_of("postgresql://ada@127.0.0.1:5433/shop") == {
        "PATH": "p",
        "PGHOST": "127.0.0.1",
        "PGPORT": "5433",
        "PGUSER": "ada",
        "PGDATABASE": "shop",
        "PGPASSWORD": "",
    }


def test_every_folder_is_a_suite() -> None:
    assert "python" in all_suites()


def test_the_page_is_the_one_of_the_kept_results() -> None:
    assert PAGE.read_text() == written_page(results()), "python -m tests.clients.suites --page"


def test_what_is_counted_apart_is_a_limitation() -> None:
    page = (ROOT / "docs" / "limitations.md").read_text()
    for feature, line in FEATURES.items():
        assert f"| {line} |" in page, feature
    verdicts_kept = [verdict for found in results().values() for verdict in found]
    cases = [case for verdict in verdicts_kept for case in verdict.apart]
    cases += [case for path in ALLOW.glob("*.txt") for case in allowed(path.stem)]
    features = {feature for case in cases if (feature := needed_feature(case))}
    assert features <= FEATURES.keys(), sorted(features - FEATURES.keys())


def test_what_passed_must_pass() -> None:
    """A client with results has an allow file with as many cases, at least."""
    for found in results().values():
        for verdict in found:
            assert len(allowed(verdict.client)) >= verdict.passed, verdict.client
